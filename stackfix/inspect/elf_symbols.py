"""Dynamic symbols of a mapped ELF file, found through DT_GNU_HASH or DT_HASH without reading the whole table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from stackfix.inspect.elf import Tables, read_tables
from stackfix.inspect.elf_hash import SMALL, HashTable
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
        self._names: frozenset[str] | None = None           # its own, where there is no DT_GNU_HASH
        self._known: dict[str, Sequence[Offer]] = {}        # names that were looked up, all by their hash
        self._offers: dict[int, tuple[Offer, ...]] = {}     # by DT_VERSYM's number and st_info

    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols wanted from others. With DT_GNU_HASH they stand before the hashed ones; else all are looked at."""
        if self._undefined is not None:
            return self._undefined
        if self.hashes.is_empty:        # no look-up finds its own symbols
            self._undefined = list(self.referred())
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
                found += self._of([first + each.start() for each in STB_GNU_UNIQUE.finditer(infos)])
        self._unique = found
        return found

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What is offered under those of the names that it has. Answers are remembered, also that there is none."""
        if self._error is not None:
            raise self._error
        known = self._known
        candidates = self.hashes.candidates(names) if self.hashes.gnu else self._candidates(names)
        new = {name: value for name, value in candidates.items() if name not in known}
        if new:
            try:
                known.update(self._find(new))
            except BadElf as error:
                self._error = error
                raise
        return {name: offers for name in candidates if (offers := known[name])}

    def _candidates(self, names: SymbolNames) -> Mapping[str, int]:
        """Those of the names that a table without DT_GNU_HASH may have: of a small one all names are read once."""
        if self._names is None and self.hashes.unhashed <= SMALL:
            try:
                self._names = frozenset(self.table.texts(
                    [name for _, column, _, _ in self.table.columns(self.hashes.unhashed) for name in column]))
            except BadElf:      # a string without an end: glibc compares no further than the name that is looked for
                return names.hashes()
        hashes = names.hashes()
        return hashes if self._names is None else {name: hashes[name] for name in hashes.keys() & self._names}

    def named(self, name: str, hashed: int | None = None) -> Sequence[DefinedSymbol]:
        """What is offered under `name`, along the chain that the loader would follow."""
        found = self._find({name: gnu_hash(name) if hashed is None else hashed})
        return [DefinedSymbol(name, *offer) for offer in found[name]]

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        """Relocations of its symbols of these names, in the loader's order."""
        wanted = frozenset(names)
        asked = list(dict.fromkeys(relocation_symbols(self.dynamic)))
        symbols = self._of([index for index, _ in asked])
        return list(dict.fromkeys([SymbolUse(symbol.name, symbol.version, symbol.file, lazy)
                                   for symbol, (_, lazy) in zip(symbols, asked, strict=True) if symbol.name in wanted]))

    def referred(self) -> Sequence[UndefinedSymbol]:
        """Every symbol that a relocation asks the loader for, its own visible ones among them, each once."""
        indexes = list(dict.fromkeys([index for index, _ in relocation_symbols(self.dynamic)]))
        entries = self.table.entries(indexes) if indexes else ()
        return self._wanted([(index, name, info) for index, (name, info, other, _, _)
                             in zip(indexes, entries, strict=True) if info >> 4 in BINDINGS and other & 3 in VISIBLE])

    def defined(self) -> Iterator[DefinedSymbol]:
        """All that is offered, in table order. Reads the whole table: for almanacs, not for look-ups."""
        for index in range(1, self.hashes.count()):
            at, info, other, section, value = self.table.entry(index)
            name, = self.table.texts([at])
            if is_definition(info, other, section, value):
                for offer in self._offers_like(self.table.versions([index])[0] << 8 | info):
                    yield DefinedSymbol(name, *offer)

    def _of(self, indexes: Sequence[int]) -> list[UndefinedSymbol]:
        """Symbols by their numbers, as somebody asks for them who does not do without."""
        entries = self.table.entries(indexes) if indexes else ()
        return self._wanted([(index, entry[0], 0) for index, entry in zip(indexes, entries, strict=True)])

    def _wanted(self, symbols: Sequence[Wanted]) -> list[UndefinedSymbol]:
        """These symbols as they are asked for."""
        names = self.table.texts([name for _, name, _ in symbols])
        versions = self.table.versions([index for index, _, _ in symbols])
        # what stands behind a name is the same for hundreds of symbols
        keys = [(version & 0x7FFF) << 8 | info for version, (_, _, info) in zip(versions, symbols, strict=True)]
        rest = {key: self._wanted_as(key >> 8, weak=(key & 0xFF) >> 4 == 2) for key in set(keys)}
        return [new_undefined((name, *rest[key])) for name, key in zip(names, keys, strict=True)]

    def _wanted_as(self, number: int, *, weak: bool) -> tuple[str | None, str | None, bool, bool]:
        """What an UndefinedSymbol has behind its name, from its number in DT_VERSYM."""
        if number in self.versions.needed:
            need, exactly = self.versions.needed[number]
            return need.version, need.file, weak, exactly
        return self.versions.defined.get(number), None, weak, False

    def _find(self, names: Mapping[str, int]) -> dict[str, Sequence[Offer]]:
        """What is offered under each of the names, which come with their hashes."""
        found: dict[str, Sequence[Offer]] = dict.fromkeys(names, ())
        if self.table.start is None:
            return found
        candidates = self.hashes.definitions(names)
        indexes = [index for _, index in candidates]
        data, strings, alike = self.layout.data, self.dynamic.strings, self._offers
        for (name, _), version, (at, info, other, section, value) in zip(
                candidates, self.table.versions(indexes), self.table.entries(indexes), strict=True):
            start, encoded = strings + at, encode(name) + b"\0"
            if data[start:start + len(encoded)] != encoded or not is_definition(info, other, section, value):
                continue
            key = version << 8 | info
            if key not in alike:
                alike[key] = self._offers_like(key)
            if alike[key]:
                found[name] = (*found[name], *alike[key]) if found[name] else alike[key]
        return found

    def _offers_like(self, key: int) -> tuple[Offer, ...]:
        """The one offer of symbols with this number in DT_VERSYM and st_info; none where they define nothing."""
        kind, binding, number = KINDS.get(key & 15), BINDINGS.get(key >> 4 & 15), key >> 8
        if kind is None or binding is None:
            return ()
        version = self.versions.defined.get(number & 0x7FFF)
        return (Offer(version, number & 0x7FFF, bool(number & 0x8000), binding, kind),)


def is_definition(info: int, other: int, section: int, value: int) -> bool:
    """Whether a symbol is visible and has a value, as dl-lookup.c's check_match asks."""
    return section != SHN_UNDEF and other & 3 in VISIBLE and (
        value != 0 or section == SHN_ABS or info & 15 == STT_TLS)
