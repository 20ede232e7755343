"""What is kept of wheels: read instead of a download, verified, and safe against a kill."""

from __future__ import annotations

import fcntl
import io
import json
import os
import tempfile
import threading
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.almanac.extract import Extracted
from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.almanac.store import (
    default_store,
    kept_tables,
    place_of,
    read_kept,
    tables,
    tell,
    work_folder,
    write_kept,
)
from stackfix.errors import BadInput, Unreachable
from tests.almanac_wheels import needs_gcc, only_from, shared_object, wheel

WHEEL = ManifestWheel(package="some", version="1.0", file="some-1.0-py3-none-any.whl", sha256="0" * 64)
FOUND = Extracted(left=("x/libb.so",), tables=WheelTables(wheel=WHEEL, requires=("other",), libraries=(LibraryTables(
    path="x/liba.so", soname=None, needed=("libc.so.6",), exports=("a", "\udcff", "é"),
    wanted=(WantedName(name="b", version="V", file="libb.so", weak=False),
            WantedName(name="c", version=None, file=None, weak=True))),)))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    only_from(tmp_path / "index", monkeypatch)
    return tmp_path / "index"


def two_libraries(folder: Path) -> ManifestWheel:
    made = folder.with_name("made")
    return wheel(folder, "some", "1.0", {
        f"x/lib{name}.so": shared_object(made, f"lib{name}.so", [name]) for name in ("a", "b")})


def forget(index: Path) -> None:
    """Nothing can be downloaded from now on."""
    for path in index.glob("*"):
        path.unlink()


@needs_gcc
def test_a_second_time_nothing_is_downloaded(index: Path, tmp_path: Path) -> None:
    row, store = two_libraries(index), tmp_path / "new" / "store"
    first = tables(row, store, lambda _: True)
    assert [each.exports for each in first.libraries] == [("a",), ("b",)]
    forget(index)
    assert tables(row, store, lambda _: True) == first
    assert [each.path for each in tables(row, store, lambda path: path.endswith("b.so")).libraries] == ["x/libb.so"]
    assert [path.name for path in store.iterdir()] == [f"{row.sha256}.json.z"]


@needs_gcc
def test_what_was_not_wanted_before_is_read_then(index: Path, tmp_path: Path) -> None:
    row = two_libraries(index)
    assert kept_tables(row, tmp_path, lambda _: True) is None
    assert len(tables(row, tmp_path, lambda path: path.endswith("a.so")).libraries) == 1
    assert kept_tables(row, tmp_path, lambda _: True) is None
    first = kept_tables(row, tmp_path, lambda path: path.endswith("a.so"))
    assert first is not None
    assert [each.path for each in first.libraries] == ["x/liba.so"]
    assert [each.path for each in tables(row, tmp_path, lambda path: path.endswith("b.so")).libraries] == ["x/libb.so"]
    forget(index)
    assert len(tables(row, tmp_path, lambda _: True).libraries) == 2


@needs_gcc
def test_a_wrong_hash_leaves_nothing(index: Path, tmp_path: Path) -> None:
    row, store = replace(two_libraries(index), sha256="0" * 64), tmp_path / "store"
    with pytest.raises(BadInput, match="its sha256 is"):
        tables(row, store, lambda _: True)
    assert list(store.iterdir()) == []


def test_every_kind_of_name_comes_back(tmp_path: Path) -> None:
    write_kept(tmp_path, FOUND)
    assert read_kept(tmp_path, WHEEL) == FOUND
    first = place_of(tmp_path, WHEEL).read_bytes()
    write_kept(tmp_path, FOUND)
    assert place_of(tmp_path, WHEEL).read_bytes() == first


def test_a_damaged_file_is_read_anew_from_the_wheel(tmp_path: Path) -> None:
    write_kept(tmp_path, FOUND)
    place = place_of(tmp_path, WHEEL)
    whole = place.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], b"y" + whole[1:], whole[:-3] + b"abc", whole + b"more",
                    zlib.compress(b"[]"), zlib.compress(b"{}"), zlib.compress(b"[" * 100_000), zlib.compress(b"\xff")):
        place.write_bytes(damaged)
        assert read_kept(tmp_path, WHEEL) is None


@pytest.mark.parametrize("change", [{"form": 0}, {"wheel": ["some", "1.0", "other.whl", "0" * 64]}])
def test_another_form_or_wheel_does_not_count(tmp_path: Path, change: dict[str, object]) -> None:
    write_kept(tmp_path, FOUND)
    place = place_of(tmp_path, WHEEL)
    document = json.loads(zlib.decompress(place.read_bytes()))
    assert read_kept(tmp_path, WHEEL) is not None
    place.write_bytes(zlib.compress(json.dumps({**document, **change}).encode()))
    assert read_kept(tmp_path, WHEEL) is None


def test_what_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.almanac.store.MOST_TEXT", 1 << 20)
    place_of(tmp_path, WHEEL).write_bytes(zlib.compress(b" " * (2 << 20)))
    assert read_kept(tmp_path, WHEEL) is None


def test_the_folder_of_a_killed_run_is_removed_and_no_other(tmp_path: Path) -> None:
    killed, held = tmp_path / ".work-killed", tmp_path / ".work-held"
    for folder in (killed, held):
        folder.mkdir()
        (folder / "torch.whl").write_bytes(b"half")
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with work_folder(tmp_path) as mine:
            assert sorted(tmp_path.iterdir()) == sorted([held, mine])
            with work_folder(tmp_path) as other:
                assert other != mine
                assert mine.is_dir()
        assert list(tmp_path.iterdir()) == [held]
    finally:
        os.close(descriptor)


def test_no_other_run_sweeps_a_folder_away_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = list[threading.Thread]()
    make, swept = tempfile.mkdtemp, threading.Event()

    def other_run() -> None:
        with work_folder(tmp_path):
            swept.set()

    def made(prefix: str, dir: Path) -> str:        # noqa: A002 - as it is called
        folder = make(prefix=prefix, dir=dir)
        if not others:
            others.append(threading.Thread(target=other_run))
            others[0].start()
            swept.wait(0.3)     # the other run must not get so far
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", made)
    with work_folder(tmp_path) as mine:
        others[0].join()
        assert mine.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_a_download_is_told(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", stream)
    tell("a.whl: downloading", lasting=True)
    tell("a.whl: reading")
    tell("")
    assert stream.getvalue() == (
        "\r\x1b[Ka.whl: downloading\r\x1b[Ka.whl: reading\r\x1b[K" if terminal else "a.whl: downloading\n")


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unreachable, match="file") as caught, work_folder(tmp_path / "file"):
        pass
    assert caught.value.next_step() == "name another folder with --store DIR"
    with pytest.raises(Unreachable, match="cannot be written"):
        write_kept(tmp_path / "none", FOUND)


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"STACKFIX_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}, "/c/almanac"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/stackfix/almanac"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/.cache/stackfix/almanac"),
        ({}, "/home/.cache/stackfix/almanac"),
    ],
)
def test_where_the_store_is(environ: dict[str, str], place: str) -> None:
    assert default_store(environ, Path("/home")) == Path(place)
