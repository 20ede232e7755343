"""Dynamic symbols of a mapped ELF file, found through DT_GNU_HASH or DT_HASH without reading the whole table."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.inspect.elf import DT_VERSYM, Dynamic, Versions, read_versions
from stackfix.inspect.elf_hash import HashTable
from stackfix.inspect.elf_layout import Buffer, Layout
from stackfix.inspect.elf_names import SymbolNames, encode, gnu_hash
from stackfix.inspect.elf_relocations import relocation_symbols
from stackfix.inspect.records import DefinedSymbol, Offer, SymbolUse, UndefinedSymbol

DT_SYMTAB, DT_SYMENT = 6, 11
BINDINGS = {1: "global", 2: "weak", 10: "unique"}       # 10: STB_GNU_UNIQUE
KINDS = {0: "notype", 1: "object", 2: "func", 5: "common", 6: "tls", 10: "ifunc"}   # the rest defines nothing
VISIBLE = frozenset({0, 3})     # default and protected; hidden and internal symbols bind to nobody else
SHN_UNDEF, SHN_ABS, STT_TLS = 0, 0xFFF1, 6
STB_GNU_UNIQUE = re.compile(rb"[\xa0-\xaf]")     # of st_info, whose high half is the binding
MOST_UNDEFINED = 250_000        # libtorch_cuda, the largest known, has some 10,000
STEP = 65536                    # symbols copied at a time: a false count must not cost the file's size in memory

Entry = tuple[int, int, int, int, int]      # name, info, other, section, value


class MappedSymbols:
    """Fills records.Symbols over mapped memory. `data` must stay mapped while this lives."""

    def __init__(self, data: Buffer, name: str) -> None:
        layout = Layout(data, name)
        dynamic = Dynamic(layout)
        self._open(layout, dynamic, read_versions(dynamic))

    def _open(self, layout: Layout, dynamic: Dynamic, versions: Versions) -> None:
        self.layout, self.dynamic, self.versions = layout, dynamic, versions
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
        self._known: dict[str, Sequence[Offer]] = {}            # names that were looked up, all by their hash
        self._offers: dict[int, Offer] = {}                     # by DT_VERSYM's number and st_info
        self._wants: dict[int, tuple[str | None, str | None, bool]] = {}    # by DT_VERSYM's number

    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols wanted from others. With DT_GNU_HASH they stand before the hashed ones; else all are looked at."""
        if self._undefined is not None:
            return self._undefined
        found: list[UndefinedSymbol] = []
        for first, names, infos, sections in self._columns(self.hashes.unhashed):
            for index, name, info, section in zip(range(first, first + len(names)), names, infos, sections,
                                                  strict=False):
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
            if not infos.isascii():
                found += [self._wanted(index, self._entry(index)[0], weak=False)
                          for index in (first + each.start() for each in STB_GNU_UNIQUE.finditer(infos))]
        self._unique = found
        return found

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What is offered under those of the names that it has. Names that could be there are remembered."""
        hashes, known, found = self.hashes, self._known, dict[str, Sequence[Offer]]()
        for name in hashes.candidates(names) if hashes.gnu else list(names):
            offers = known.get(name)
            if offers is None:
                offers = known[name] = self._look_up(name, names.hashes[name])
            if offers:
                found[name] = offers
        return found

    def named(self, name: str, hashed: int | None = None) -> Sequence[DefinedSymbol]:
        """What is offered under `name`, along the chain that the loader would follow."""
        return [DefinedSymbol(name, *offer)
                for offer in self._look_up(name, gnu_hash(name) if hashed is None else hashed)]

    def _look_up(self, name: str, hashed: int) -> Sequence[Offer]:
        if not self.hashes.may_hold(hashed):
            return ()
        encoded = encode(name)
        found = [self._offered(index, encoded) for index in self.hashes.chain(encoded, hashed)]
        return [offer for offer in found if offer is not None]

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
            offer = self._offered(index, encode(name))
            if offer is not None:
                yield DefinedSymbol(name, *offer)

    def _columns(self, end: int) -> Iterator[tuple[int, list[int], bytes, list[int]]]:
        """(first, st_name, st_info and st_shndx from there on) of the symbols up to `end`, some thousands at a time."""
        if self.symbols is None:
            return
        size, wide = self.entry_size, self.layout.bits == 64
        end = min(end, (self.layout.size - self.symbols) // size)
        for first in range(0, end, STEP):
            table = self.layout.take(self.symbols + first * size, min(STEP, end - first) * size)
            view = memoryview(table)
            yield (first, view.cast("I")[::size // 4].tolist(), table[4 if wide else 12::size],
                   view.cast("H")[3 if wide else 7::size // 2].tolist())

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
        wants = self._wants.get(number)
        if wants is None:
            need, hidden = self.versions.needed.get(number, (None, False))
            wants = self._wants[number] = ((need.version, need.file, hidden) if need
                                           else (self.versions.defined.get(number), None, False))
        version, file, exactly = wants
        return UndefinedSymbol(self._name(name), version, file, weak, exactly)

    def _offered(self, index: int, encoded: bytes) -> Offer | None:
        """Symbol `index` if it is visible, defines something, and is called so."""
        at, info, other, section, value = self._entry(index)
        if other & 3 not in VISIBLE or section == SHN_UNDEF:
            return None
        if value == 0 and section != SHN_ABS and info & 15 != STT_TLS:      # dl-lookup.c, check_match: no value
            return None
        start = self.dynamic.strings + at
        if self.layout.data[start:start + len(encoded) + 1] != encoded + b"\0":
            return None
        number = self._version_index(index)
        offer = self._offers.get(number << 8 | info)
        if offer is None:
            kind, binding = KINDS.get(info & 15), BINDINGS.get(info >> 4)
            if kind is None or binding is None:
                return None
            version = self.versions.defined.get(number & 0x7FFF)
            offer = self._offers[number << 8 | info] = Offer(version, number & 0x7FFF, bool(number & 0x8000),
                                                             binding, kind)
        return offer
