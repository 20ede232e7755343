"""An ELF file without what no loader looks up: its tables at their own offsets, and zeros between them.

So the reader of ELF files, which is the judge of what a table says, reads a hollow file as it reads the file itself.
Nothing is taken on trust: what comes out is read again and compared, and a file that reads otherwise is kept whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from stackfix.inspect.elf import DT_VERDEF, DT_VERNEED, DT_VERSYM, MOST_NEEDED, Dynamic, Tables, describe, read_tables
from stackfix.inspect.elf_hash import DT_GNU_HASH, DT_HASH, HashTable
from stackfix.inspect.elf_layout import LONGEST_STRING, PT_INTERP, PT_NOTE, Buffer, Layout
from stackfix.inspect.elf_relocations import relocation_symbols
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.elf_table import SymbolTable
from stackfix.inspect.records import BadElf, ElfObject, SymbolNames, UnreadableElf
from stackfix.tables.image import Extent, Image, joined, open_image
from stackfix.tables.relocations import asking_relocations

DT_STRSZ = 10
MOST_NOTE = 1 << 16             # bytes of a note that the reader goes through
WHOLE = 16 << 20                # bytes of a file that is kept as it is where its tables cannot be told apart
MOST_KEPT = 256 << 20           # bytes of one file's tables; libtorch_cuda's are 14 MB
MOST_TRIED = 20_000             # names of a file that are looked up in both: hostile chains take 4096 steps for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Hollow:
    """One shared object, reduced. `image` is None where the loader refuses the file: nobody asks for its symbols."""

    elf: ElfObject | UnreadableElf
    image: Image | None


class NotReducible(Exception):
    """A file that reads otherwise once its tables are taken out of it. The text is fit to be shown."""


def reduce_elf(data: Buffer, name: str) -> Hollow:
    """The file's record and what is kept of it. Raises NotReducible for a large file whose tables no linker made."""
    try:
        tables = read_tables(data, name)
        elf = describe(tables, name)
    except BadElf as error:
        return Hollow(elf=error.as_record(name), image=None)
    image = taken_out(data, tables)
    if image is None or not reads_alike(data, image, name):
        if len(data) > WHOLE:
            raise NotReducible(f"{name}: its tables cannot be told apart from the rest of its {len(data)} bytes")
        image = Image(size=len(data), extents=((0, len(data)),), content=bytes(data))
    return Hollow(elf=elf, image=image)


def taken_out(data: Buffer, tables: Tables) -> Image | None:
    """The tables at their offsets; None where they lead out of the file, or are most of it."""
    try:
        parts = [*head_parts(tables.layout), *version_parts(tables.dynamic), *symbol_parts(tables)]
    except BadElf:
        return None
    extents = joined(parts, len(data))
    if sum(end - begin for begin, end in extents) > MOST_KEPT:
        return None
    return Image(size=len(data), extents=extents, content=b"".join([data[begin:end] for begin, end in extents]))


def head_parts(layout: Layout) -> Iterator[Extent]:
    """What describes the file: headers, the dynamic section, interpreter and notes."""
    wide = layout.bits == 64
    yield 0, 64
    head, = layout.unpack("Q" if wide else "I", 32 if wide else 28)
    yield head, head + len(layout.segments) * (56 if wide else 32)
    for segment in layout.segments:
        if segment.kind in {PT_INTERP, PT_NOTE}:
            yield segment.start, segment.start + min(segment.size, max(LONGEST_STRING, MOST_NOTE))
    dynamic = layout.dynamic_segment()
    if dynamic is not None:
        start = layout.offset_of(dynamic.address)
        yield start, start + 2 * layout.word * (len(layout.dynamic() or ()) + 1)


def version_parts(dynamic: Dynamic) -> Iterator[Extent]:
    """Strings, and the chains of DT_VERDEF and DT_VERNEED, which end where an entry names no next one."""
    if dynamic.strings_at is None:
        return
    yield dynamic.strings, dynamic.strings + dynamic.last.get(DT_STRSZ, 0)
    layout = dynamic.layout
    for tag, codes, size, step in ((DT_VERDEF, "HHHHIII", 20, 12), (DT_VERNEED, "HHIII", 16, 12)):
        address, left = dynamic.last.get(tag), MOST_NEEDED
        while address is not None and left:
            *_, inner, following = layout.read(codes, address)
            yield at(layout, address, size)
            other = address + inner
            for _ in range(MOST_NEEDED if tag == DT_VERNEED else 1):
                yield at(layout, other, 16 if tag == DT_VERNEED else 8)
                more = layout.read("I", other + step)[0] if tag == DT_VERNEED else 0
                if not more:
                    break
                other += more
            address, left = (address + following if following else None), left - 1


def at(layout: Layout, address: int, size: int) -> Extent:
    start = layout.offset_of(address)
    return start, start + size


def symbol_parts(tables: Tables) -> Iterator[Extent]:
    """Symbols with their versions and hashes, and the relocations that ask for them."""
    layout, dynamic = tables.layout, tables.dynamic
    table = SymbolTable(layout, dynamic)
    try:
        hashes = HashTable(layout, dynamic, symbols=table.room)
    except BadElf:
        return          # nobody can ask for its symbols
    count = hashes.count()
    gnu, old = dynamic.table(DT_GNU_HASH), dynamic.table(DT_HASH)
    if gnu is not None:
        words = layout.unpack("4I", gnu)[2]
        yield gnu, gnu + 16 + words * layout.word + 4 * (hashes.buckets + max(0, count - hashes.first))
    elif old is not None:
        yield old, old + 8 + 4 * (hashes.buckets + hashes.unhashed)
    highest = 0
    for index, extent in asking_relocations(dynamic):
        highest = max(highest, index)
        yield extent
    count = max(count, highest + 1)
    if table.start is not None:
        yield table.start, table.start + count * table.size
    versions = dynamic.table(DT_VERSYM)
    if versions is not None:
        yield versions, versions + 2 * count


def reads_alike(data: Buffer, image: Image, name: str) -> bool:
    """Whether the reader says the same of the image as of the file: of the file, and of each of its symbols."""
    opened = open_image(image, name)
    return all(one == other for one, other in zip_longest(reading(data, name), reading(opened, name)))


def reading(data: Buffer, name: str) -> Iterator[object]:
    """All that the reader says of a file, part by part; what it refuses is the last of them."""
    try:
        tables = read_tables(data, name)
        yield describe(tables, name), tables.dynamic.entries
        symbols = MappedSymbols(data, name, tables)
        table, names = symbols.table, set[str]()
        for column in table.columns(symbols.hashes.count()):
            texts = table.texts(column[1])
            yield column, texts, table.versions(range(column[0], column[0] + len(texts)))
            names.update(texts)
        yield symbols.undefined()
        yield symbols.unique()
        yield symbols.offered(SymbolNames(sorted(names)[::len(names) // MOST_TRIED + 1]))
        yield list(dict.fromkeys(relocation_symbols(symbols.dynamic)))
        yield symbols.referred()
    except BadElf as error:
        yield error.as_record(name)


__all__ = ["Hollow", "NotReducible", "reduce_elf"]
