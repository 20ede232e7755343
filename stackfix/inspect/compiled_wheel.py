"""A wheel's compiled files. Only its shared objects are unpacked, into a temporary folder that is gone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from stackfix.abi.records import Compiled
from stackfix.errors import BadInput
from stackfix.inspect.compiled import read_places
from stackfix.inspect.environment_records import Note, Owner
from stackfix.inspect.wheel_archive import WheelArchive
from stackfix.inspect.wheel_file import Unpacking, temporary_root
from stackfix.inspect.wheel_overlay import Ground
from stackfix.inspect.wheel_parts import FILE_NAME, compare_name, is_shared_object, read_parts

SITE, BASE = "/site", "/prefix"     # places in the temporary root, where an installer's would be
OTHER_SYSTEMS = ("win", "macosx", "ios", "android")
MOST_STATED = 8 << 30               # bytes of shared objects; the largest known wheel, torch's, has 2.4 GB

Progress = Callable[[int, int], None]   # bytes that were unpacked, of how many


def read_wheel(path: Path, notes: list[Note], progress: Progress | None = None) -> Compiled:
    """The compiled files of a wheel; what is odd about the archive becomes notes.

    Raises BadInput for what is no wheel, Unreachable where it cannot be read or unpacked.
    """
    archive = ToldArchive(path, progress)
    try:
        parts = read_parts(archive)
        archive.total = total = sum(info.file_size for name, info in archive.members.items() if is_shared_object(name))
        if total > MOST_STATED:
            raise BadInput(str(path), f"states {total >> 30} GiB of shared objects, which no wheel has")
        with temporary_root() as upper:
            unpacking = Unpacking(archive, parts, upper, Ground(upper))
            distribution = unpacking.read_distribution(SITE)
            unpacking.unpack_all(SITE, BASE)
            owner = Owner(manager="pip", name=distribution.name, version=distribution.version)
            unpacking.read_record(owner, deep=False)
            # installers choose by those of the name, whatever others WHEEL has
            refuse_other_systems(path, compare_name(archive, distribution))
            tags = tuple(dict.fromkeys(compare_name(archive, distribution) or distribution.tags))
            read, unreadable = read_places(unpacking.laid, upper)
        notes += archive.notes()
    finally:
        archive.close()
    unreadable += [(name, "cannot be unpacked") for name in unpacking.modules if name not in unpacking.laid]
    return Compiled(
        name=distribution.name, version=distribution.version, origin="wheel", source=str(path), tags=tags,
        requires=distribution.requires, file_name=path.name if FILE_NAME.fullmatch(path.name) else None,
        files=tuple(read), unreadable=tuple(unreadable))


def refuse_other_systems(path: Path, tags: Iterable[str]) -> None:
    """Raises BadInput for a wheel whose name is for Windows or macOS alone: its compiled files are no ELF files."""
    platforms = tuple(dict.fromkeys(each.rpartition("-")[2] for each in tags))
    if platforms and all(each.startswith(OTHER_SYSTEMS) for each in platforms):
        raise BadInput(str(path), f"is a wheel for {', '.join(platforms)}, and no wheel for Linux",
                       "Name the wheel of the same release for Linux.")


class ToldArchive(WheelArchive):
    """An archive that tells how much of its shared objects is unpacked."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        super().__init__(path)
        self.progress, self.done, self.total = progress, 0, 0

    def _parts(self, name: str) -> Iterator[bytes]:
        for part in super()._parts(name):
            yield part
            if self.progress is not None and is_shared_object(name):
                self.done += len(part)
                self.progress(self.done, self.total)


__all__ = ["read_wheel"]
