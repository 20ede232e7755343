"""conda-lock.yml: what conda-lock 4 reads in it, and what may not stand there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stackfix.conda.records import Channel, CondaTarget, Departure
from stackfix.errors import BadInput
from stackfix.write.conda_clean import conda_url, dependency_map
from stackfix.write.conda_lock import render_conda_lock
from stackfix.write.environment import render_environment
from stackfix.write.explicit import render_explicit
from tests.conda_samples import ARM, COMMAND, FORGE, SNAPSHOT, TORCH, record, target
from tests.judges import conda_lock as judge
from tests.judges import conda_rattler


def document(*targets: CondaTarget, **more: Any) -> Any:
    return yaml.load(render_conda_lock(targets, command=COMMAND, **more), Loader=yaml.CSafeLoader)


def written(folder: Path, *targets: CondaTarget) -> tuple[Path, dict[str, Path], dict[str, Path]]:
    """conda-lock.yml, and by platform the explicit and environment files."""
    lock = folder / "conda-lock.yml"
    lock.write_text(render_conda_lock(targets, command=COMMAND), encoding="utf-8")
    explicit, environments = {}, {}
    for one in targets:
        platform = one.target.platform
        explicit[platform] = folder / f"conda-{platform}.lock"
        explicit[platform].write_text(render_explicit(one, command=COMMAND), encoding="utf-8")
        environments[platform] = folder / f"environment-{platform}.yml"
        environments[platform].write_text(render_environment(one, command=COMMAND), encoding="utf-8")
    return lock, explicit, environments


@pytest.mark.parametrize("targets", [
    (target(),), (target(pip=()),), (target(), target(where=ARM)), (target(snapshot=SNAPSHOT),),
    (target(channels=(FORGE, TORCH)),), (target(layout="wheels", records=()),),
], ids=["mixed", "no pip", "two platforms", "snapshot", "other order", "pip alone"])
def test_conda_lock_reads_it_renders_our_explicit_file_and_computes_our_hash(
    targets: tuple[CondaTarget, ...], tmp_path: Path,
) -> None:
    lock, explicit, environments = written(tmp_path, *targets)
    assert judge.complaints(lock, tmp_path, explicit=explicit, environments=environments) == []


def test_the_judge_sees_what_is_wrong(tmp_path: Path) -> None:
    lock, explicit, environments = written(tmp_path, target())
    text = lock.read_text(encoding="utf-8")
    for wrong in (text.replace("optional: false", "optional: maybe", 1), text.replace("version: 1\n", "version: 9\n"),
                  re.sub(r"    md5: \S+\n", "", text, count=1), text.replace("'0.1'", "0.1", 1)):
        assert wrong != text
        lock.write_text(wrong, encoding="utf-8")
        assert list(judge.model_complaints(lock))
    lock.write_text(text.replace("numpy-1.10", "numpy-1.11"), encoding="utf-8")
    assert list(judge.explicit_complaints(lock, explicit))
    lock.write_text(re.sub(r"(content_hash:\n    linux-64: )\S", r"\1z", text), encoding="utf-8")
    assert list(judge.hash_complaints(lock, tmp_path, environments))


def test_the_hash_tells_each_change_of_what_is_asked() -> None:
    def content_hash(one: CondaTarget) -> str:
        return str(document(one)["metadata"]["content_hash"]["linux-64"])

    first = target()
    others = [
        replace(first, channels=(FORGE, TORCH)), replace(first, records=first.records[1:]),
        replace(first, records=(replace(first.records[0], build="other_0",
                                        url=first.records[0].url.replace("conda_forge", "other_0")),
                                *first.records[1:])),
        replace(first, pip=first.pip[1:]), replace(first, pip=()),
        replace(first, pip=(replace(first.pip[0], extras=()), *first.pip[1:])),
    ]
    assert len({content_hash(one) for one in (first, *others)}) == len(others) + 1
    assert content_hash(replace(first, snapshot=SNAPSHOT)) == content_hash(first)


def test_packages_are_whole_and_in_conda_locks_order() -> None:
    packages = document(target())["package"]
    assert [(entry["manager"], entry["name"]) for entry in packages] == sorted(
        (entry["manager"], entry["name"]) for entry in packages)
    numpy = next(entry for entry in packages if entry["name"] == "numpy")
    assert numpy["version"] == "1.10"
    assert numpy["dependencies"]["libblas"] == ">=3.9.0,<4.0a0 *mkl"
    assert numpy["dependencies"]["__cuda"] == ""
    assert sorted(numpy["hash"]) == ["md5", "sha256"]
    flash = packages[-1]
    assert (flash["name"], flash["version"], flash["manager"]) == ("flash-attn", "2.5.8", "pip")
    assert "%2Bcu122" in flash["url"]
    assert "source" not in flash
    assert all(entry["category"] == "main" and entry["optional"] is False for entry in packages)


def test_metadata_tells_what_conda_lock_has_a_place_for() -> None:
    metadata = document(target(snapshot=SNAPSHOT), target(where=ARM), second_steps=("requirements-flash-attn.txt",))[
        "metadata"]
    assert metadata["platforms"] == ["linux-64", "linux-aarch64"]
    assert metadata["channels"] == [{"url": name, "used_env_vars": []} for name in ("pytorch", "conda-forge")]
    assert metadata["sources"] == [f"environment-cp{ARM.python.replace('.', '')}-{platform}.yml"
                                   for platform in ("linux-64", "linux-aarch64")]
    own = metadata["custom_metadata"]
    assert own["created-by"] == "stackfix"
    assert own["second-step"] == "requirements-flash-attn.txt"
    assert "2026-10-30" in own["snapshot-linux-64"]
    assert "snapshot-linux-aarch64" not in own
    made = render_conda_lock((target(priority="disabled"),), command=COMMAND)
    assert "    channel-priority-linux-64: disabled\n" in made
    assert "# channel priority: disabled, so a package may come from any of the channels" in made
    assert "channel-priority-linux-64" not in own
    assert metadata.keys() == {"content_hash", "channels", "platforms", "sources", "custom_metadata"}


def test_the_header_names_the_targets_the_snapshot_and_each_difference() -> None:
    unlike = Departure(about="cuda", pip="12.1", conda="12.4", reason="conda-forge never built it\nfor 12.1", source="",
                       breaks=False)
    text = render_conda_lock((target(snapshot=SNAPSHOT, departures=(unlike,)),), command=COMMAND,
                             second_steps=("requirements-flash-attn.txt",))
    header = text.partition("version: 1")[0]
    assert header.startswith("#\n# This file is locked by stackfix for cp3")
    assert "2026-10-30, 0123456789ab" in header
    assert "--offline" not in header
    assert "# differs from the pip lock in cuda: 12.4 here, 12.1 there; conda-forge never built it for 12.1\n" in header
    assert "# second step: requirements-flash-attn.txt\n" in header
    assert all(line.startswith("#") for line in header.splitlines())


def test_the_same_target_gives_the_same_bytes_in_any_order() -> None:
    one, other = target(), target(where=ARM)
    assert render_conda_lock((one, other), command=COMMAND) == render_conda_lock((other, one), command=COMMAND)
    turned = replace(one, pip=one.pip[::-1], records=one.records[::-1])
    assert document(turned)["package"] == document(one)["package"]


@pytest.mark.parametrize(("records", "named", "reason"), [
    ((record("a", "1", "0", md5=None),), "a-1-0.conda", "no usable md5"),
    ((record("a", "1", "0", md5="abc"),), "a-1-0.conda", "no usable md5"),
    ((record("a", "1", "0", sha256="abc"),), "a-1-0.conda", "a sha256 that is none"),
    ((record("a", "1", "0", url="https://evil.example/linux-64/a-1-0.conda"),), "a-1-0.conda", "is not in linux-64"),
    ((record("a", "1", "0", url=f"{FORGE.url}/linux-64/../../b/a-1-0.conda"),), "a-1-0.conda", "is not in linux-64"),
    ((record("a", "1", "0", url=f"{FORGE.url}/noarch/a-1-0.conda"),), "a-1-0.conda", "is not in linux-64"),
    ((record("a", "1", "0", channel=Channel(name="x", url="https://x.example")),), "a-1-0.conda", "none of the chan"),
    ((record("a", "1", "0", subdir="linux-aarch64"),), "a-1-0.conda", "is for linux-aarch64, the lock for linux-64"),
    ((record("a", "1", "0", "[what]"),), "[what]", "is no dependency"),
])
def test_a_package_that_cannot_be_locked_is_named(records: tuple[Any, ...], named: str, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        render_conda_lock((target(records=records),), command=COMMAND)
    assert refused.value.thing == named
    assert reason in refused.value.reason


def test_a_file_holds_one_python_and_each_platform_once() -> None:
    other = target(where=replace(ARM, python="3.9"))
    for targets in ((target(), other), (target(), target())):
        with pytest.raises(BadInput, match="holds"):
            render_conda_lock(targets, command=COMMAND)


@pytest.mark.parametrize(("url", "locked"), [
    ("https://user:secret@host.example/c/noarch/a-1-0.conda", "https://host.example/c/noarch/a-1-0.conda"),
    ("https://host.example/t/tk-secret/c/noarch/a-1-0.conda", "https://host.example/c/noarch/a-1-0.conda"),
    ("https://host.example/c/a-1-0.conda?token=secret#secret", "https://host.example/c/a-1-0.conda"),
    ("https://host.example/c/${HOME}/$USER/a-1-0.conda", "https://host.example/c/%24%7BHOME%7D/%24USER/a-1-0.conda"),
    ("https://host.example/c/a-1!2.0+x-0.conda", "https://host.example/c/a-1!2.0+x-0.conda"),
    ("https://host.example/c d\n/a%20b-1-0.conda", "https://host.example/c%20d/a%20b-1-0.conda"),
    ("file:///channels/c/noarch/a-1-0.conda", "file:///channels/c/noarch/a-1-0.conda"),
])
def test_addresses_give_nothing_away(url: str, locked: str) -> None:
    assert conda_url(url) == locked
    assert "secret" not in conda_url(url)


@pytest.mark.parametrize("url", ["", "a-1-0.conda", "/channels/a-1-0.conda", "ftp://x.example/a", "https:///a", "//x"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(BadInput, match="only an http, https or file address"):
        conda_url(url)


def test_a_secret_of_a_channel_stands_in_no_file() -> None:
    secret = Channel(name="https://u:hunter2@host.example/t/tk-hunter2/c", url="https://u:hunter2@host.example/c")
    one = target(channels=(secret,), records=(record("a", "1", "0", channel=secret),))
    for text in (render_conda_lock((one,), command="stackfix lock --channel https://u:hunter2@host.example/c"),
                 render_explicit(one, command=COMMAND), render_environment(one, command=COMMAND)):
        assert "hunter2" not in text
        assert "https://host.example/c" in text


def test_a_folder_that_the_user_named_stands_there_and_is_told() -> None:
    folder = Channel(name="file:///channels/mine", url="file:///channels/mine")
    one = target(channels=(folder,), records=(record("a", "1", "0", channel=folder),))
    text = render_conda_lock((one,), command=COMMAND)
    assert "url: file:///channels/mine/linux-64/a-1-0.conda\n" in text
    assert "it installs only where that folder is" in text


@pytest.mark.parametrize(("depends", "found"), [
    (("a",), {"a": ""}), (("a >=1", "b  *  x*"), {"a": ">=1", "b": "* x*"}), (("b", "a"), {"a": "", "b": ""}),
    (("a * x*", "a >=1"), {"a": ">=1 x*"}), (("a >=1", "a <2"), {"a": ">=1,<2"}), (("a", "a >=1"), {"a": ">=1"}),
    (("a >=1", "a >=1"), {"a": ">=1"}), (("a * x*", "a"), {"a": "* x*"}), (("conda-forge::A>=1",), {"a": ">=1"}),
])
def test_dependencies_as_conda_lock_has_them(depends: tuple[str, ...], found: dict[str, str]) -> None:
    assert dependency_map(depends) == found
    assert list(dependency_map(depends)) == sorted(found)


def test_conda_lock_finds_it_up_to_date_and_solves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    """`conda-lock lock --check-input-hash -f environment.yml`, with a conda that is none."""
    monkeypatch.chdir(tmp_path)
    lock, _, environments = written(tmp_path, target())
    (tmp_path / "names.json").write_text("{}", encoding="utf-8")
    before = lock.read_bytes()

    def ask() -> None:
        judge.part("conda_lock").make_lock_files(
            conda=tmp_path / "no-conda", src_files=[environments["linux-64"]], kinds=["lock"], lockfile_path=lock,
            platform_overrides=["linux-64"], check_input_hash=True, mapping_url=str(tmp_path / "names.json"))

    ask()
    assert "already locked for ['linux-64']. Skipping solve." in capsys.readouterr().err
    assert lock.read_bytes() == before
    environment = environments["linux-64"]
    other = environment.read_text(encoding="utf-8").replace("numpy=1.10", "numpy=1.11")
    environment.write_text(other, encoding="utf-8")
    with pytest.raises(OSError, match="no-conda"):
        ask()


def test_rattler_reads_it_too(tmp_path: Path) -> None:
    lock, _, _ = written(tmp_path, target(), target(where=ARM))
    assert list(conda_rattler.conda_lock_complaints(lock)) == []
    text = lock.read_text(encoding="utf-8")
    lock.write_text(text.replace("url: https://channels", "url: HTTPS://channels", 1), encoding="utf-8")
    assert len(list(conda_rattler.conda_lock_complaints(lock))) == 1
