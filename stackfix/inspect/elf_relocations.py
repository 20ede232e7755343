"""Which symbols the relocations of an ELF file ask for, in the order in which glibc works them off."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.inspect.elf import Dynamic

DT_RELACOUNT, DT_RELCOUNT = 0x6FFFFFF9, 0x6FFFFFFA      # relative ones, without a symbol, that stand first
DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_REL, DT_RELSZ, DT_PLTREL, DT_JMPREL = 2, 7, 8, 17, 18, 20, 23
STEP = 65536                    # relocations copied at a time
MOST = 32_000_000               # libtorch_cuda has some 2,000,000


def relocation_symbols(dynamic: Dynamic) -> Iterator[tuple[int, bool]]:
    """(index of the symbol, whether it is bound lazily): DT_RELA or DT_REL first, then DT_JMPREL.

    Source: elf/do-rel.h. Relocations without a symbol (relative ones) have index 0 and are left out.
    """
    last = dynamic.last
    for tag, size_tag, count_tag, addend in (
            (DT_RELA, DT_RELASZ, DT_RELACOUNT, True), (DT_REL, DT_RELSZ, DT_RELCOUNT, False)):
        if tag in last:
            size, skip = last.get(size_tag, 0), last.get(count_tag, 0)
            yield from ((index, False) for index in _table(dynamic, tag, size, addend=addend, skip=skip))
    if DT_JMPREL in last:
        addend = last.get(DT_PLTREL, DT_RELA) == DT_RELA
        yield from ((index, True) for index in _table(dynamic, DT_JMPREL, last.get(DT_PLTRELSZ, 0), addend=addend))


def _table(dynamic: Dynamic, tag: int, size: int, *, addend: bool, skip: int = 0) -> Iterator[int]:
    layout, start = dynamic.layout, dynamic.table(tag)
    form = struct.Struct(layout.order + layout.word_code * (3 if addend else 2))
    shift = 32 if layout.bits == 64 else 8
    if start is None:
        return
    if size // form.size - skip > MOST:
        raise layout.bad(f"more than {MOST} relocations")
    for first in range(skip, size // form.size, STEP):
        count = min(STEP, size // form.size - first)
        table = layout.take(start + first * form.size, count * form.size)
        for fields in form.iter_unpack(table):
            index = fields[1] >> shift
            if index:
                yield index
