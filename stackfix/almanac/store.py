"""What was read of wheels, one file for each wheel by its hash: a run that was killed goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stackfix.almanac.extract import Extracted, Wanted, extract
from stackfix.almanac.fetch import download
from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.errors import Unreachable
from stackfix.inspect.places import MIB, reason_of

FORM = 1                        # of the files; another one is read anew from its wheel
MOST_KEPT = 64 * MIB            # of one file, compressed; torch has 3 MB
MOST_TEXT = 512 * MIB           # unpacked; torch has 20 MB
WORK = ".work-"
ELSEWHERE = "name another folder with --store DIR"


def default_store(environ: Mapping[str, str], home: Path) -> Path:
    """Below STACKFIX_CACHE_DIR, else the platform's cache folder."""
    given = environ.get("STACKFIX_CACHE_DIR")
    if given:
        return Path(given, "almanac")
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home / ".cache") / "stackfix" / "almanac"


def tables(wheel: ManifestWheel, store: Path, wanted: Wanted) -> WheelTables:
    """What the wheel's shared objects of the paths that are `wanted` offer and want.

    Downloads the wheel only where the store lacks one of them; it is on disk no longer than it is read. Raises what
    `download` and `extract` raise.
    """
    kept = read_kept(store, wheel)
    if kept is None or any(map(wanted, kept.left)):
        kept = read_more(wheel, store, wanted, kept)
    return chosen(kept, wanted)


def kept_tables(wheel: ManifestWheel, store: Path, wanted: Wanted) -> WheelTables | None:
    """The same of what the store has; None where it lacks any of it. Downloads nothing."""
    kept = read_kept(store, wheel)
    return None if kept is None or any(map(wanted, kept.left)) else chosen(kept, wanted)


def chosen(kept: Extracted, wanted: Wanted) -> WheelTables:
    """The tables of the shared objects that are wanted."""
    libraries = tuple(each for each in kept.tables.libraries if wanted(each.path))
    return WheelTables(wheel=kept.tables.wheel, requires=kept.tables.requires, libraries=libraries)


def read_more(wheel: ManifestWheel, store: Path, wanted: Wanted, kept: Extracted | None) -> Extracted:
    """What the store keeps of the wheel after the rest of what is wanted was read of it."""
    before = kept.tables.libraries if kept else ()
    known = {each.path for each in before}
    try:
        with work_folder(store) as work:
            tell(f"{wheel.file}: downloading", lasting=True)
            path = download(wheel, work)
            tell(f"{wheel.file}: reading")
            more = extract(path, wheel, lambda name: name not in known and wanted(name))
    finally:
        tell("")
    both = sorted([*before, *more.tables.libraries], key=lambda each: each.path)
    found = Extracted(left=tuple(name for name in more.left if name not in known),
                      tables=WheelTables(wheel=wheel, requires=more.tables.requires, libraries=tuple(both)))
    write_kept(store, found)
    return found


def place_of(store: Path, wheel: ManifestWheel) -> Path:
    return store / f"{wheel.sha256}.json.z"


def read_kept(store: Path, wheel: ManifestWheel) -> Extracted | None:
    """What is kept of the wheel; None where there is nothing, or where it is damaged or of another form."""
    try:
        with place_of(store, wheel).open("rb") as stream:
            packed = stream.read(MOST_KEPT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreachable(str(place_of(store, wheel)), reason_of(error)) from error
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, MOST_TEXT)
        if not unpacking.eof or unpacking.unused_data:      # zlib's checksum stands at the end
            return None
        return from_document(json.loads(text), wheel)
    except (zlib.error, ValueError, TypeError, KeyError, RecursionError):
        return None


def write_kept(store: Path, found: Extracted) -> None:
    """Keeps what was read: written beside its place and moved in, so that nobody reads half of it."""
    text = json.dumps(as_document(found), ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    place = place_of(store, found.tables.wheel)
    try:
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=store)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(zlib.compress(text.encode("ascii"), 6))
            os.replace(name, place)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise Unreachable(str(store), f"cannot be written: {reason_of(error)}", ELSEWHERE) from error


def as_document(found: Extracted) -> dict[str, Any]:
    """JSON of what was read: columns, since a record for each of 100,000 names takes ten times as long to read."""
    wheel = found.tables.wheel
    return {
        "form": FORM, "left": found.left, "requires": found.tables.requires,
        "wheel": [wheel.package, wheel.version, wheel.file, wheel.sha256],
        "libraries": [{
            "path": each.path, "soname": each.soname, "needed": each.needed, "exports": each.exports,
            "wanted": [[name.name, name.version, name.file, name.weak] for name in each.wanted],
        } for each in found.tables.libraries],
    }


def from_document(document: Any, wheel: ManifestWheel) -> Extracted | None:
    """What `as_document` wrote; None where it is of another form or of another wheel."""
    if document["form"] != FORM or document["wheel"] != [wheel.package, wheel.version, wheel.file, wheel.sha256]:
        return None
    libraries = []
    for each in document["libraries"]:
        wanted = [WantedName(name=name, version=version, file=file, weak=weak)
                  for name, version, file, weak in each["wanted"]]
        libraries.append(LibraryTables(
            path=each["path"], soname=each["soname"], needed=tuple(each["needed"]), exports=tuple(each["exports"]),
            wanted=tuple(wanted)))
    found = WheelTables(wheel=wheel, requires=tuple(document["requires"]), libraries=tuple(libraries))
    return Extracted(tables=found, left=tuple(document["left"]))


@contextmanager
def work_folder(store: Path) -> Iterator[Path]:
    """A folder for one wheel. Locked while it is used, so that another run can tell what a killed one has left."""
    try:
        store.mkdir(parents=True, exist_ok=True)
        folder, descriptor = held_folder(store)
    except OSError as error:
        raise Unreachable(str(store), reason_of(error), ELSEWHERE) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def held_folder(store: Path) -> tuple[Path, int]:
    """A new folder, and the open file that holds its lock."""
    gate = os.open(store, os.O_RDONLY)
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)    # no other run sweeps before the new folder is locked
        sweep(store)
        folder = Path(tempfile.mkdtemp(prefix=WORK, dir=store))
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return folder, descriptor
    finally:
        os.close(gate)


def sweep(store: Path) -> None:
    """Removes the folders that nobody holds: whoever made them was killed. The store is locked by the caller."""
    for folder in store.glob(f"{WORK}*"):
        with suppress(OSError):     # another run's, or one that is gone by now
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def tell(text: str, *, lasting: bool = False) -> None:
    """One line that says what is being done; "" clears it. Where no terminal is, only what `lasting` says."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text[:100]}")
    elif sys.stderr is not None and lasting:
        sys.stderr.write(f"{text}\n")
    if sys.stderr is not None:
        sys.stderr.flush()


def note_left_out(store: Path, compared: int, wheels: int) -> None:
    """Says on stderr how many wheels a check could not compare."""
    if compared < wheels and sys.stderr is not None:
        sys.stderr.write(f"note: the files agree with each other, and with {compared} of {wheels} wheels: the others"
                         f" are not in the store {store} (--make downloads them)\n")


__all__ = ["default_store", "kept_tables", "note_left_out", "tables"]
