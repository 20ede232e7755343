"""ELF files as records. Own reading, not LIEF's or pyelftools', for speed: benchmarks/elf.py has the figures."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from stackfix.inspect.elf_layout import LONGEST_STRING, PT_INTERP, PT_NOTE, Buffer, Layout
from stackfix.inspect.elf_mapping import check_dynamic, check_segments
from stackfix.inspect.elf_names import sysv_hash
from stackfix.inspect.records import FALSE_HASH, BadElf, ElfObject, NeededVersion, UnreadableElf

DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_SYMBOLIC = 1, 5, 14, 15, 16
DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 24, 29, 30, 0x6FFFFFFB
DT_VERSYM, DT_VERDEF, DT_VERNEED = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE
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
    refusal: str | None = None


class Dynamic:
    """PT_DYNAMIC by tag, and its strings."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        entries = layout.dynamic()
        self.present = entries is not None
        self.entries = entries or []
        self.last = dict(self.entries)
        self.strings = self.strings_end = self.strings_near = 0
        self.strings_at = self.last.get(DT_STRTAB)
        with suppress(BadElf):              # of who asks for no string, the loader asks for none
            if self.strings_at is not None:     # DT_STRSZ is nothing to the loader
                self.strings, self.strings_end = layout.offset_of(self.strings_at), layout.size
                load = layout.load_of(self.strings_at)
                self.strings_near = min(load.start + load.size, self.strings + LONGEST_STRING)

    def table(self, tag: int) -> int | None:
        """File offset of the table that `tag` points at."""
        return self.layout.offset_of(self.last[tag]) if tag in self.last else None

    def text(self, index: int) -> str:
        """A string of DT_STRTAB."""
        layout, start = self.layout, self.strings + index
        if self.strings_at is None:
            raise layout.bad("no table of strings")
        if start < self.strings_near:
            stop = layout.data.find(b"\0", start, self.strings_near)
            if stop >= 0:
                return layout.data[start:stop].decode("utf-8", "surrogateescape")
        return self.layout.text(self.strings_at + index).decode("utf-8", "surrogateescape")

    def text_of(self, tag: int) -> str | None:
        """The string that the last entry of `tag` names; None where it lies nowhere, for the loader may never ask."""
        try:
            return self.text(self.last[tag]) if tag in self.last else None
        except BadElf:
            return None


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
        return error.as_record(name)


def map_file(descriptor: int, name: str) -> mmap.mmap:
    """The file as read-only memory. Raises BadElf for what is no file with content."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            raise BadElf(name, "cannot read file data: Is a directory")
        raise BadElf(name, "not a regular file", crash="what a device or a pipe does, at worst a wait without end")
    if status.st_size == 0:
        raise BadElf(name, "file too short")
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise BadElf(name, f"cannot be mapped: {error}", crash="cannot tell") from error


@dataclass(frozen=True, slots=True)
class Tables:
    """What records and symbols of one mapped file are both read from."""

    layout: Layout
    dynamic: Dynamic
    versions: Versions


def read_tables(data: Buffer, name: str) -> Tables:
    """The tables of an ELF file. Raises BadElf."""
    layout = Layout(data, name)
    check_segments(layout)
    dynamic = Dynamic(layout)
    if layout.kind == "shared":     # the loader refuses a program before it looks at tables
        check_dynamic(layout, dynamic.last)
    try:
        versions = read_versions(dynamic)
    except BadElf:
        if layout.kind == "shared":
            raise
        versions = Versions()
    return Tables(layout, dynamic, versions)


def parse_elf(data: Buffer, name: str) -> ElfObject:
    """The record of an ELF file. Raises BadElf."""
    return describe(read_tables(data, name), name)


def describe(tables: Tables, name: str) -> ElfObject:
    """The record of the file that these tables are of. Raises BadElf."""
    layout, dynamic, versions = tables.layout, tables.dynamic, tables.versions
    needed = tuple([dynamic.text(value) for tag, value in dynamic.entries if tag == DT_NEEDED])
    if len(needed) > MOST_NEEDED:
        raise layout.bad(f"{len(needed)} DT_NEEDED entries")
    return ElfObject(
        path=name, size=layout.size, bits=layout.bits, byte_order=layout.byte_order, machine=layout.machine,
        kind=layout.kind, dynamic=dynamic.present, soname=dynamic.text_of(DT_SONAME), needed=needed,
        rpath=dynamic.text_of(DT_RPATH), runpath=dynamic.text_of(DT_RUNPATH), flags=_flags(dynamic),
        interpreter=_interpreter(layout), build_id=_build_id(layout),
        needed_versions=tuple(versions.needed_in_order), defined_versions=tuple(versions.defined.values()),
        base_version=versions.base, versioned_symbols=DT_VERSYM in dynamic.last,
        cut_short=_cut_short(layout), versions_refused=versions.refusal,
    )


def _cut_short(layout: Layout) -> int | None:
    end = max((load.start + load.size for load in layout.loads), default=0)
    return end if end > layout.size else None


def _flags(dynamic: Dynamic) -> tuple[str, ...]:
    last = dynamic.last
    names = set[str]()
    for tag, table in ((DT_FLAGS, FLAGS), (DT_FLAGS_1, FLAGS_1)):
        if bits := last.get(tag):
            names.update([name for bit, name in table.items() if bits & bit])
    names |= {name for tag, name in ((DT_SYMBOLIC, "DF_SYMBOLIC"), (DT_BIND_NOW, "DF_BIND_NOW")) if tag in last}
    return tuple(sorted(names))


def _interpreter(layout: Layout) -> str | None:
    for kind, start, _, size, *_ in layout.segments:
        if kind == PT_INTERP and start < layout.size:       # of a library nobody asks for it
            return layout.data[start:start + min(size, LONGEST_STRING)].partition(b"\0")[0].decode(
                "utf-8", "surrogateescape")
    return None


def _build_id(layout: Layout) -> str | None:
    for kind, start, _, size, *_ in layout.segments:
        if kind != PT_NOTE or start + size > layout.size:
            continue
        offset, end = start, start + min(size, 1 << 16)
        while offset + 12 <= end:
            name_size, text_size, note = layout.unpack("III", offset)
            text = offset + 12 + (name_size + 3 & ~3)
            if note == NT_GNU_BUILD_ID and text_size <= 64 and layout.data[offset + 12:offset + 16] == b"GNU\0":
                return layout.data[text:text + text_size].hex()
            offset = text + (text_size + 3 & ~3)
    return None


def read_versions(dynamic: Dynamic) -> Versions:
    """DT_VERDEF and DT_VERNEED of one file. Raises BadElf."""
    found, layout = Versions(), dynamic.layout
    if dynamic.strings_at is None:
        return found
    for address, fields in _chain(dynamic, DT_VERDEF, "HHHHIII", next_field=6):
        revision, flags, index, _, hashed, first, _ = fields
        if revision != 1:
            break
        name = version_name(dynamic.text(layout.read("II", address + first)[0]), hashed)
        if flags & 1:           # VER_FLG_BASE
            found.base = name
        else:
            found.defined[index & 0x7FFF] = name
    for place, (address, fields) in enumerate(_chain(dynamic, DT_VERNEED, "HHIII", next_field=4)):
        revision, _, file, first, _ = fields
        if not place and revision != 1:
            found.refusal = f"unsupported version {revision} of Verneed record"
            break
        library, at = dynamic.text(file), address + first
        for _ in range(MOST_NEEDED):        # vn_cnt is nothing to the loader
            hashed, flags, other, name_at, step = layout.read("IHHII", at)
            need = NeededVersion(file=library, version=version_name(dynamic.text(name_at), hashed),
                                 weak=bool(flags & 2))
            found.needed[other & 0x7FFF] = (need, bool(other & 0x8000))
            found.needed_in_order.append(need)
            if not step:
                break
            at += step
        if len(found.needed_in_order) > MOST_NEEDED:
            raise layout.bad(f"more than {MOST_NEEDED} needed versions")
    return found


def version_name(name: str, hashed: int) -> str:
    """A version as records have it. The loader compares hashes too, so a false one makes another version of it."""
    return name if hash_of(name) == hashed else f"{name}{FALSE_HASH}{hashed:#x}"


@lru_cache(maxsize=4096)
def hash_of(version: str) -> int:
    """vna_hash and vd_hash of a version: a few hundred are in all files."""
    return sysv_hash(version.encode("utf-8", "surrogateescape"))


def _chain(dynamic: Dynamic, tag: int, codes: str, *, next_field: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Address and fields of each entry of a version table, which goes on until an entry names no next one."""
    address = dynamic.last.get(tag)
    for _ in range(MOST_NEEDED):
        if address is None:
            return
        fields = dynamic.layout.read(codes, address)
        yield address, fields
        if not fields[next_field]:
            return
        address += fields[next_field]
