"""ELF files as records. Own reading, not LIEF's or pyelftools', for speed: benchmarks/elf.py has the figures."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackfix.inspect.elf_layout import PT_INTERP, PT_NOTE, Buffer, Layout
from stackfix.inspect.records import BadElf, ElfObject, NeededVersion, UnreadableElf

DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_SYMBOLIC = 1, 5, 10, 14, 15, 16
DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 24, 29, 30, 0x6FFFFFFB
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = (
    0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF)
FLAGS = {1: "DF_ORIGIN", 2: "DF_SYMBOLIC", 4: "DF_TEXTREL", 8: "DF_BIND_NOW", 16: "DF_STATIC_TLS"}
FLAGS_1 = {0x1: "DF_1_NOW", 0x2: "DF_1_GLOBAL", 0x8: "DF_1_NODELETE", 0x20: "DF_1_INITFIRST", 0x40: "DF_1_NOOPEN",
           0x80: "DF_1_ORIGIN", 0x800: "DF_1_NODEFLIB", 0x08000000: "DF_1_PIE"}
MOST_NEEDED = 4096              # libraries or versions of one object; glibc's own programs have fewer than 100
NT_GNU_BUILD_ID = 3


@dataclass(slots=True, kw_only=True)
class Versions:
    """Version tables by index in DT_VERSYM; the base has no name there, as it has none for glibc."""

    defined: dict[int, str] = field(default_factory=dict)
    base: str | None = None
    needed: dict[int, tuple[NeededVersion, bool]] = field(default_factory=dict)    # with the hidden bit
    needed_in_order: list[NeededVersion] = field(default_factory=list)


class Dynamic:
    """PT_DYNAMIC by tag, and its strings."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        entries = layout.dynamic()
        self.present = entries is not None
        self.entries = entries or []
        self.last = dict(self.entries)
        self.strings = self.strings_end = 0
        if DT_STRTAB in self.last:
            self.strings = layout.offset_of(self.last[DT_STRTAB])
            self.strings_end = min(self.strings + self.last.get(DT_STRSZ, 0), layout.size)

    def table(self, tag: int) -> int | None:
        """File offset of the table that `tag` points at."""
        return self.layout.offset_of(self.last[tag]) if tag in self.last else None

    def text(self, index: int) -> str:
        """A string of DT_STRTAB."""
        return self.layout.string(self.strings + index, self.strings_end).decode("utf-8", "surrogateescape")

    def text_of(self, tag: int) -> str | None:
        """The string that the last entry of `tag` names."""
        return self.text(self.last[tag]) if tag in self.last else None


def read_elf(path: str, *, name: str | None = None) -> ElfObject | UnreadableElf:
    """The file at `path`; what cannot be read is an UnreadableElf. `name` stands for `path` in the record.

    Raises OSError where the file cannot be opened at all.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return read_open_elf(descriptor, name or path)
    finally:
        os.close(descriptor)


def read_open_elf(descriptor: int, name: str) -> ElfObject | UnreadableElf:
    """The open file as read_elf gives it."""
    try:
        with map_file(descriptor, name) as data:
            return parse_elf(data, name)
    except BadElf as error:
        return UnreadableElf(path=name, reason=error.reason)


def map_file(descriptor: int, name: str) -> mmap.mmap:
    """The file as read-only memory. Raises BadElf for what is no file with content."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        kind = "Is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise BadElf(name, f"cannot read file data: {kind}")
    if status.st_size == 0:
        raise BadElf(name, "file too short")
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise BadElf(name, f"cannot be mapped: {error}") from error


@dataclass(frozen=True, slots=True)
class Tables:
    """What records and symbols of one mapped file are both read from."""

    layout: Layout
    dynamic: Dynamic
    versions: Versions


def read_tables(data: Buffer, name: str) -> Tables:
    """The tables of an ELF file. Raises BadElf."""
    layout = Layout(data, name)
    dynamic = Dynamic(layout)
    return Tables(layout, dynamic, read_versions(dynamic))


def parse_elf(data: Buffer, name: str) -> ElfObject:
    """The record of an ELF file. Raises BadElf."""
    return describe(read_tables(data, name), name)


def describe(tables: Tables, name: str) -> ElfObject:
    """The record of the file that these tables are of. Raises BadElf."""
    layout, dynamic, versions = tables.layout, tables.dynamic, tables.versions
    needed = tuple(dynamic.text(value) for tag, value in dynamic.entries if tag == DT_NEEDED)
    if len(needed) > MOST_NEEDED:
        raise layout.bad(f"{len(needed)} DT_NEEDED entries")
    return ElfObject(
        path=name, size=layout.size, bits=layout.bits, byte_order=layout.byte_order, machine=layout.machine,
        kind=layout.kind, dynamic=dynamic.present, soname=dynamic.text_of(DT_SONAME), needed=needed,
        rpath=dynamic.text_of(DT_RPATH), runpath=dynamic.text_of(DT_RUNPATH), flags=_flags(dynamic),
        interpreter=_interpreter(layout), build_id=_build_id(layout),
        needed_versions=tuple(versions.needed_in_order), defined_versions=tuple(versions.defined.values()),
        base_version=versions.base, versioned_symbols=DT_VERSYM in dynamic.last,
    )


def _flags(dynamic: Dynamic) -> tuple[str, ...]:
    last = dynamic.last
    names = {name for bit, name in FLAGS.items() if last.get(DT_FLAGS, 0) & bit}
    names |= {name for bit, name in FLAGS_1.items() if last.get(DT_FLAGS_1, 0) & bit}
    names |= {name for tag, name in ((DT_SYMBOLIC, "DF_SYMBOLIC"), (DT_BIND_NOW, "DF_BIND_NOW")) if tag in last}
    return tuple(sorted(names))


def _interpreter(layout: Layout) -> str | None:
    for kind, start, _, size in layout.segments:
        if kind == PT_INTERP:
            return layout.string(start, start + size).decode("utf-8", "surrogateescape")
    return None


def _build_id(layout: Layout) -> str | None:
    for kind, start, _, size in layout.segments:
        if kind != PT_NOTE or start + size > layout.size:
            continue
        offset, end = start, start + min(size, 1 << 16)
        while offset + 12 <= end:
            name_size, text_size, note = layout.unpack("III", offset)
            text = offset + 12 + (name_size + 3 & ~3)
            if note == NT_GNU_BUILD_ID and text_size <= 64 and layout.data[offset + 12:offset + 16] == b"GNU\0":
                return layout.take(text, text_size).hex()
            offset = text + (text_size + 3 & ~3)
    return None


def read_versions(dynamic: Dynamic) -> Versions:
    """DT_VERDEF and DT_VERNEED of one file. Raises BadElf."""
    found = Versions()
    for offset, fields in _chain(dynamic, DT_VERDEF, DT_VERDEFNUM, "HHHHIII", next_field=6):
        _, flags, index, _, _, first, _ = fields
        name = dynamic.text(dynamic.layout.unpack("II", offset + first)[0])
        if flags & 1:           # VER_FLG_BASE
            found.base = name
        else:
            found.defined[index & 0x7FFF] = name
    for offset, fields in _chain(dynamic, DT_VERNEED, DT_VERNEEDNUM, "HHIII", next_field=4):
        _, count, file, first, _ = fields
        library, place = dynamic.text(file), offset + first
        for _ in range(min(count, MOST_NEEDED)):
            _, flags, other, name_at, step = dynamic.layout.unpack("IHHII", place)
            need = NeededVersion(file=library, version=dynamic.text(name_at), weak=bool(flags & 2))
            found.needed[other & 0x7FFF] = (need, bool(other & 0x8000))
            found.needed_in_order.append(need)
            if not step:
                break
            place += step
        if len(found.needed_in_order) > MOST_NEEDED:
            raise dynamic.layout.bad(f"more than {MOST_NEEDED} needed versions")
    return found


def _chain(
    dynamic: Dynamic, tag: int, count_tag: int, codes: str, *, next_field: int,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Offset and fields of each entry of a version table: at most as many as it says that it has."""
    offset = dynamic.table(tag)
    for _ in range(min(dynamic.last.get(count_tag, 0), MOST_NEEDED)):
        if offset is None:
            return
        fields = dynamic.layout.unpack(codes, offset)
        yield offset, fields
        if not fields[next_field]:
            return
        offset += fields[next_field]
