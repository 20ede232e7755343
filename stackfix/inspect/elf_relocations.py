"""Which symbols the relocations of an ELF file ask for, in the order in which glibc works them off."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.inspect.elf import Dynamic

DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_REL, DT_RELSZ, DT_PLTREL, DT_JMPREL = 2, 7, 8, 17, 18, 20, 23
STEP = 65536                    # relocations copied at a time


def relocation_symbols(dynamic: Dynamic) -> Iterator[tuple[int, bool]]:
    """(index of the symbol, whether it is bound lazily): DT_RELA or DT_REL first, then DT_JMPREL.

    Source: elf/do-rel.h. Relocations without a symbol (relative ones) have index 0 and are left out.
    """
    last = dynamic.last
    for tag, size_tag, addend in ((DT_RELA, DT_RELASZ, True), (DT_REL, DT_RELSZ, False)):
        if tag in last:
            yield from ((index, False) for index in _table(dynamic, tag, last.get(size_tag, 0), addend=addend))
    if DT_JMPREL in last:
        addend = last.get(DT_PLTREL, DT_RELA) == DT_RELA
        yield from ((index, True) for index in _table(dynamic, DT_JMPREL, last.get(DT_PLTRELSZ, 0), addend=addend))


def _table(dynamic: Dynamic, tag: int, size: int, *, addend: bool) -> Iterator[int]:
    layout, start = dynamic.layout, dynamic.table(tag)
    form = struct.Struct(layout.order + layout.word_code * (3 if addend else 2))
    shift = 32 if layout.bits == 64 else 8
    if start is None:
        return
    for first in range(0, size // form.size, STEP):
        count = min(STEP, size // form.size - first)
        table = layout.take(start + first * form.size, count * form.size)
        for fields in form.iter_unpack(table):
            index = fields[1] >> shift
            if index:
                yield index
