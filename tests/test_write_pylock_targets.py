"""One pylock.toml for several targets: each gets exactly its own packages, and nobody else gets any."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from platform import machine as platform_machine
from typing import Any

import pytest

pytest.importorskip("packaging.pylock", reason="packaging before 26.0 cannot read pylock.toml")

from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.pylock import Package, PackageArchive, PackageWheel, Pylock, PylockSelectError

from stackfix.resolve.records import Target, TargetLock
from stackfix.resolve.target import TargetView
from stackfix.sync.pylock import parse_pylock
from stackfix.sync.targets import stand_in
from stackfix.write.pylock import pylock_groups, render_pylock, render_pylocks
from tests.judges.command import Run, clean_environment, run
from tests.judges.pylock import environment_of, tags_of
from tests.lock_samples import HERE, index_file, loopback, package, target_lock
from tests.target_samples import PLACES, PROJECTS, PYTHONS, Samples, compiled, target_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGETS = tuple(target_of(*point) for point in product(PYTHONS, PLACES))
SAMPLES = Samples()


def locks(targets: tuple[Target, ...] = TARGETS) -> tuple[TargetLock, ...]:
    return tuple(SAMPLES.lock(target) for target in targets)


def text_of(targets: tuple[Target, ...] = TARGETS) -> str:
    return render_pylocks(locks(targets), second_steps={})


def chosen(text: str, python: str, platform: str) -> dict[str, Any]:
    lock = Pylock.from_dict(tomllib.loads(text))
    return {str(one.name): file for one, file in lock.select(
        environment=environment_of(python, platform), tags=tags_of(python, platform))}


def digests(files: dict[str, Any]) -> dict[str, str]:
    return {name: file.hashes["sha256"] for name, file in files.items()
            if isinstance(file, PackageWheel | PackageArchive)}


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: f"{one.python} {one.platform}")
def test_packaging_selects_each_target_its_own_files(target: Target) -> None:
    mine = {one.name: one.files[0].sha256 for one in SAMPLES.lock(target).packages}
    assert digests(chosen(text_of(), target.python, target.platform)) == mine


@pytest.mark.parametrize(("python", "platform"), [("3.10", "linux-64"), ("3.13", "osx-arm64"), ("3.11", "win-64")])
def test_nobody_else_gets_anything(python: str, platform: str) -> None:
    text = text_of(tuple(target for target in TARGETS if target.platform != "win-64"))
    with pytest.raises(PylockSelectError):
        chosen(text, python, platform)


def entries(text: str, name: str) -> list[dict[str, Any]]:
    return [one for one in tomllib.loads(text)["packages"] if one["name"] == name]


def test_what_all_targets_hold_alike_is_one_entry_without_a_marker() -> None:
    (pure,) = entries(text_of(), "pure")
    (shared,) = entries(text_of(), "shared")
    assert "marker" not in pure
    assert "marker" not in shared
    assert [wheel["name"] for wheel in shared["wheels"]] == sorted(
        compiled("shared", "3.0", target.python, target.platform) for target in TARGETS)


def test_what_some_targets_hold_has_the_marker_that_tells_them() -> None:
    text = text_of()
    assert [one["marker"] for one in entries(text, "only-linux")] == ["sys_platform == 'linux'"]
    assert [(one["version"], one["marker"]) for one in entries(text, "varied")] == [
        ("1.26.4", "python_version == '3.11'"), ("2.1.0", "python_version == '3.12'")]
    mac = [one for one in entries(text, "torch") if "wheels" in one]
    assert [(one["version"], one["marker"]) for one in mac] == [("2.8.0", "sys_platform == 'darwin'")]
    archives = [one for one in entries(text, "torch") if "archive" in one]
    assert len(archives) == 6
    assert not any("version" in one for one in archives)


def test_markers_of_one_name_never_hold_together() -> None:
    lock = Pylock.from_dict(tomllib.loads(text_of()))
    for target in TARGETS:
        environment: Any = environment_of(target.python, target.platform)
        held = [one.name for one in lock.packages if one.marker is None or one.marker.evaluate(environment)]
        assert len(held) == len(set(held))


def test_the_environments_are_the_targets_and_no_two_overlap() -> None:
    document = tomllib.loads(text_of())
    markers = [Marker(text) for text in document["environments"]]
    assert len(markers) == len(TARGETS)
    for target in TARGETS:
        environment: Any = environment_of(target.python, target.platform)
        assert sum(marker.evaluate(environment) for marker in markers) == 1
    assert document["requires-python"] == ">=3.11"


def matches(one: Package, asked: dict[str, Any]) -> bool:
    """Key by key, as the standard says that a dependency is looked up."""
    values = {"name": one.name, "version": str(one.version) if one.version else None,
              "marker": str(one.marker) if one.marker else None}
    return all(str(values[key]).replace('"', "'") == value for key, value in asked.items())


def test_each_dependency_is_one_entry_of_the_file() -> None:
    lock = Pylock.from_dict(tomllib.loads(text_of()))
    for one in lock.packages:
        for asked in one.dependencies or ():
            assert len([other for other in lock.packages if matches(other, dict(asked))]) == 1, (one.name, asked)


def test_a_dependency_names_the_entries_of_its_own_targets() -> None:
    text = text_of()
    (pure,) = entries(text, "pure")
    assert pure["dependencies"] == [{"name": "varied", "version": "1.26.4"}, {"name": "varied", "version": "2.1.0"}]
    windows = next(one for one in entries(text, "torch") if "3.12" in one["marker"] and "win32" in one["marker"])
    assert [one["name"] for one in windows["dependencies"]] == ["pure", "shared"]
    linux = next(one for one in entries(text, "torch") if "x86_64" in one["marker"])
    assert [one["name"] for one in linux["dependencies"]] == ["only-linux", "pure", "shared"]


def test_an_entry_of_two_sources_is_named_by_its_marker() -> None:
    targets = (target_of("3.11", "linux-64"), target_of("3.11", "osx-arm64"))
    user = package("user", "1", (index_file("user", "user-1-py3-none-any.whl", b"x"),), requires=("torch",))
    both = tuple(replace(lock, packages=(*lock.packages, user)) for lock in locks(targets))
    (entry,) = entries(render_pylocks(both, second_steps={}), "user")
    assert entry["dependencies"] == [{"name": "torch", "marker": "sys_platform == 'linux'"},
                                     {"name": "torch", "marker": "sys_platform == 'darwin'"}]
    on_mac = (both[0], replace(both[1], packages=both[1].packages[:-1]))
    (entry,) = entries(render_pylocks(on_mac, second_steps={}), "user")
    assert entry["dependencies"] == [{"name": "torch", "marker": "sys_platform == 'linux'"}]


def test_a_target_never_gets_a_file_that_was_locked_for_another_alone() -> None:
    """The second target was given the plain wheel although the other's fits it too: two entries keep them apart."""
    pure, fast = (index_file("x", name, name.encode()) for name in (
        "x-1-py3-none-any.whl", "x-1-cp311-abi3-manylinux_2_17_x86_64.whl"))
    first = target_lock((package("x", "1", (fast, pure)),), target_of("3.11", "linux-64"))
    second = target_lock((package("x", "1", (pure,)),), target_of("3.12", "linux-64"))
    text = render_pylocks((first, second), second_steps={})
    assert digests(chosen(text, "3.11", "linux-64")) == {"x": fast.sha256}
    assert digests(chosen(text, "3.12", "linux-64")) == {"x": pure.sha256}
    assert len(entries(text, "x")) == 2
    third = replace(second, packages=(package("x", "1", (fast, pure)),))
    assert len(entries(render_pylocks((first, third), second_steps={}), "x")) == 1


def test_one_name_at_two_addresses_is_two_entries() -> None:
    files = [index_file("x", "x-1-py3-none-any.whl", b"x", url=f"https://{host}/x-1-py3-none-any.whl") for host in "ab"]
    first, second = (target_lock((package("x", "1", (file,)),), target_of(python, "linux-64"))
                     for file, python in zip(files, PYTHONS, strict=True))
    assert [one["wheels"][0]["url"][8] for one in entries(render_pylocks((first, second), second_steps={}), "x")] == [
        "a", "b"]


def test_an_sdist_serves_the_targets_that_have_no_wheel() -> None:
    sdist = index_file("x", "x-1.tar.gz", b"x")
    wheel = index_file("x", "x-1-cp311-cp311-win_amd64.whl", b"y")
    windows, linux = target_of("3.11", "win-64"), target_of("3.11", "linux-64")
    text = render_pylocks((target_lock((package("x", "1", (wheel, sdist)),), windows),
                           target_lock((package("x", "1", (sdist,)),), linux)), second_steps={})
    (entry,) = entries(text, "x")
    assert "marker" not in entry
    assert chosen(text, "3.11", "win-64")["x"].hashes == {"sha256": wheel.sha256}
    assert chosen(text, "3.11", "linux-64")["x"].hashes == {"sha256": sdist.sha256}
    apart = render_pylocks((target_lock((package("x", "1", (sdist,)),), windows),
                            target_lock((package("x", "1", (wheel, sdist)),), target_of("3.11", "osx-arm64"))),
                           second_steps={})
    assert len(entries(apart, "x")) == 2        # where the source was locked, the wheel is not to be taken


def test_the_order_that_targets_are_asked_in_is_no_matter() -> None:
    assert text_of(TARGETS[::-1]) == text_of((*TARGETS[1::2], *TARGETS[::2])) == text_of()


def test_one_target_is_as_it_was() -> None:
    target = target_of("3.11", "linux-64")
    text = text_of((target,))
    assert text == render_pylock(SAMPLES.lock(target))
    assert "marker" not in text
    assert len(tomllib.loads(text)["environments"]) == 1


def test_second_steps_are_named_by_target() -> None:
    first, second = target_of("3.11", "linux-64"), target_of("3.12", "linux-64")
    text = render_pylocks(locks((first, second)), second_steps={second: "requirements-flash-attn-cp312-linux-64.txt"})
    assert tomllib.loads(text)["tool"] == {"stackfix": {"second-steps": {
        "cp312-linux-64": "requirements-flash-attn-cp312-linux-64.txt"}}}


def test_groups() -> None:
    def groups(*places: str) -> list[tuple[str, list[str]]]:
        return [(variant, [lock.target.place for lock in found])
                for variant, found in pylock_groups(locks(tuple(target_of("3.11", place) for place in places)))]

    assert groups("linux-64", "osx-arm64") == [("", ["linux-64", "osx-arm64"])]
    assert groups("linux-64", "win-64-cpu") == [("", ["linux-64", "win-64-cpu"])]
    assert groups("linux-64-cpu") == [("", ["linux-64-cpu"])]
    assert groups("linux-64-cpu", "linux-64", "win-64-cpu", "osx-arm64") == [
        ("", ["linux-64", "osx-arm64"]), ("cpu", ["linux-64-cpu", "win-64-cpu"])]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    with loopback(tmp_path_factory.mktemp("store"), PROJECTS) as started:
        yield Samples(base=started.index_url.removesuffix("/simple"))


UV_PLATFORMS = {"linux-64": "x86_64-manylinux_2_28", "linux-aarch64": "aarch64-manylinux_2_28",
                "win-64": "x86_64-pc-windows-msvc", "osx-arm64": "aarch64-apple-darwin"}


# uv holds `requires-python` against the Python that it runs with, whatever `--python-version` says: HERE is a target
def uv(words: tuple[str, ...], text: str, python: str, platform: str, tmp_path: Path) -> Run:
    """uv for another machine, into an empty folder; no index: the file's own addresses are all it needs."""
    lock = tmp_path / "pylock.toml"
    lock.write_text(text, encoding="utf-8")
    return run([sys.executable, "-m", "uv", "pip", *words, str(lock), "--require-hashes", "--no-index", "--no-build",
                "--python", sys.executable, "--target", str(tmp_path / "target"), "--python-version", python,
                "--python-platform", platform],
               cwd=tmp_path, env=clean_environment(UV_CACHE_DIR=str(tmp_path / "cache"), UV_PYTHON_DOWNLOADS="never"))


def installed(folder: Path) -> dict[str, str]:
    """The tag of each wheel that was installed."""
    stated = {path.parent.name.partition("-")[0]: path.read_text(encoding="utf-8").rpartition("Tag: ")[2].strip()
              for path in folder.glob("*.dist-info/WHEEL")}
    return {name.replace("_", "-"): tag for name, tag in stated.items()}


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: f"{one.python} {one.platform}")
def test_uv_installs_each_target_its_own_files(target: Target, served: Samples, tmp_path: Path) -> None:
    text = render_pylocks([served.lock(one) for one in {*TARGETS, HERE}], second_steps={})
    words = ("install", "-r") if target.python == "3.11" else ("sync",)
    done = uv(words, text, target.python, UV_PLATFORMS[target.platform], tmp_path)
    assert done.status == 0, done
    files = {one.name: one.files[0].filename for one in served.lock(target).packages}
    assert installed(tmp_path / "target") == {
        name: file.removesuffix(".whl").split("-", 2)[2] for name, file in files.items()}


@pytest.mark.parametrize(("python", "platform"), [
    ("3.9", "x86_64-manylinux_2_28"), ("3.11", "x86_64-apple-darwin"), ("3.11", "aarch64-pc-windows-msvc"),
    ("3.12", "aarch64-manylinux_2_28")])
def test_uv_refuses_who_is_not_in_the_file(python: str, platform: str, served: Samples, tmp_path: Path) -> None:
    text = render_pylocks([served.lock(one) for one in {*TARGETS, HERE} if one.platform != "linux-aarch64"],
                          second_steps={})
    done = uv(("install", "-r"), text, python, platform, tmp_path)
    assert done.status != 0
    assert "not supported by the lockfile" in done.stderr
    assert not list((tmp_path / "target").glob("*.dist-info"))


def test_uv_refuses_an_altered_hash_of_the_target_alone(served: Samples, tmp_path: Path) -> None:
    mac, linux = target_of("3.11", "osx-arm64"), target_of("3.11", "linux-64")
    text = render_pylocks([served.lock(one) for one in {mac, linux, HERE}], second_steps={})
    digest = next(one.files[0].sha256 for one in served.lock(mac).packages if one.name == "shared")
    assert digest is not None
    altered = text.replace(digest, digest[::-1])
    assert uv(("install", "-r"), altered, "3.11", UV_PLATFORMS["linux-64"], tmp_path).status == 0
    (tmp_path / "other").mkdir()
    done = uv(("install", "-r"), altered, "3.11", UV_PLATFORMS["osx-arm64"], tmp_path / "other")
    assert done.status != 0
    assert "Hash mismatch" in done.stderr


@pytest.mark.skipif(sys.platform != "linux" or platform_machine() != "x86_64", reason="pip judges where it runs alone")
def test_pip_installs_the_files_of_where_it_runs(served: Samples, tmp_path: Path) -> None:
    said = run([sys.executable, "-m", "pip", "install", "--help"], cwd=tmp_path)
    if "pylock.toml" not in said.stdout:
        pytest.skip("this pip cannot read pylock.toml")
    lock = tmp_path / "pylock.toml"
    here = target_of(HERE.python, "linux-64")
    lock.write_text(render_pylocks([served.lock(one) for one in {*TARGETS, here}], second_steps={}), encoding="utf-8")
    done = run([sys.executable, "-m", "pip", "install", "--target", tmp_path / "target", "--no-index", "--no-cache-dir",
                "-r", lock], cwd=tmp_path)
    assert done.status == 0, done
    files = {one.name: one.files[0].filename for one in served.lock(here).packages}
    assert installed(tmp_path / "target") == {
        name: file.removesuffix(".whl").split("-", 2)[2] for name, file in files.items()}
    lock.write_text(render_pylocks([served.lock(one) for one in TARGETS if one.platform != "linux-64"],
                                   second_steps={}), encoding="utf-8")
    refused = run([sys.executable, "-m", "pip", "install", "--target", tmp_path / "none", "--no-index", "-r", lock],
                  cwd=tmp_path)
    assert refused.status != 0


UNIVERSE = ("x-{}-py3-none-any.whl", "x-{}-cp39-abi3-manylinux_2_17_x86_64.whl", "x-{}-cp311-cp311-win_amd64.whl",
            "x-{}-cp311-cp311-manylinux_2_17_x86_64.whl", "x-{}-cp312-cp312-manylinux_2_17_x86_64.whl",
            "x-{}-cp312-cp312-macosx_11_0_arm64.whl", "x-{}-cp311-cp311-macosx_10_9_universal2.whl", "x-{}.tar.gz")


@st.composite
def any_locks(draw: st.DrawFn) -> list[TargetLock]:
    """Locks of a few targets, of one project at any version, with any of the files that fit."""
    found = []
    for target in draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=6, unique=True)):
        view, version = TargetView(target), draw(st.sampled_from(("1", "2")))
        names = [name.format(version) for name in draw(st.lists(st.sampled_from(UNIVERSE), min_size=1, unique=True))]
        wheels = sorted((rank, name) for name in names if name.endswith(".whl") and (rank := view.rank(name)))
        fitting = [*(name for _, name in wheels), *(name for name in names if name.endswith(".tar.gz"))]
        files = tuple(index_file("x", name, name.encode()) for name in fitting)
        direct = bool(wheels) and draw(st.booleans())
        python = draw(st.sampled_from((None, ">=3.8", ">=3.9")))
        pins = (package("x", version, files, direct=direct, requires_python=python),) if files else ()
        found.append(target_lock(pins, target))
    return found


@given(any_locks())
def test_whatever_was_locked_is_what_each_target_gets(drawn: list[TargetLock]) -> None:
    text = render_pylocks(drawn, second_steps={})
    assert text == render_pylocks(drawn[::-1], second_steps={})
    for lock in drawn:
        expected = {one.name: one.files[0].sha256 for one in lock.packages}
        found = chosen(text, lock.target.python, lock.target.platform)
        assert {name: file.hashes["sha256"] for name, file in found.items()} == expected
        read, _ = parse_pylock(text, "pylock.toml", stand_in(lock.target.python, lock.target.platform))
        assert {one.name for one in read} == expected.keys()
        assert all(expected[one.name] in one.sha256 for one in read)
