"""DT_SYMTAB of a mapped ELF file with its strings and DT_VERSYM, one entry or thousands at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from stackfix.inspect.elf import DT_VERSYM, Dynamic
from stackfix.inspect.elf_layout import LONGEST_STRING, Layout

DT_SYMTAB = 6
STEP = 65536                    # symbols copied at a time: a false count must not cost the file's size in memory
TEXTS = 512                     # strings between two looks at how much they take
MOST_TEXT = 64 << 20            # bytes of names at once; all of libtorch_cpu's are 10 MB

Entry = tuple[int, int, int, int, int]      # st_name, st_info, st_other, st_shndx, st_value
Column = tuple[int, list[int], bytes, list[int]]    # number of the first symbol; st_name, st_info, st_shndx from there


class SymbolTable:
    """The table of a file in this machine's byte order. Raises BadElf for all that is not there."""

    def __init__(self, layout: Layout, dynamic: Dynamic) -> None:
        self.layout, self.dynamic = layout, dynamic
        self.wide = layout.bits == 64
        self.size = 24 if self.wide else 16
        self._unpack = struct.Struct(layout.order + ("IBBHQ8x" if self.wide else "IIIBBH")).unpack_from
        self.start = dynamic.table(DT_SYMTAB)
        versions = dynamic.table(DT_VERSYM)
        self._versions: memoryview | None = None
        if versions is not None:
            whole = max(0, layout.size - versions) // 2 * 2
            self._versions = memoryview(layout.data)[versions:versions + whole].cast("H")

    @property
    def room(self) -> int:
        """How many symbols there may be: strings follow as a rule."""
        return max(0, self.dynamic.strings - self.start) // self.size if self.start is not None else 0

    def entry(self, index: int) -> Entry:
        """One symbol."""
        return self.entries([index])[0]

    def entries(self, indexes: Sequence[int]) -> list[Entry]:
        """Symbols by their numbers."""
        if self.start is None:
            raise self.layout.bad("a symbol, but no table of symbols")
        unpack, data, start, size = self._unpack, self.layout.data, self.start, self.size
        try:
            fields = [unpack(data, start + index * size) for index in indexes]
        except struct.error:
            raise self.layout.bad("a symbol past the end of the file") from None
        if self.wide:
            return fields
        return [(name, info, other, section, value) for name, value, _, info, other, section in fields]

    def versions(self, indexes: Sequence[int]) -> list[int]:
        """Numbers of symbols in DT_VERSYM, with the hidden bit; 1 where there is no such table."""
        if self._versions is None:
            return [1] * len(indexes)
        view = self._versions
        try:
            return [view[index] for index in indexes]
        except IndexError:
            raise self.layout.bad("a symbol's version past the end of the file") from None

    def columns(self, end: int) -> Iterator[Column]:
        """The symbols up to `end`, some thousands at a time."""
        if self.start is None:
            return
        end = min(end, (self.layout.size - self.start) // self.size)
        for first in range(0, end, STEP):
            table = self.layout.take(self.start + first * self.size, min(STEP, end - first) * self.size)
            view = memoryview(table)
            yield (first, view.cast("I")[::self.size // 4].tolist(), table[4 if self.wide else 12::self.size],
                   view.cast("H")[3 if self.wide else 7::self.size // 2].tolist())

    def infos(self, end: int) -> Iterator[tuple[int, bytes]]:
        """(number of the first symbol, st_info from there on), for all symbols up to `end`: one byte each."""
        for first in range(0, end if self.start is not None else 0, STEP):
            at, size = (self.start or 0) + first * self.size, min(STEP, end - first) * self.size
            yield first, self.layout.take(at, size)[4 if self.wide else 12::self.size]

    def texts(self, names: Sequence[int]) -> list[str]:
        """The strings at these places of the string table."""
        found: list[str] = []
        room = MOST_TEXT
        for first in range(0, len(names), TEXTS):
            encoded = b"\0".join(self._strings(names[first:first + TEXTS]))
            room -= len(encoded)
            if room < 0:
                raise self.layout.bad(f"more than {MOST_TEXT >> 20} MB of symbol names")
            found += encoded.decode("utf-8", "surrogateescape").split("\0")     # no name holds a zero
        return found

    def _strings(self, names: Sequence[int]) -> list[bytes]:
        data, strings, end, found = self.layout.data, self.dynamic.strings, self.dynamic.strings_end, list[bytes]()
        find = data.find
        for name in names:
            start = strings + name
            stop = find(b"\0", start, start + LONGEST_STRING)
            found.append(data[start:stop] if start <= stop < end else self.layout.string(start, end))
        return found
