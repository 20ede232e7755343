"""The bundled conda records: unpacked once, checked at each opening, and never half."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from pathlib import Path

import pytest

from stackfix.errors import Unreachable
from stackfix.matrix.toml_files import matrix_directory
from stackfix.sources.conda_snapshot import MANIFEST, BundledRecords, read_manifest
from stackfix.sources.toml import loads

BUNDLED = matrix_directory() / "conda"
SMALL = ("pytorch", "linux-64")     # the smallest file


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stated(channel: str, subdir: str) -> str:
    files = read_manifest(BUNDLED).files
    return next(file.sha256 for file in files if (file.channel, file.subdir) == (channel, subdir))


def test_each_file_is_the_one_that_the_manifest_names(tmp_path: Path) -> None:
    records = BundledRecords(BUNDLED, tmp_path)
    assert {"conda-forge", "pytorch", "nvidia"} == set(records.names())
    for file in records.files:
        path = records.repodata(file.channel, file.subdir)
        assert path is not None
        assert sha256(path) == file.sha256
    assert {path.name for path in BUNDLED.iterdir()} == {MANIFEST, *(file.name for file in records.files)}
    assert records.repodata("pytorch", "linux-aarch64") is None
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 2_500_000


def test_what_is_unpacked_is_used_again(tmp_path: Path) -> None:
    first = BundledRecords(BUNDLED, tmp_path).repodata(*SMALL)
    assert first is not None
    before = first.stat().st_ino
    again = BundledRecords(BUNDLED, tmp_path).repodata(*SMALL)
    assert again == first
    assert again.stat().st_ino == before


@pytest.mark.parametrize("damage", [b"", b"{}", None], ids=["empty", "another", "a letter"])
def test_a_damaged_copy_is_made_anew(damage: bytes | None, tmp_path: Path) -> None:
    path = BundledRecords(BUNDLED, tmp_path).repodata(*SMALL)
    assert path is not None
    path.write_bytes(path.read_bytes().replace(b"pytorch", b"pitorch", 1) if damage is None else damage)
    again = BundledRecords(BUNDLED, tmp_path).repodata(*SMALL)
    assert again == path
    assert sha256(path) == stated(*SMALL)


def test_without_a_cache_a_temporary_folder_serves(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.write_text("", encoding="utf-8")
    records = BundledRecords(BUNDLED, nowhere)
    path = records.repodata(*SMALL)
    assert path is not None
    assert sha256(path) == stated(*SMALL)
    assert records.repodata(*SMALL) == path
    records.close()
    assert not path.exists()


def test_nothing_is_left_beside(tmp_path: Path) -> None:
    """Many at once, as runs of several processes are: each finds a whole file."""
    found: list[str] = []

    def unpack() -> None:
        path = BundledRecords(BUNDLED, tmp_path).repodata(*SMALL)
        found.append("" if path is None else sha256(path))

    threads = [threading.Thread(target=unpack) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {stated(*SMALL)}
    assert len(found) == 8
    [folder] = tmp_path.iterdir()
    assert [path.name for path in folder.iterdir()] == ["pytorch-linux-64.json"]


FAULTS = {
    "no manifest": (MANIFEST, None, "cannot be read"),
    "no toml": (MANIFEST, b"date = ", "is damaged"),
    "half a manifest": (MANIFEST, b"date = '2026-01-01'\n", "is damaged"),
    "no file": ("pytorch-linux-64.json.xz", None, "cannot be unpacked"),
    "no xz": ("pytorch-linux-64.json.xz", b"{}", "cannot be unpacked"),
    "cut off": ("pytorch-linux-64.json.xz", (BUNDLED / "pytorch-linux-64.json.xz").read_bytes()[:-40],
                "cannot be unpacked"),
    "another": ("pytorch-linux-64.json.xz", (BUNDLED / "pytorch-noarch.json.xz").read_bytes(),
                "is not the file that snapshot.toml names"),
}


@pytest.mark.parametrize(("name", "content", "said"), FAULTS.values(), ids=FAULTS)
def test_a_damaged_installation_is_one_error(name: str, content: bytes | None, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "conda"
    shutil.copytree(BUNDLED, folder)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(Unreachable) as fault:
        BundledRecords(folder, tmp_path / "cache").repodata(*SMALL)
    assert said in fault.value.what()
    assert name in fault.value.what()
    assert fault.value.next_step() == "install stackfix again"
    assert not list(tmp_path.glob("cache/*/*"))


def test_what_was_inferred_is_named(tmp_path: Path) -> None:
    inferred = loads((BUNDLED / MANIFEST).read_text(encoding="utf-8"))["inferred"]
    records = BundledRecords(BUNDLED, tmp_path)
    assert len(inferred) == 65
    for place in {key.rpartition("/")[0] for key in inferred}:
        path = records.repodata(*place.split("/"))
        assert path is not None
        document = json.loads(path.read_bytes())
        rows = document["packages"] | document["packages.conda"]
        for file, constrains in ((key.rpartition("/")[2], each) for key, each in inferred.items() if place in key):
            assert rows[file]["constrains"] == constrains
            assert "timestamp" not in rows[file]


def test_what_is_missing_is_said() -> None:
    manifest = read_manifest(BUNDLED)
    holes = " ".join(manifest.holes)
    for known in ("no torch 2.2", "inferred", "state no time", "flash-attn: one build", "no cuda-version 12.2, 12.7"):
        assert known in holes
    assert len(manifest.digest) == 12
    assert manifest.source
