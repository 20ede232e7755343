"""DT_GNU_HASH and DT_HASH of a mapped ELF file: which symbols may bear a name, without reading the others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from stackfix.inspect.elf import Dynamic
from stackfix.inspect.elf_layout import Layout
from stackfix.inspect.elf_names import SymbolNames, encode, sysv_hash
from stackfix.inspect.records import BadElf

DT_HASH, DT_GNU_HASH = 4, 0x6FFFFEF5
MOST_SYMBOLS = 1_000_000        # libtorch_cpu has some 100,000
MOST_STEPS = 4096               # along one hash chain: linkers aim at fewer than ten
FEW = 8                         # symbols of a table that can be compared while one name is looked up
SMALL, LARGE = 1 << 14, 1 << 17     # hashed symbols. Small tables are kept as sets, large ones never
PASSES = 2                      # what lies between is once it was gone through so often
ENDLESS = "a hash chain without end"


class HashTable:
    """The one table that glibc asks: DT_GNU_HASH where there are both. Raises BadElf."""

    def __init__(self, layout: Layout, dynamic: Dynamic, *, symbols: int) -> None:
        """`symbols`: how many there may be, for a file without any hash table."""
        self.layout, self.gnu, self.buckets, self.first, self.unhashed = layout, False, 0, 0, symbols
        self._count: int | None = None
        self._hashed: set[int] | None = None
        self._passes = 0
        if layout.byte_order != sys.byteorder:
            raise layout.bad(f"symbols of a {layout.byte_order}-endian file are not read")
        gnu, old = dynamic.table(DT_GNU_HASH), dynamic.table(DT_HASH)
        if gnu is not None:
            self._open_gnu(gnu)
        elif old is not None:
            self.buckets, self.unhashed = layout.unpack("2I", old)      # all of them, hashed or not
            self._check_counts()
            self._bucket_view = self._view(old + 8, self.buckets)
            self._chain_view = self._view(old + 8 + 4 * self.buckets, self.unhashed)
        self._check_counts()

    def _open_gnu(self, at: int) -> None:
        layout, self.gnu = self.layout, True
        self.buckets, self.first, words, self.shift = layout.unpack("4I", at)
        if not words or words & words - 1:
            raise layout.bad("a bloom filter whose size is no power of two")
        self.unhashed = self.first      # these stand before the hashed ones: local and undefined symbols
        self._check_counts()
        self.bits, self.bloom_mask = layout.bits, words - 1
        bucket_at = at + 16 + words * layout.word
        self._bloom_view = self._view(at + 16, words, wide=layout.bits == 64)
        self._bucket_view = self._view(bucket_at, self.buckets)
        # a chain's length is written nowhere: its last member has bit 0 set
        rest = (layout.size - bucket_at) // 4 - self.buckets
        self._chain_view = self._view(bucket_at + 4 * self.buckets, rest)

    def _check_counts(self) -> None:
        if max(self.unhashed, self.buckets) > MOST_SYMBOLS:
            raise self.layout.bad(f"more than {MOST_SYMBOLS} dynamic symbols")

    @property
    def is_empty(self) -> bool:
        """Whether it leads to no symbol. Then it tells nothing of the others: GNU ld says that there is one."""
        return not self.buckets or (self.gnu and not any(self._bucket_view))

    def _view(self, offset: int, count: int, *, wide: bool = False) -> memoryview:
        """Numbers of the file, of 32 or 64 bits, read when they are asked for."""
        size = (8 if wide else 4) * count
        if offset + size > self.layout.size:
            raise self.layout.bad("a hash table that goes past the end of the file")
        part = memoryview(self.layout.data)[offset:offset + size]
        return part.cast("Q") if wide else part.cast("I")

    def candidates(self, names: SymbolNames) -> Mapping[str, int]:
        """Those that a DT_GNU_HASH table may have, with their hashes: the hash, but for its last bit, is in a chain.

        Numbers are compared as sets: nothing here runs once for each symbol, unless few names are asked for.
        """
        if not self.buckets:
            return {}
        if self._hashed is None:
            size = self._comparable()
            if size is None or len(names) * FEW < size:
                return names.hashes()
            self._passes += 1
            hashed = self._chain_view[:size]
            if size > SMALL and (size > LARGE or self._passes <= PASSES):
                return names.behind(names.either.intersection(hashed))
            self._hashed = set(hashed)
        return names.behind(names.either & self._hashed)

    def definitions(self, names: Mapping[str, int]) -> list[tuple[str, int]]:
        """(name, index of a symbol that may be called so), in the order in which the loader looks at them.

        `names`: with their hashes.
        """
        if not self.buckets:
            return []
        return self._definitions(names) if self.gnu else list(self._old_definitions(names))

    def _definitions(self, names: Mapping[str, int]) -> list[tuple[str, int]]:
        """The bloom filter, a bucket, its chain of hashes; the last of a chain has bit 0 set."""
        bloom, bucket, chain = self._bloom_view, self._bucket_view, self._chain_view
        bits, mask, shift, buckets, first = self.bits, self.bloom_mask, self.shift, self.buckets, self.first
        found: list[tuple[str, int]] = []
        try:
            for name, value in names.items():
                word = bloom[value // bits & mask]
                if not word >> value % bits & word >> (value >> shift) % bits & 1:
                    continue
                start = bucket[value % buckets] - first
                if start < 0:
                    continue
                wanted = value | 1
                for place in range(start, start + MOST_STEPS):
                    entry = chain[place]
                    if entry | 1 == wanted:
                        found.append((name, place + first))
                    if entry & 1:
                        break
                else:
                    raise self.layout.bad(ENDLESS)
        except IndexError:          # past the end of the file
            raise self.layout.bad(ENDLESS) from None
        return found

    def _old_definitions(self, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        for name in names:
            index = self._bucket_view[sysv_hash(encode(name)) % self.buckets]
            for _ in range(MOST_STEPS):
                if not index:
                    break
                if index >= self.unhashed:
                    raise self.layout.bad("a hash chain that leaves its table")
                yield name, index
                index = self._chain_view[index]
            else:
                raise self.layout.bad(ENDLESS)

    def _comparable(self) -> int | None:
        """Number of hashed symbols; None where it cannot be told, or is no honest file's."""
        try:
            size = self.count() - self.first
        except BadElf:
            return None
        return size if size <= MOST_SYMBOLS else None

    def count(self) -> int:
        """Number of dynamic symbols."""
        if self._count is None:
            self._count = self._last() if self.gnu else self.unhashed
        return self._count

    def _last(self) -> int:
        """DT_GNU_HASH does not say how many there are: the last chain is followed to its end."""
        last = max(self._bucket_view, default=0)
        if last < self.first:
            return self.first
        for index, value in enumerate(self._chain_view[last - self.first:last - self.first + MOST_STEPS], last):
            if value & 1:
                return index + 1
        raise self.layout.bad(ENDLESS)
