"""Dynamic symbols of a mapped ELF file, found through DT_GNU_HASH or DT_HASH without reading the whole table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from stackfix.inspect.elf import Tables, read_tables
from stackfix.inspect.elf_hash import HashTable
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.elf_names import SymbolNames, encode, gnu_hash
from stackfix.inspect.elf_relocations import relocation_symbols
from stackfix.inspect.elf_table import SymbolTable
from stackfix.inspect.records import BadElf, DefinedSymbol, Offer, SymbolUse, UndefinedSymbol

BINDINGS = {1: "global", 2: "weak", 10: "unique"}       # 10: STB_GNU_UNIQUE
KINDS = {0: "notype", 1: "object", 2: "func", 5: "common", 6: "tls", 10: "ifunc"}   # the rest defines nothing
VISIBLE = frozenset({0, 3})     # default and protected; hidden and internal symbols bind to nobody else
SHN_UNDEF, SHN_ABS, STT_TLS = 0, 0xFFF1, 6
STB_GNU_UNIQUE = re.compile(rb"[\xa0-\xaf]")     # in st_info, whose high half is the binding
MOST_UNDEFINED = 250_000        # libtorch_cuda, the largest known, has some 10,000

Wanted = tuple[int, int, int]   # number of the symbol, st_name, st_info
new_undefined = partial(tuple.__new__, UndefinedSymbol)     # half the time of a call of the class: there are many


class MappedSymbols:
    """Fills records.Symbols over mapped memory. `data` must stay mapped while this lives."""

    def __init__(self, data: Buffer, name: str, tables: Tables | None = None) -> None:
        """`tables`: where somebody has read them before."""
        tables = tables or read_tables(data, name)
        self.layout, self.dynamic, self.versions = tables.layout, tables.dynamic, tables.versions
        self.table = SymbolTable(self.layout, self.dynamic)
        self.hashes = HashTable(self.layout, self.dynamic, symbols=self.table.room)
        self._undefined: list[UndefinedSymbol] | None = None
        self._unique: list[UndefinedSymbol] | None = None
        self._error: BadElf | None = None
        self._known: dict[str, Sequence[Offer]] = {}        # names that were looked up, all by their hash
        self._offers: dict[int, tuple[Offer, ...]] = {}     # by DT_VERSYM's number and st_info
        self._exact = {number for number, (_, exactly) in self.versions.needed.items() if exactly}

    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols wanted from others. With DT_GNU_HASH they stand before the hashed ones; else all are looked at."""
        if self._undefined is not None:
            return self._undefined
        found: list[UndefinedSymbol] = []
        for first, names, infos, sections in self.table.columns(self.hashes.unhashed):
            wanted = [(index, name, info) for index, (name, info, section) in
                      enumerate(zip(names, infos, sections, strict=True), first)
                      if section == SHN_UNDEF and name and info >> 4 in BINDINGS]
            if wanted and wanted[0][0] == 0:        # stands for "no symbol"
                del wanted[0]
            if len(found) + len(wanted) > MOST_UNDEFINED:
                raise self.layout.bad(f"more than {MOST_UNDEFINED} undefined symbols")
            found += self._wanted(wanted)
        self._undefined = found
        return found

    def unique(self) -> Sequence[UndefinedSymbol]:
        """Its own STB_GNU_UNIQUE symbols, found in a strided copy of the st_info bytes: one byte a symbol."""
        if self._unique is not None:
            return self._unique
        found: list[UndefinedSymbol] = []
        for first, infos in self.table.infos(self.hashes.count()):
            if not infos.isascii():
                indexes = [first + each.start() for each in STB_GNU_UNIQUE.finditer(infos)]
                found += self._wanted([(index, self.table.entry(index)[0], 0) for index in indexes])
        self._unique = found
        return found

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What is offered under those of the names that it has. Answers are remembered, also that there is none."""
        if self._error is not None:
            raise self._error
        known = self._known
        candidates = self.hashes.candidates(names)
        new = {name: value for name, value in candidates.items() if name not in known}
        if new:
            try:
                known.update(self._find(new))
            except BadElf as error:
                self._error = error
                raise
        return {name: offers for name in candidates if (offers := known[name])}

    def named(self, name: str, hashed: int | None = None) -> Sequence[DefinedSymbol]:
        """What is offered under `name`, along the chain that the loader would follow."""
        found = self._find({name: gnu_hash(name) if hashed is None else hashed})
        return [DefinedSymbol(name, *offer) for offer in found[name]]

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        """Relocations of its symbols of these names, in the loader's order."""
        wanted = frozenset(names)
        asked = list(dict.fromkeys(relocation_symbols(self.dynamic)))
        symbols = self._wanted([(index, self.table.entry(index)[0], 0) for index, _ in asked])
        return list(dict.fromkeys([SymbolUse(symbol.name, symbol.version, lazy)
                                   for symbol, (_, lazy) in zip(symbols, asked, strict=True) if symbol.name in wanted]))

    def referred(self) -> Sequence[UndefinedSymbol]:
        """Every symbol that a relocation asks the loader for, its own visible ones among them, each once."""
        found: list[Wanted] = []
        for index in dict.fromkeys(index for index, _ in relocation_symbols(self.dynamic)):
            name, info, other, _, _ = self.table.entry(index)
            if info >> 4 in BINDINGS and other & 3 in VISIBLE:
                found.append((index, name, info))
        return self._wanted(found)

    def defined(self) -> Iterator[DefinedSymbol]:
        """All that is offered, in table order. Reads the whole table: for almanacs, not for look-ups."""
        for index in range(1, self.hashes.count()):
            at, info, other, section, value = self.table.entry(index)
            name, = self.table.texts([at])
            if is_definition(info, other, section, value):
                for offer in self._offers_like(self.table.versions([index])[0] << 8 | info):
                    yield DefinedSymbol(name, *offer)

    def _wanted(self, symbols: Sequence[Wanted]) -> list[UndefinedSymbol]:
        """These symbols as they are asked for."""
        names = self.table.texts([name for _, name, _ in symbols])
        numbers = [number & 0x7FFF for number in self.table.versions([index for index, _, _ in symbols])]
        known = {number: self._version(number) for number in set(numbers)}
        return [new_undefined((name, *known[number], info >> 4 == 2, number in self._exact))
                for name, number, (_, _, info) in zip(names, numbers, symbols, strict=True)]

    def _version(self, number: int) -> tuple[str | None, str | None]:
        """A version by its number, and the library that it was linked from."""
        need, _ = self.versions.needed.get(number, (None, False))
        return (need.version, need.file) if need else (self.versions.defined.get(number), None)

    def _find(self, names: Mapping[str, int]) -> dict[str, Sequence[Offer]]:
        """What is offered under each of the names, which come with their hashes."""
        found: dict[str, Sequence[Offer]] = dict.fromkeys(names, ())
        data, strings, entry_of = self.layout.data, self.dynamic.strings, self.table.entry
        hits = list[tuple[str, int, int]]()
        for name, index in self.hashes.definitions(names.items()) if self.table.start is not None else ():
            at, info, other, section, value = entry_of(index)
            start, encoded = strings + at, encode(name) + b"\0"
            if data[start:start + len(encoded)] == encoded and is_definition(info, other, section, value):
                hits.append((name, index, info))
        for (name, _, info), number in zip(hits, self.table.versions([index for _, index, _ in hits]), strict=True):
            key = number << 8 | info
            offers = self._offers.get(key)
            if offers is None:
                offers = self._offers_like(key)
            if offers:
                found[name] = (*found[name], *offers) if found[name] else offers
        return found

    def _offers_like(self, key: int) -> tuple[Offer, ...]:
        """The one offer of symbols with this number in DT_VERSYM and st_info; none where they define nothing."""
        offers = self._offers.get(key)
        if offers is None:
            kind, binding, number = KINDS.get(key & 15), BINDINGS.get(key >> 4 & 15), key >> 8
            version = self.versions.defined.get(number & 0x7FFF)
            offers = self._offers[key] = () if kind is None or binding is None else (
                Offer(version, number & 0x7FFF, bool(number & 0x8000), binding, kind),)
        return offers


def is_definition(info: int, other: int, section: int, value: int) -> bool:
    """Whether a symbol is visible and has a value, as dl-lookup.c's check_match asks."""
    return section != SHN_UNDEF and other & 3 in VISIBLE and (
        value != 0 or section == SHN_ABS or info & 15 == STT_TLS)
