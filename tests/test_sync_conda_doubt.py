"""`stackfix sync` of small explicit locks from loopback: what it has doubts about, and where it asks before it acts."""

from __future__ import annotations

import bz2
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

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
