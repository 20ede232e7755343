"""`stackfix sync` of small explicit locks from loopback: what it has doubts about, and where it asks before it acts."""

from __future__ import annotations

import bz2
import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stackfix.conda.records import CondaRecord
from tests.cli_world import Say, settle
from tests.conda_packages import SUBDIR
from tests.conda_sync_world import Files, Shelf, archive, shelf


@pytest.fixture(scope="module")
def channel() -> Iterator[Shelf]:
    with shelf() as found:
        yield found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path, "http://127.0.0.1:9/simple")


def record_of(name: str, version: str = "1.0") -> CondaRecord:
    return CondaRecord(name=name, version=version, build="0", build_number=0, subdir=SUBDIR, channel="", file_name="",
                       url="", md5=None, sha256=None, size=None, depends=(), constrains=(), noarch=None, license=None)


def put(channel: Shelf, name: str, files: Files | None = None, version: str = "1.0") -> CondaRecord:
    record = record_of(name, version)
    return channel.put(record, archive(record, files or {f"share/{name}/about.txt": name.encode()}, {}))


def lock(path: str, *records: CondaRecord) -> str:
    Path(path).write_text("".join(["@EXPLICIT\n", *(f"{one.url}#{one.md5}\n" for one in records)]), encoding="utf-8")
    return path


def without_hashes(packed: bytes) -> bytes:
    """The archive as older builders wrote it: rows of paths.json have no sha256."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(bz2.decompress(packed))) as source, \
            tarfile.open(fileobj=made, mode="w") as tar:
        for member in source:
            content = (source.extractfile(member) or io.BytesIO()).read()
            if member.name == "info/paths.json":
                rows = [{"_path": row["_path"], "path_type": row["path_type"]} for row in json.loads(content)["paths"]]
                content = json.dumps({"paths": rows, "paths_version": 1}).encode()
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return bz2.compress(made.getvalue(), 1)


def test_a_file_without_a_stated_hash_that_was_changed_is_fetched_anew(channel: Shelf, say: Say) -> None:
    """An environment shares it by hard links: what it was when it was unpacked is remembered."""
    old = record_of("old-builder")
    record = channel.put(old, without_hashes(archive(old, {"share/old/about.txt": b"old"}, {})))
    name = lock("old.lock", record)
    for prefix in ("one", "two"):
        assert say("sync", name, "--prefix", prefix).status == 0
    asked = len(channel.asked)
    with Path("one/share/old/about.txt").open("r+b") as stream:
        stream.write(b"OLD")
    assert Path("two/share/old/about.txt").read_bytes() == b"OLD"
    said = say("sync", name, "--prefix", "three")
    assert said.status == 0, said
    assert Path("three/share/old/about.txt").read_bytes() == b"old"
    assert len(channel.asked) == asked + 1


def names(prefix: str) -> set[str]:
    return {path.name.split("-")[0] for path in Path(prefix, "conda-meta").glob("*.json")}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("program", "folder", "reason"), [
    ("conda", None, "is the environment of conda itself, which the lock would remove; 1 packages"),
    ("micromamba", None, "is the environment of micromamba itself, which the lock would remove"),
    (None, "envs", "is the base environment of conda, as it seems (envs/)"),
    (None, "condabin", "is the base environment of conda, as it seems (condabin/)"),
    (None, "MAMBA_ROOT_PREFIX", "is the base environment of conda, as it seems (MAMBA_ROOT_PREFIX)"),
    (None, "CONDA_EXE", "is the base environment of conda, as it seems (CONDA_EXE)"),
    (None, None, "is the environment that this command runs from"),
])
def test_what_others_run_from_is_changed_only_when_that_is_said(
    program: str | None, folder: str | None, reason: str, named: bool, channel: Shelf, say: Say,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = lock("first.lock", put(channel, program or "some"))
    second = lock("second.lock", put(channel, "another"))
    assert say("sync", first, "--prefix", "env").status == 0
    if folder is None:
        monkeypatch.setattr("sys.prefix", "env" if program is None else "elsewhere")
    elif folder.isupper():
        monkeypatch.setenv(folder, str(Path("env" if "ROOT" in folder else "env/bin/conda").absolute()))
    else:
        Path("env", folder).mkdir()
    if not named:
        monkeypatch.setenv("CONDA_PREFIX", str(Path("env").absolute()))
    where = ("--prefix", "env") if named else ()
    assert say("sync", first, *where).status == 0       # nothing to do is nothing to refuse
    for dry in ((), ("--dry-run",)):
        said = say("sync", second, *where, *dry)
        assert (said.status, reason in said.err) == (2, True), said
        assert names("env") == {program or "some"}
    said = say("sync", second, *where, "--allow-base")
    assert said.status == 0, said
    assert names("env") == {"another"}


def test_pip_packages_of_the_python_that_goes_are_told_before(channel: Shelf, say: Say) -> None:
    pythons = {minor: put(channel, "python", {f"lib/python{minor}/os.py": b""}, version=f"{minor}.1")
               for minor in ("3.11", "3.12")}
    owned: Files = {"lib/python3.11/site-packages/aa-1.dist-info/METADATA": b"Name: aa\nVersion: 1\n"}
    first = lock("first.lock", pythons["3.11"], put(channel, "aa", owned))
    second = lock("second.lock", pythons["3.12"])
    assert say("sync", first, "--prefix", "env").status == 0
    for project in ("mine", "other"):
        folder = Path(f"env/lib/python3.11/site-packages/{project}-1.dist-info")
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {project}\nVersion: 1\n")
    told = ("Python 3.12, which replaces 3.11, does not see what pip installed here and the lock does not name: "
            "mine, other")
    assert told not in say("sync", first, "--prefix", "env").err
    for dry, status in (("--dry-run", 1), ("-v", 0)):
        said = say("sync", second, "--prefix", "env", dry)
        assert (said.status, f"{told}; install" in said.err) == (status, True), said
    assert told not in say("sync", second, "--prefix", "env").err


@pytest.mark.parametrize("stated", [
    {"name": "aa", "version": "1.0", "build": "0"}, {"name": "aa", "version": "1.0", "build": "0", "files": None},
    {"name": "aa", "version": "1.0", "build": "0", "fn": 1, "url": [], "depends": "x"}, {"name": "aa"}, [], "x"])
def test_a_record_that_cannot_be_read_is_named_and_nothing_is_changed(stated: Any, channel: Shelf, say: Say) -> None:
    name = lock("a.lock", put(channel, "bb"))
    Path("env/conda-meta").mkdir(parents=True)
    Path("env/conda-meta/aa-1.0-0.json").write_text(json.dumps(stated))
    said = say("sync", name, "--prefix", "env")
    assert (said.status, "env/conda-meta/aa-1.0-0.json: is no record" in said.err) == (3, True), said
    assert [path.name for path in Path("env").rglob("*")] == ["conda-meta", "aa-1.0-0.json"]


def test_two_records_of_one_package_are_named(channel: Shelf, say: Say) -> None:
    """The files of the one that is forgotten would be nobody's."""
    name = lock("a.lock", put(channel, "bb"))
    for version in ("0.9", "1.0"):
        assert say("sync", lock("aa.lock", put(channel, "aa", version=version)), "--prefix", version).status == 0
    Path("0.9/conda-meta/aa-1.0-0.json").write_bytes(Path("1.0/conda-meta/aa-1.0-0.json").read_bytes())
    for command in (("sync", name, "--prefix", "0.9"), ("diff", "0.9", "1.0")):
        said = say(*command)
        assert said.status == 3, said
        assert "aa-0.9-0.json: is a second record of aa, beside aa-1.0-0.json" in said.err
    assert names("0.9") == {"aa"}


def test_a_fifo_is_not_waited_for(channel: Shelf, say: Say) -> None:
    os.mkfifo("a.lock")
    said = say("sync", "a.lock", "--prefix", "env")
    assert (said.status, "is not a regular file" in said.err) == (2, True), said
    name = lock("b.lock", put(channel, "bb"))
    Path("env/conda-meta").mkdir(parents=True)
    os.mkfifo("env/conda-meta/aa-1.0-0.json")
    assert say("sync", name, "--prefix", "env").status == 3
