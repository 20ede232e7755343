"""The relocations that ask for a symbol first: what comes after them asks for nothing new."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.inspect.elf import Dynamic
from stackfix.inspect.elf_relocations import (
    DT_JMPREL,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_REL,
    DT_RELA,
    DT_RELACOUNT,
    DT_RELASZ,
    DT_RELCOUNT,
    DT_RELSZ,
    MOST,
    STEP,
)
from stackfix.tables.image import Extent

Table = tuple[int, int, int, bool]      # tag, bytes, relative ones that stand first, with addends


def asking_relocations(dynamic: Dynamic) -> Iterator[tuple[int, Extent]]:
    """(number of the symbol, where its first relocation lies), of each table by itself. Raises BadElf.

    Zeros in place of the others are relocations without a symbol, which nobody looks at.
    """
    last = dynamic.last
    tables: list[Table] = []
    if DT_RELA in last:
        tables.append((DT_RELA, last.get(DT_RELASZ, 0), last.get(DT_RELACOUNT, 0), True))
    if DT_REL in last:
        tables.append((DT_REL, last.get(DT_RELSZ, 0), last.get(DT_RELCOUNT, 0), False))
    if DT_JMPREL in last:
        tables.append((DT_JMPREL, last.get(DT_PLTRELSZ, 0), 0, last.get(DT_PLTREL, DT_RELA) == DT_RELA))
    for table in tables:
        yield from first_uses(dynamic, table)


def first_uses(dynamic: Dynamic, table: Table) -> Iterator[tuple[int, Extent]]:
    """Those of one table, read some thousands at a time."""
    layout, (tag, size, skip, addend) = dynamic.layout, table
    start = dynamic.table(tag)
    if start is None:
        return
    words = 3 if addend else 2
    step, shift = words * layout.word, 32 if layout.bits == 64 else 8
    if size // step - skip > MOST:
        raise layout.bad(f"more than {MOST} relocations")
    seen = {0}
    for first in range(skip, size // step, STEP):
        count = min(STEP, size // step - first)
        content = memoryview(layout.take(start + first * step, count * step))
        numbers = content.cast("Q") if layout.bits == 64 else content.cast("I")
        for place, info in enumerate(numbers[1::words].tolist(), first):
            index = info >> shift
            if index not in seen:
                seen.add(index)
                yield index, (start + place * step, start + (place + 1) * step)


__all__ = ["asking_relocations"]
