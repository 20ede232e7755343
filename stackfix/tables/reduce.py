"""A wheel on the disk reduced to tables: each shared object is unpacked alone, read and removed."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.elf import map_file
from stackfix.inspect.places import MIB, reason_of
from stackfix.inspect.records import BadElf
from stackfix.inspect.wheel_archive import BadMember, WheelArchive
from stackfix.inspect.wheel_parts import Parts, is_shared_object, read_parts
from stackfix.inspect.wheels import NAME, every, first, normalised, parse_headers
from stackfix.prove.records import BASE, SITE, LibraryAt, PlannedWheel, WheelProject, WheelTables
from stackfix.tables.hollow import Hollow, NotReducible, reduce_elf
from stackfix.tables.packed import pack
from stackfix.tables.records import Packed, ReducedWheel

MOST_STATED = 8 << 30           # bytes of a wheel's shared objects; the largest known wheel, torch's, has 2.4 GB
MOST_LIBRARIES = 5000           # of one wheel
MOST_PACKED = 512 * MIB         # of one wheel's tables, compressed; torch's are 6 MB
SPARE = 64 * MIB                # of the disk
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE})
Told = Callable[[int, int], object]      # bytes of shared objects that are unpacked, of how many
ELSEWHERE = "free some space, or name another folder with --cache-dir"


def reduce_wheel(path: Path, wheel: PlannedWheel, told: Told, folder: Path) -> ReducedWheel:
    """What a proof asks of the wheel at `path`, whose hash is the planned one. Libraries are unpacked in `folder`.

    Raises BadInput about this wheel for what is none, or is like no wheel; Unreachable where the disk is full.
    """
    try:
        archive = ToldArchive(path, told)
        try:
            return read_all(archive, wheel, folder)
        finally:
            archive.close()
    except BadInput as error:       # it is called by its name in the lock, not by where it lies for a moment
        raise BadInput(wheel.file, error.reason) if error.thing == str(path) else error from None


def read_all(archive: ToldArchive, wheel: PlannedWheel, folder: Path) -> ReducedWheel:
    """The tables of an open wheel."""
    parts = read_parts(archive)
    project = project_of(parts, wheel)
    places = {place: name for name in archive.members if (place := parts.place(name, SITE, BASE)) is not None}
    shared = sorted(place for place in places if is_shared_object(place))
    must_be_bearable(archive, [places[place] for place in shared], wheel)
    libraries, images, total = list[LibraryAt](), dict[str, Packed](), 0
    for place in shared:
        hollow = library(archive, places[place], place, wheel, folder)
        libraries.append(LibraryAt(path=place, elf=hollow.elf))
        if hollow.image is not None:
            images[place] = pack(hollow.image)
            total += len(images[place].content)
        if total > MOST_PACKED:
            raise BadInput(wheel.file, f"has more than {MOST_PACKED // MIB} MiB of tables, which no wheel has")
    tables = WheelTables(sha256=wheel.sha256, file=wheel.file, basis="wheel", project=project,
                         libraries=tuple(libraries), listing=tuple(sorted(places)))
    return ReducedWheel(tables=tables, images=images)


class ToldArchive(WheelArchive):
    """An archive that tells how much of its shared objects is unpacked."""

    def __init__(self, path: Path, told: Told) -> None:
        super().__init__(path)
        self.told, self.done, self.total = told, 0, 0

    def _parts(self, name: str) -> Iterator[bytes]:
        for part in super()._parts(name):
            yield part
            if self.total:
                self.done += len(part)
                self.told(self.done, self.total)


def must_be_bearable(archive: ToldArchive, names: list[str], wheel: PlannedWheel) -> None:
    """Raises BadInput for more shared objects than any wheel has."""
    if len(names) > MOST_LIBRARIES:
        raise BadInput(wheel.file, f"has {len(names)} shared objects, which no wheel has")
    archive.total = total = sum(archive.members[name].file_size for name in names)
    if total > MOST_STATED:
        raise BadInput(wheel.file, f"states {total >> 30} GiB of shared objects, which no wheel has")


def project_of(parts: Parts, wheel: PlannedWheel) -> WheelProject:
    """What its metadata say. Raises BadInput where they name no project, or another than the lock does."""
    headers = parse_headers(parts.metadata.get("METADATA", b""))
    name, version = first(headers, "name"), first(headers, "version")
    if name is None or version is None or not NAME.fullmatch(name):
        raise BadInput(wheel.file, "its METADATA states no usable name and version")
    if normalised(name) != wheel.name:
        raise BadInput(wheel.file, f"its METADATA calls it {name}, the lock {wheel.name}")
    return WheelProject(
        name=normalised(name), spelling=name, version=version, requires=every(headers, "requires-dist"),
        requires_python=first(headers, "requires-python"), extras=every(headers, "provides-extra"),
        tags=every(parse_headers(parts.metadata.get("WHEEL", b"")), "tag"))


def library(archive: WheelArchive, name: str, place: str, wheel: PlannedWheel, folder: Path) -> Hollow:
    """One member, reduced."""
    size, free = archive.members[name].file_size, shutil.disk_usage(folder).free
    if size + SPARE > free:
        raise Unreachable(str(folder), f"{name} takes {size // MIB} MiB, and {free // MIB} MiB are free", ELSEWHERE)
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:      # without a name: nothing stays, whatever happens
            archive.unpack(name, stream)
            stream.flush()
            if not stream.tell():
                return Hollow(elf=BadElf(place, "file too short").as_record(place), image=None)
            # not closed by hand: who read it may have left views of it in an error's traceback
            return reduce_elf(map_file(stream.fileno(), place), place)
    except (BadMember, NotReducible) as error:
        raise BadInput(wheel.file, f"{name}: {error}") from error
    except OSError as error:
        if error.errno in DISK:
            raise Unreachable(str(folder), reason_of(error), ELSEWHERE) from error
        raise


__all__ = ["reduce_wheel"]
