"""Dynamic symbols of a mapped ELF file, found through DT_GNU_HASH or DT_HASH without reading the whole table."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from stackfix.inspect.elf import DT_VERSYM, Dynamic, read_versions
from stackfix.inspect.elf_hash import HashTable
from stackfix.inspect.elf_layout import Buffer, Layout
from stackfix.inspect.elf_relocations import relocation_symbols
from stackfix.inspect.records import DefinedSymbol, SymbolUse, UndefinedSymbol

DT_SYMTAB, DT_SYMENT = 6, 11
BINDINGS = {1: "global", 2: "weak", 10: "unique"}       # 10: STB_GNU_UNIQUE
KINDS = {0: "notype", 1: "object", 2: "func", 5: "common", 6: "tls", 10: "ifunc"}   # the rest defines nothing
VISIBLE = frozenset({0, 3})     # default and protected; hidden and internal symbols bind to nobody else
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
MOST_UNDEFINED = 250_000        # libtorch_cuda, the largest known, has some 10,000
STEP = 65536                    # symbols copied at a time: a false count must not cost the file's size in memory

Entry = tuple[int, int, int, int, int]      # name, info, other, section, value


class MappedSymbols:
    """Fills records.Symbols over mapped memory. `data` must stay mapped while this lives."""

    def __init__(self, data: Buffer, name: str) -> None:
        self.layout = layout = Layout(data, name)
        self.dynamic = Dynamic(layout)
        self.versions = read_versions(self.dynamic)
        self.entry_size = 24 if layout.bits == 64 else 16
        if self.dynamic.last.get(DT_SYMENT, self.entry_size) != self.entry_size:
            raise layout.bad("symbols of an unknown size")
        self.entry = struct.Struct(layout.order + ("IBBHQQ" if layout.bits == 64 else "IIIBBH"))
        self.symbols = self.dynamic.table(DT_SYMTAB)
        self.versym = self.dynamic.table(DT_VERSYM)
        rest = max(0, self.dynamic.strings - (self.symbols or 0)) // self.entry_size    # strings follow as a rule
        self.hashes = HashTable(layout, self.dynamic, symbols=rest if self.symbols is not None else 0)
        self._undefined: list[UndefinedSymbol] | None = None
        self._unique: list[UndefinedSymbol] | None = None


    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols wanted from others. With DT_GNU_HASH they stand before the hashed ones; else all are looked at."""
        if self._undefined is not None:
            return self._undefined
        found: list[UndefinedSymbol] = []
        for index, name, info, _other, section, _value in self._entries(0, self.hashes.unhashed):
            if section == SHN_UNDEF and index and name and info >> 4 in BINDINGS:
                found.append(self._wanted(index, name, weak=info >> 4 == 2))
                if len(found) > MOST_UNDEFINED:
                    raise self.layout.bad(f"more than {MOST_UNDEFINED} undefined symbols")
        self._undefined = found
        return found

    def unique(self) -> Sequence[UndefinedSymbol]:
        """Its own STB_GNU_UNIQUE symbols, found in a strided copy of the st_info bytes: one byte a symbol."""
        if self._unique is not None:
            return self._unique
        count = self.hashes.count() if self.symbols is not None else 0
        place, found = 4 if self.layout.bits == 64 else 12, list[UndefinedSymbol]()
        for first in range(0, count, STEP):
            size = min(STEP, count - first) * self.entry_size
            infos = self.layout.take((self.symbols or 0) + first * self.entry_size, size)[place::self.entry_size]
            if max(infos) >= 0xA0:
                found += [self._wanted(index, self._entry(index)[0], weak=False)
                          for index, info in enumerate(infos, first) if info >> 4 == 10]
        self._unique = found
        return found

    def named(self, name: str, gnu_hash: int) -> Sequence[DefinedSymbol]:
        """What is offered under `name`, along the chain that the loader would follow."""
        if not self.hashes.may_hold(gnu_hash):
            return ()
        encoded = name.encode("utf-8", "surrogateescape")
        found = []
        for index in self.hashes.chain(encoded, gnu_hash):
            symbol = self._offered(index, name, encoded)
            if symbol is not None:
                found.append(symbol)
        return found

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        """Relocations of its symbols of these names, in the loader's order."""
        wanted = frozenset(names)
        found: dict[tuple[str, str | None, bool], SymbolUse] = {}
        texts: dict[int, UndefinedSymbol] = {}
        for index, lazy in relocation_symbols(self.dynamic):
            if index not in texts:
                texts[index] = self._wanted(index, self._entry(index)[0], weak=False)
            symbol = texts[index]
            if symbol.name in wanted:
                found.setdefault((symbol.name, symbol.version, lazy), SymbolUse(symbol.name, symbol.version, lazy))
        return list(found.values())

    def referred(self) -> Sequence[UndefinedSymbol]:
        """Every symbol that a relocation asks the loader for, its own visible ones among them, each once."""
        found: dict[int, UndefinedSymbol] = {}
        for index, _ in relocation_symbols(self.dynamic):
            if index and index not in found:
                name, info, other, _, _ = self._entry(index)
                if info >> 4 in BINDINGS and other & 3 in VISIBLE:
                    found[index] = self._wanted(index, name, weak=info >> 4 == 2)
        return list(found.values())

    def defined(self) -> Iterator[DefinedSymbol]:
        """All that is offered, in table order. Reads the whole table: for almanacs, not for look-ups."""
        for index in range(1, self.hashes.count()):
            name = self._name(self._entry(index)[0])
            symbol = self._offered(index, name, name.encode("utf-8", "surrogateescape"))
            if symbol is not None:
                yield symbol

    def _entries(self, start: int, end: int) -> Iterator[tuple[int, ...]]:
        """(index, name, info, other, section, value) of the symbols from `start` to `end`."""
        if self.symbols is None:
            return
        offset = self.symbols + start * self.entry_size
        end = min(end, start + (self.layout.size - offset) // self.entry_size)
        for first in range(start, end, STEP):
            count = min(STEP, end - first)
            table = self.layout.take(self.symbols + first * self.entry_size, count * self.entry_size)
            if self.layout.bits == 64:
                for index, (name, info, other, section, value, _) in enumerate(self.entry.iter_unpack(table), first):
                    yield index, name, info, other, section, value
            else:
                for index, (name, value, _, info, other, section) in enumerate(self.entry.iter_unpack(table), first):
                    yield index, name, info, other, section, value

    def _entry(self, index: int) -> Entry:
        if self.symbols is None:
            raise self.layout.bad("a symbol, but no table of symbols")
        at = self.symbols + index * self.entry_size
        if at + self.entry_size > self.layout.size:
            raise self.layout.bad("a symbol past the end of the file")
        fields = self.entry.unpack_from(self.layout.data, at)
        if self.layout.bits == 64:
            return fields[0], fields[1], fields[2], fields[3], fields[4]
        return fields[0], fields[3], fields[4], fields[5], fields[1]

    def _name(self, at: int) -> str:
        return self.dynamic.text(at)

    def _version_index(self, index: int) -> int:
        if self.versym is None:
            return 1
        at = self.versym + 2 * index
        if at + 2 > self.layout.size:
            raise self.layout.bad("a symbol's version past the end of the file")
        return int.from_bytes(self.layout.data[at:at + 2], "little" if self.layout.order == "<" else "big")

    def _wanted(self, index: int, name: int, *, weak: bool) -> UndefinedSymbol:
        number = self._version_index(index) & 0x7FFF
        if number in self.versions.needed:
            need, hidden = self.versions.needed[number]
            return UndefinedSymbol(self._name(name), need.version, need.file, weak, hidden)
        return UndefinedSymbol(self._name(name), self.versions.defined.get(number), None, weak)

    def _offered(self, index: int, name: str, encoded: bytes) -> DefinedSymbol | None:
        """Symbol `index` if it is visible, defines something, and is called `name`."""
        at, info, other, section, value = self._entry(index)
        kind, binding = KINDS.get(info & 15), BINDINGS.get(info >> 4)
        if kind is None or binding is None or other & 3 not in VISIBLE or section == SHN_UNDEF:
            return None
        if value == 0 and section != SHN_ABS and kind != "tls":     # dl-lookup.c, check_match: no value
            return None
        start = self.dynamic.strings + at
        if self.layout.data[start:start + len(encoded) + 1] != encoded + b"\0":
            return None
        number = self._version_index(index)
        version = self.versions.defined.get(number & 0x7FFF)
        return DefinedSymbol(name, version, number & 0x7FFF, bool(number & 0x8000), binding, kind)
