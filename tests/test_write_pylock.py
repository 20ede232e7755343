"""pylock.toml as packaging reads and selects from it, and as uv installs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("packaging.pylock", reason="packaging before 26.0 cannot read pylock.toml")

from packaging.pylock import PackageArchive, PackageWheel, Pylock, PylockSelectError, is_valid_pylock_path

from stackfix.resolve.records import LockedPackage, Target
from stackfix.write.markers import environment_marker
from stackfix.write.pylock import render_pylock
from tests.judges.command import Run, clean_environment, run
from tests.judges.pylock import target_environment, target_tags
from tests.lock_samples import (
    FLASH,
    HERE,
    NOWHERE,
    PYTHON,
    TAG,
    Loopback,
    index_file,
    loopback,
    package,
    sample_packages,
    target_lock,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


INSTALLED = {"einops-0.8.1.dist-info", "filelock-3.29.0.dist-info", "flash_attn-2.5.8.dist-info",
             "tiny_server-1.0.dist-info", "torch-2.3.1.dist-info"}


def parsed(*packages: LockedPackage, target: Target = HERE, second_step: str | None = None) -> Pylock:
    return Pylock.from_dict(tomllib.loads(render_pylock(target_lock(packages, target), second_step=second_step)))


def selected(lock: Pylock, python: str = PYTHON, machine: str = "x86_64") -> dict[str, Any]:
    major, minor = python.split(".")
    tags = list(target_tags((int(major), int(minor)), machine, "2.28"))
    return {str(package.name): file
            for package, file in lock.select(environment=target_environment(python, machine), tags=tags)}


def test_packaging_selects_one_file_of_every_package() -> None:
    packages = sample_packages(NOWHERE)
    chosen = selected(parsed(*packages))
    assert chosen.keys() == {package.name for package in packages}
    wheel = chosen["tiny-server"]
    assert isinstance(wheel, PackageWheel)
    assert wheel.filename == f"tiny_server-1.0-cp{TAG}-cp{TAG}-manylinux_2_17_x86_64.whl"
    stated = {file.filename: file.sha256 for package in packages for file in package.files}
    assert dict(wheel.hashes) == {"sha256": stated[wheel.filename]}
    assert wheel.size is not None


def test_a_release_wheel_is_an_archive_without_version() -> None:
    lock = parsed(*sample_packages(NOWHERE))
    flash = next(package for package in lock.packages if package.name == "flash-attn")
    assert flash.version is None
    assert isinstance(flash.archive, PackageArchive)
    assert flash.archive.url == f"{NOWHERE.release_url}/releases/download/v2.5.8/{FLASH.replace('+', '%2B')}"


@pytest.mark.parametrize(("python", "machine"), [("3.7", "x86_64"), (PYTHON, "aarch64"), ("3.99", "x86_64")])
def test_it_is_for_its_target_alone(python: str, machine: str) -> None:
    with pytest.raises(PylockSelectError):
        selected(parsed(*sample_packages(NOWHERE)), python, machine)


def test_the_document_holds_what_the_standard_asks_and_no_time() -> None:
    text = render_pylock(target_lock(sample_packages(NOWHERE)))
    document = tomllib.loads(text)
    assert document["lock-version"] == "1.0"
    assert document["created-by"] == "stackfix"
    assert document["requires-python"] == f">={PYTHON}"
    assert document["environments"] == [environment_marker(HERE)]
    assert "tool" not in document
    assert "2024" not in text
    assert "index" not in document["packages"][0]
    tiny = next(package for package in document["packages"] if package["name"] == "tiny-server")
    assert tiny["dependencies"] == [{"name": "filelock"}]
    assert [wheel["name"] for wheel in tiny["wheels"]] == sorted(wheel["name"] for wheel in tiny["wheels"])


def test_the_second_step_is_named_and_left_out() -> None:
    later = package("flash-attn", "2.5.8", (index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"x"),), step=2)
    torch = package("torch", "2.3.1", (index_file("torch", "torch-2.3.1-py3-none-any.whl", b"x"),),
                    requires=("flash-attn",))
    lock = parsed(later, torch, second_step="requirements-flash-attn.txt")
    assert [str(package.name) for package in lock.packages] == ["torch"]
    assert not lock.packages[0].dependencies
    assert lock.tool == {"stackfix": {"second-step": "requirements-flash-attn.txt"}}


def test_an_sdist_of_the_first_step_is_an_sdist() -> None:
    sdist = index_file("a", "a-1.tar.gz", b"x")
    lock = parsed(package("a", "1", (sdist,), requires_python=">=3.8"))
    assert lock.packages[0].sdist is not None
    assert lock.packages[0].sdist.hashes == {"sha256": sdist.sha256}
    assert str(lock.packages[0].requires_python) == ">=3.8"


def test_what_is_no_specifier_is_left_out() -> None:
    wheel = index_file("a", "a-1-py3-none-any.whl", b"x", size=None)
    lock = parsed(package("a", "1", (wheel,), requires_python=">=3.8.*"))
    assert lock.packages[0].requires_python is None
    assert lock.packages[0].wheels is not None
    assert lock.packages[0].wheels[0].size is None


def test_no_credential_stays() -> None:
    wheel = index_file("a", "a-1-py3-none-any.whl", b"x", url="https://me:secret@host/a-1-py3-none-any.whl#sha256=0")
    text = render_pylock(target_lock((package("a", "1", (wheel,)),)))
    assert "secret" not in text
    assert 'url = "https://host/a-1-py3-none-any.whl"' in text


def test_the_name_is_one_that_the_standard_knows() -> None:
    from stackfix.write.names import pylock_name

    for suffix in ("", "train", "cp311-linux-64", "train-cp311-linux-64"):
        assert is_valid_pylock_path(Path(pylock_name(suffix)))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("store")) as started:
        yield started


def uv_install(pylock: Path, tmp_path: Path, *words: str) -> Run:
    """A dry run into an empty folder; no index: the file's own URLs are all it needs."""
    return run([sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--target",
                tmp_path / "target", "--no-index", "-r", pylock, *words],
               cwd=tmp_path, env=clean_environment(UV_CACHE_DIR=str(tmp_path / "cache")))


def test_uv_installs_it_with_hashes(servers: Loopback, tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(render_pylock(target_lock(sample_packages(servers))), encoding="utf-8")
    done = uv_install(path, tmp_path, "--require-hashes")
    assert done.status == 0, done
    assert {folder.name for folder in (tmp_path / "target").glob("*.dist-info")} == INSTALLED


def pip_install(pylock: Path, tmp_path: Path) -> Run:
    """The same through pip, where pip can read it; it asks no index either."""
    said = run([sys.executable, "-m", "pip", "install", "--help"], cwd=tmp_path)
    if "pylock.toml" not in said.stdout:
        pytest.skip("this pip cannot read pylock.toml")
    return run([sys.executable, "-m", "pip", "install", "--target", tmp_path / "target", "--no-index",
                "--no-cache-dir", "-r", pylock], cwd=tmp_path)


def test_pip_installs_it(servers: Loopback, tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(render_pylock(target_lock(sample_packages(servers))), encoding="utf-8")
    done = pip_install(path, tmp_path)
    assert done.status == 0, done
    assert {folder.name for folder in (tmp_path / "target").glob("*.dist-info")} == INSTALLED


def test_pip_refuses_an_altered_hash(servers: Loopback, tmp_path: Path) -> None:
    text = render_pylock(target_lock(sample_packages(servers)))
    digest = text.rpartition('sha256 = "')[2][:64]
    path = tmp_path / "pylock.toml"
    path.write_text(text.replace(digest, ("0" if digest[0] != "0" else "1") + digest[1:]), encoding="utf-8")
    done = pip_install(path, tmp_path)
    assert done.status != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_uv_refuses_an_altered_hash(servers: Loopback, tmp_path: Path) -> None:
    text = render_pylock(target_lock(sample_packages(servers)))
    digest = next(file.sha256 for package in sample_packages(servers) for file in package.files
                  if package.name == "einops")
    assert digest is not None
    altered = ("0" if digest[0] != "0" else "1") + digest[1:]
    path = tmp_path / "pylock.toml"
    path.write_text(text.replace(digest, altered), encoding="utf-8")
    done = uv_install(path, tmp_path)
    assert done.status != 0
    assert "Hash mismatch" in done.stderr


def test_uv_refuses_it_for_another_python(servers: Loopback, tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(render_pylock(target_lock(sample_packages(servers), replace(HERE, python="3.99"))),
                    encoding="utf-8")
    done = uv_install(path, tmp_path, "--dry-run")
    assert done.status != 0
    assert "3.99" in done.stderr
