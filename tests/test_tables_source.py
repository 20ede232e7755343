"""Tables of wheels: downloaded once, checked, reduced, kept and shared; a hostile wheel is an error about itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stackfix.inspect.elf import read_elf
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.places import MIB
from stackfix.inspect.records import BadElf, SymbolNames, UnreadableElf
from stackfix.prove.records import Fetched, PlannedWheel
from stackfix.sources.transport import Transport
from stackfix.tables import kept, reduce
from stackfix.tables.source import open_tables
from tests.almanac_wheels import needs_gcc, shared_object, wheel
from tests.sources_servers import RawServer, ok, path_of, settings_for, status

pytestmark = needs_gcc
PATHS = ("nvidia/nvjitlink/lib/libnvJitLink.so.12", "nvidia/cusparse/lib/libcusparse.so.12")
NAMES = ("__nvJitLinkAddData_12_1", "__nvJitLinkCreate_12_1")
NOTHING = lambda *_: None       # noqa: E731 - progress that nobody sees
CHILD = """
import sys, json
from pathlib import Path
from stackfix.prove.records import PlannedWheel
from stackfix.sources.transport import Transport
from stackfix.tables.source import open_tables
from tests.sources_servers import settings_for
wheels = [PlannedWheel(**each) for each in json.loads(sys.argv[2])]
source = open_tables(Path(sys.argv[1]), lambda: Transport(settings_for()), offline=False)
found = source.fetch(wheels, lambda *_: print("bytes", flush=True))
print(len(found.tables), len(found.failed))
"""


class Shelf:
    """Wheels on a loopback server, and a cache that they are brought to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.delay, self.asked = 0.0, list[str]()
        self.server = RawServer(self.reply)

    def reply(self, head: str) -> bytes | Iterator[bytes]:
        name = path_of(head).rpartition("/")[2]
        self.asked.append(name)
        path = self.folder / "wheels" / name
        if not path.is_file():
            return status("404 Not Found")
        answer = ok(path.read_bytes(), kind="application/octet-stream")
        return answer if not self.delay else self.slowly(answer)

    def slowly(self, answer: bytes) -> Iterator[bytes]:
        for place in range(0, len(answer), 500):
            yield answer[place:place + 500]
            time.sleep(self.delay)

    def planned(self, package: str, files: dict[str, bytes], version: str = "12.1.105") -> PlannedWheel:
        row = wheel(self.folder / "wheels", package, version, files)
        return self.named(row.file, row.sha256, package, version)

    def named(self, file: str, sha256: str, package: str = "demo", version: str = "1.0") -> PlannedWheel:
        path = self.folder / "wheels" / file
        return PlannedWheel(name=package, version=version, file=file, sha256=sha256,
                            url=f"{self.server.url}/files/{file}", size=path.stat().st_size)

    def stacked(self) -> tuple[PlannedWheel, PlannedWheel]:
        """nvJitLink, and cuSPARSE that wants it."""
        one = shared_object(self.folder / "made", "libnvJitLink.so.12", NAMES)
        other = shared_object(self.folder / "made", "libcusparse.so.12", ("cusparseCreate",), wants=NAMES[:1],
                              needs=("libnvJitLink.so.12",))
        return (self.planned("nvidia-nvjitlink-cu12", {PATHS[0]: one, "nvidia/nvjitlink/__init__.py": b""}),
                self.planned("nvidia-cusparse-cu12", {PATHS[1]: other}))

    def fetch(self, *wheels: PlannedWheel, progress: Callable[..., object] = NOTHING, offline: bool = False) -> Fetched:
        return open_tables(self.cache, lambda: Transport(settings_for(retries=0)), offline=offline).fetch(
            wheels, progress)

    def left(self) -> list[str]:
        """What is in the cache beside the entries themselves."""
        entries = {path.name for path in (self.cache / kept.KIND).iterdir() if len(path.name) == 64}
        return sorted(str(path.relative_to(self.cache)) for path in self.cache.rglob("*")
                      if path.name not in {*entries, kept.KIND})


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    with made.server:
        yield made


def nowhere() -> Transport:
    raise AssertionError("nothing may be downloaded")


def test_a_wheel_is_downloaded_once_and_told_as_it_is(shelf: Shelf, tmp_path: Path) -> None:
    wheels = shelf.stacked()
    told: list[tuple[str, int, int | None]] = []
    source = open_tables(shelf.cache, lambda: Transport(settings_for()), offline=False)
    assert source.known(wheels) == {}
    ahead = source.announce([*wheels, *wheels])
    assert (ahead.wheels, ahead.size, ahead.unsized) == (wheels, sum(each.size or 0 for each in wheels), ())
    found = source.fetch([*wheels, *wheels], lambda *each: told.append(each))
    assert (found.failed, set(found.tables)) == ((), {each.sha256 for each in wheels})
    assert sorted(shelf.asked) == sorted(each.file for each in wheels)
    assert {name for name, done, total in told if done == total} >= {each.file for each in wheels}
    assert shelf.left() == []       # neither the wheels nor what they were unpacked to

    again = open_tables(shelf.cache, nowhere, offline=True)
    assert again.announce(wheels).wheels == ()
    assert again.known(wheels) == found.tables == again.fetch(wheels, NOTHING).tables
    for path, planned in zip(PATHS, wheels, strict=True):
        tables = again.known(wheels)[planned.sha256]
        assert (tables.basis, tables.file, tables.project.name) == ("wheel", planned.file, planned.name)
        original = tmp_path / "made" / path.rpartition("/")[2]
        library, = tables.libraries
        assert library.path == library.elf.path == f"site/{path}"
        assert library.elf == read_elf(str(original), name=f"site/{path}")
        symbols, real = again.symbols(planned.sha256, library.path), MappedSymbols(original.read_bytes(), "x")
        assert symbols.undefined() == real.undefined()
        assert symbols.offered(SymbolNames(NAMES)) == real.offered(SymbolNames(NAMES))
        assert symbols.uses(NAMES) == real.uses(NAMES)
    listing = again.known(wheels)[wheels[0].sha256].listing
    assert listing is not None
    assert {"site/nvidia/nvjitlink/__init__.py", f"site/{PATHS[0]}"} < set(listing)


def test_what_stands_in_a_wheel_keeps_its_place(shelf: Shelf) -> None:
    content = shared_object(shelf.folder / "made", "libmkl_core.so.2", ("mkl",))
    planned = shelf.planned("mkl", {
        "mkl-2024.0.data/data/lib/libmkl_core.so.2": content, "mkl-2024.0.data/scripts/run.sh": b"#!/bin/sh\n",
        "mkl-2024.0.data/platlib/mkl/_mkl.so": content, "mkl/libscript.so": b"INPUT(libmkl_core.so.2)\n",
        "mkl/libempty.so": b""}, version="2024.0")
    source = open_tables(shelf.cache, lambda: Transport(settings_for()), offline=False)
    tables = source.fetch([planned], NOTHING).tables[planned.sha256]
    assert [each.path for each in tables.libraries] == [
        "base/lib/libmkl_core.so.2", "site/mkl/_mkl.so", "site/mkl/libempty.so", "site/mkl/libscript.so"]
    empty, script = tables.libraries[2:]
    assert isinstance(empty.elf, UnreadableElf)
    assert isinstance(script.elf, UnreadableElf)
    assert (empty.elf.reason, script.elf.reason) == ("file too short", "file too short")
    assert "site/run.sh" not in (tables.listing or ())
    for _ in range(2):
        with pytest.raises(BadElf, match="file too short"):
            source.symbols(planned.sha256, "site/mkl/libscript.so")
    with pytest.raises(LookupError):
        source.symbols("0" * 64, "site/mkl/libscript.so")


def test_a_wheel_of_another_hash_is_not_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    good, other = shelf.stacked()
    monkeypatch.setattr("stackfix.tables.fetch.reduce_wheel", lambda path, planned, *rest: (
        reduce.reduce_wheel(path, planned, *rest) if planned is good else pytest.fail("read before it was checked")))
    wrong = PlannedWheel(name=other.name, version=other.version, file=other.file, sha256="ab" * 32, url=other.url,
                         size=other.size)
    found = shelf.fetch(wrong, good)
    assert set(found.tables) == {good.sha256}
    failed, = found.failed
    assert (failed.wheel, failed.code) == (wrong, "hash-mismatch")
    assert f"stated is {'ab' * 32}" in failed.reason
    assert shelf.left() == []


def hostile(shelf: Shelf, kind: str) -> PlannedWheel:
    """A wheel that bears its hash and is none all the same."""
    import hashlib

    file = "demo-1.0-py3-none-manylinux1_x86_64.whl"
    path = shelf.folder / "wheels" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "no archive":
        path.write_bytes(b"<html>log in</html>")
    else:
        info = "demo-1.0.dist-info"
        members = {f"{info}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
                   f"{info}/WHEEL": b"Root-Is-Purelib: false\n", "demo/_c.so": bytes(3 * MIB),
                   "../../escaped.so": b"x", "/absolute.so": b"x"}
        if kind == "no metadata":
            del members[f"{info}/METADATA"]
        if kind == "another project":
            members[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: else\nVersion: 1.0\n"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        if kind == "damaged":
            content = path.read_bytes()
            at = content.index(b"demo/_c.so") + 60
            path.write_bytes(content[:at] + b"\xff" * 20 + content[at + 20:])
    return shelf.named(file, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize(("kind", "reason"), [
    ("no archive", "is no wheel"), ("no metadata", "no NAME-VERSION.dist-info/METADATA"),
    ("another project", "calls it else, the lock demo"), ("damaged", "cannot be unpacked"),
    ("too large", "GiB of shared objects, which no wheel has"),
])
def test_a_hostile_wheel_is_one_error_about_it(shelf: Shelf, kind: str, reason: str,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "too large":
        monkeypatch.setattr(reduce, "MOST_STATED", 2 * MIB)
    good, planned = shelf.stacked()[0], hostile(shelf, kind)
    found = shelf.fetch(planned, good)
    assert set(found.tables) == {good.sha256}
    failed, = found.failed
    assert (failed.wheel, failed.code) == (planned, "bad-input")
    assert failed.reason.startswith(f"{planned.file}: ")
    assert reason in failed.reason
    assert str(shelf.folder) not in failed.reason
    assert shelf.left() == []
    assert not list(shelf.folder.rglob("escaped.so"))


def test_names_that_lead_out_of_a_wheel_are_no_part_of_it(shelf: Shelf) -> None:
    planned = hostile(shelf, "none")
    tables = shelf.fetch(planned).tables[planned.sha256]
    assert [each.path for each in tables.libraries] == ["site/demo/_c.so"]
    assert not any("escaped" in path or "absolute" in path for path in tables.listing or ())


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "another form", "another wheel"])
def test_a_damaged_entry_is_dropped_and_made_anew(shelf: Shelf, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shelf.stacked()
    shelf.fetch(other)
    if damage == "another form":
        monkeypatch.setattr(kept, "FORM", kept.FORM + 1)
        shelf.fetch(one)
        monkeypatch.undo()
    else:
        before = shelf.fetch(one).tables[one.sha256]
    entry = shelf.cache / kept.KIND / one.sha256
    content = entry.read_bytes()
    if damage == "flipped":
        entry.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage in {"cut", "empty"}:
        entry.write_bytes(content[:-100] if damage == "cut" else b"")
    elif damage == "another wheel":
        entry.write_bytes((shelf.cache / kept.KIND / other.sha256).read_bytes())
    source = open_tables(shelf.cache, lambda: Transport(settings_for()), offline=False)
    assert set(source.known([one, other])) == {other.sha256}
    assert not entry.exists()
    shelf.asked.clear()
    found = source.fetch([one, other], NOTHING)
    assert shelf.asked == [one.file]
    assert damage == "another form" or found.tables[one.sha256] == before


def test_an_entry_without_a_file_that_counts_today_is_made_anew(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    content = shared_object(shelf.folder / "made", "libssl-81259c47.so.1.1.1k", ("SSL_new",))
    planned = shelf.planned("opencv", {"cv2.libs/libssl-81259c47.so.1.1.1k": content, "cv2/cv2.abi3.so": content})
    monkeypatch.setattr(reduce, "is_shared_object", lambda path: path.endswith(".so"))
    assert [each.path for each in shelf.fetch(planned).tables[planned.sha256].libraries] == ["site/cv2/cv2.abi3.so"]
    monkeypatch.undo()
    assert [each.path for each in shelf.fetch(planned).tables[planned.sha256].libraries] == [
        "site/cv2.libs/libssl-81259c47.so.1.1.1k", "site/cv2/cv2.abi3.so"]
    assert shelf.asked == [planned.file] * 2


def test_an_interrupted_fetch_goes_on_at_the_next_wheel(shelf: Shelf) -> None:
    wheels = shelf.stacked()
    shelf.fetch(wheels[0])

    def interrupted(name: str, *_: object) -> None:
        if name.startswith(wheels[1].file):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shelf.fetch(*wheels, progress=interrupted)
    assert shelf.left() == []
    shelf.asked.clear()
    assert set(shelf.fetch(*wheels).tables) == {each.sha256 for each in wheels}
    assert shelf.asked == [wheels[1].file]


def child(shelf: Shelf, *wheels: PlannedWheel) -> subprocess.Popen[str]:
    rows = json.dumps([{name: getattr(each, name) for name in ("name", "version", "file", "sha256", "url", "size")}
                       for each in wheels])
    return subprocess.Popen([sys.executable, "-c", CHILD, str(shelf.cache), rows], stdout=subprocess.PIPE, text=True,
                            cwd=Path(__file__).parent.parent, env=os.environ | {"PYTHONPATH": "."})


def test_what_a_killed_run_has_left_is_removed(shelf: Shelf) -> None:
    one, other = shelf.stacked()
    shelf.delay = 0.5
    running = child(shelf, one)
    assert running.stdout is not None
    assert running.stdout.readline() == "bytes\n"
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert any(".work-" in name for name in shelf.left())
    shelf.delay = 0.0
    assert shelf.fetch(other).failed == ()
    assert shelf.left() == []


def test_of_several_processes_one_downloads(shelf: Shelf) -> None:
    wheels = shelf.stacked()
    shelf.delay = 0.01
    running = [child(shelf, *wheels) for _ in range(3)]
    for each in running:
        out, _ = each.communicate(timeout=60)
        assert out.splitlines()[-1] == "2 0"
    assert sorted(shelf.asked) == sorted(each.file for each in wheels)
    assert shelf.left() == []


def test_offline_only_what_is_at_hand_is_read(shelf: Shelf) -> None:
    one, other = shelf.stacked()
    repairs = shelf.cache / "wheels-v1" / one.sha256
    found = shelf.fetch(one, other, offline=True)
    assert [(each.wheel, each.code) for each in found.failed] == [(one, "not-in-cache"), (other, "not-in-cache")]
    local = PlannedWheel(name=one.name, version=one.version, file=one.file, sha256=one.sha256, size=None,
                         url=(shelf.folder / "wheels" / one.file).as_uri())
    assert set(shelf.fetch(local, offline=True).tables) == {one.sha256}
    (shelf.cache / kept.KIND / one.sha256).unlink()
    repairs.mkdir(parents=True)
    (repairs / one.file).write_bytes((shelf.folder / "wheels" / one.file).read_bytes())
    source = open_tables(shelf.cache, nowhere, offline=False)
    assert [each.name for each in source.announce([one, other]).wheels] == [other.name]
    assert set(source.fetch([one], NOTHING).tables) == {one.sha256}        # a repair has brought it
    (repairs / one.file).write_bytes(b"changed since")
    (shelf.cache / kept.KIND / one.sha256).unlink()
    assert [each.code for each in shelf.fetch(one, offline=True).failed] == ["not-in-cache"]
    assert shelf.asked == []


def test_a_wheel_without_an_address_and_one_that_is_gone(shelf: Shelf) -> None:
    one, other = shelf.stacked()
    lost = PlannedWheel(name=one.name, version=one.version, file=one.file, sha256=one.sha256, url=None, size=None)
    (shelf.folder / "wheels" / other.file).unlink()
    found = shelf.fetch(lost, other)
    assert [(each.code, each.wheel.name) for each in found.failed] == [
        ("bad-input", lost.name), ("request-failed", other.name)]
    assert "nothing says where" in found.failed[0].reason
    assert "404" in found.failed[1].reason
    assert open_tables(shelf.cache, nowhere, offline=True).announce([lost]).unsized == (lost,)


@pytest.mark.parametrize("sha256", ["../../../outside", "", "AB" * 32, "ab" * 31])
def test_a_hash_that_is_none_leads_nowhere(shelf: Shelf, sha256: str) -> None:
    one, _ = shelf.stacked()
    wrong = PlannedWheel(name=one.name, version=one.version, file=one.file, sha256=sha256, url=one.url, size=None)
    failed, = shelf.fetch(wrong).failed
    assert (failed.code, failed.reason) == ("bad-input", f"{one.file}: {sha256!r} is no sha256")
    assert not shelf.cache.exists()
    assert not (shelf.folder / "outside").exists()


def test_a_cache_that_cannot_be_written_is_said(shelf: Shelf) -> None:
    one, _ = shelf.stacked()
    shelf.cache.write_text("no folder")
    failed, = shelf.fetch(one).failed
    assert failed.code == "unreachable"
    assert "cannot be written" in failed.reason
    assert failed.next_step == "name another folder with --cache-dir"


def test_a_full_disk_is_said(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = shelf.stacked()
    monkeypatch.setattr(reduce, "SPARE", 1 << 60)
    failed, = shelf.fetch(one).failed
    assert failed.code == "unreachable"
    assert "MiB are free" in failed.reason
    assert shelf.left() == []
