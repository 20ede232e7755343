"""The dynamic symbols of a wheel's shared objects: each is unpacked alone, mapped, read and removed."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.elf import DT_NEEDED, DT_SONAME, map_file, read_tables
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.elf_symbols import BINDINGS, KINDS, MappedSymbols, is_definition
from stackfix.inspect.elf_table import SymbolTable
from stackfix.inspect.places import MIB, reason_of
from stackfix.inspect.records import BadElf
from stackfix.inspect.wheel_archive import BadMember, WheelArchive
from stackfix.inspect.wheel_parts import is_shared_object, read_parts
from stackfix.inspect.wheels import every, parse_headers

Wanted = Callable[[str], bool]      # by the path in the wheel
MOST_LIBRARY = 8 << 30              # bytes of one shared object; libtorch_cuda has 1.5 GB
MOST_LIBRARIES = 2000               # of one wheel
MOST_SYMBOLS = 1_000_000            # of one library
SPARE = 64 * MIB                    # of the disk
STEP = 65536                        # symbols copied at a time
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What was read of a wheel, and which of its shared objects were not wanted."""

    tables: WheelTables
    left: tuple[str, ...]           # paths, sorted


def extract(path: Path, wheel: ManifestWheel, wanted: Wanted, folder: Path | None = None) -> Extracted:
    """The tables of the wheel on disk at `path`. `folder`: where libraries are unpacked, else beside the wheel.

    Raises BadInput for a wheel or a library that cannot be read, Unreachable where the disk is full.
    """
    with open_archive(path) as archive:
        names = sorted(name for name in archive.members if is_shared_object(name))
        chosen = [name for name in names if wanted(name)]
        if len(chosen) > MOST_LIBRARIES:
            raise BadInput(wheel.file, f"{len(chosen)} shared objects, which no wheel has")
        requires = every(parse_headers(read_parts(archive).metadata["METADATA"]), "requires-dist")
        libraries = tuple(library(archive, name, wheel, folder or path.parent) for name in chosen)
    tables = WheelTables(wheel=wheel, requires=requires, libraries=libraries)
    return Extracted(tables=tables, left=tuple(sorted(set(names) - set(chosen))))


@contextmanager
def open_archive(path: Path) -> Iterator[WheelArchive]:
    archive = WheelArchive(path)
    try:
        yield archive
    finally:
        archive.close()


def library(archive: WheelArchive, name: str, wheel: ManifestWheel, folder: Path) -> LibraryTables:
    """The tables of one member."""
    size = archive.members[name].file_size
    if size > MOST_LIBRARY:
        raise BadInput(wheel.file, f"{name}: states {size >> 20} MiB, which no library has")
    free = shutil.disk_usage(folder).free
    if size + SPARE > free:
        raise Unreachable(str(folder), f"{name} takes {size // MIB} MiB, and {free // MIB} MiB are free")
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:      # without a name: nothing stays, whatever happens
            archive.unpack(name, stream)
            stream.flush()
            with map_file(stream.fileno(), name) as mapped:
                return read_library(mapped, name)
    except BadMember as error:
        raise BadInput(wheel.file, f"{name}: {error}") from error
    except BadElf as error:
        raise BadInput(wheel.file, f"{name}: {error.reason}") from error
    except OSError as error:
        if error.errno in DISK:
            raise Unreachable(str(folder), reason_of(error)) from error
        raise


def read_library(data: Buffer, name: str) -> LibraryTables:
    """The tables of a mapped library. Raises BadElf."""
    tables = read_tables(data, name)
    symbols = MappedSymbols(data, name, tables)
    dynamic = tables.dynamic
    versions = {*tables.versions.defined.values(), tables.versions.base}     # each is a symbol as well, of no use
    return LibraryTables(
        path=name, soname=dynamic.text_of(DT_SONAME),
        needed=tuple(dynamic.text(value) for tag, value in dynamic.entries if tag == DT_NEEDED),
        exports=tuple(sorted(defined_names(symbols) - versions)),
        wanted=tuple(sorted({WantedName(name=each.name, version=each.version, file=each.file, weak=each.weak)
                             for each in symbols.undefined()}, key=order_of)),
    )


def order_of(name: WantedName) -> tuple[str, str, str, bool]:
    return name.name, name.version or "", name.file or "", name.weak


def defined_names(symbols: MappedSymbols) -> set[str]:
    """Every name that is offered. A pass over the whole table, thousands at a time; look-ups are slower here."""
    count = symbols.hashes.count()
    if count > MOST_SYMBOLS:
        raise symbols.layout.bad(f"more than {MOST_SYMBOLS} dynamic symbols")
    found = set[str]()
    for names in defined_places(symbols.table, count):
        found.update(symbols.table.texts(names))
    return found


def defined_places(table: SymbolTable, count: int) -> Iterator[list[int]]:
    """Places in the string table of the names that are offered."""
    kinds = {info for info in range(256) if info & 15 in KINDS and info >> 4 in BINDINGS}
    for first in range(1, count, STEP):
        entries = table.entries(range(first, min(first + STEP, count)))
        yield [name for name, info, other, section, value in entries
               if info in kinds and is_definition(info, other, section, value)]


__all__ = ["Extracted", "Wanted", "extract", "read_library"]
