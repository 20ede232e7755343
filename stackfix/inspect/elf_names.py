"""Symbol names and their hashes for DT_GNU_HASH: many at once, and each only once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

MASK = 0xFFFFFFFF
CHUNK = 1 << 14             # bytes that one big number holds: the processor's own cache still holds two
NARROWEST = 16              # bytes; a name is laid into the next power of two of them
MOST_KNOWN = 1 << 18        # hashes that are remembered: the largest environments ask for some 100,000 names
SHORT = 16                  # names; fewer are hashed faster one by one

_known: dict[str, int] = {}


def gnu_hash(name: str) -> int:
    """DT_GNU_HASH's hash of a symbol name."""
    found = _known.get(name)
    return found if found is not None else hash_bytes(encode(name))


def encode(name: str) -> bytes:
    """A symbol's name as it stands in a file."""
    return name.encode("utf-8", "surrogateescape")


def hash_bytes(name: bytes) -> int:
    """The hash by its definition, Horner's rule: times 33 plus the next byte, from 5381."""
    value = 5381
    for byte in name:
        value = value * 33 + byte   # one mask at the end is faster than one per byte
    return value & MASK


def gnu_hashes(names: Iterable[str]) -> dict[str, int]:
    """Hashes by name. Python's time for a name of 50 bytes falls from 3 µs to 1 µs where there are many."""
    found, new = {}, list[str]()
    for name in names:
        known = _known.get(name)
        if known is None:
            new.append(name)
        else:
            found[name] = known
    if new:
        fresh = hash_many(new) if len(new) >= SHORT else {name: hash_bytes(encode(name)) for name in new}
        if len(_known) > MOST_KNOWN:
            _known.clear()
        _known.update(fresh)
        found.update(fresh)
    return found


def hash_many(names: Iterable[str]) -> dict[str, int]:
    """Hashes by name, of names of similar length together."""
    lengths: dict[int, tuple[list[str], list[bytes]]] = {}
    for name in names:
        encoded = encode(name)
        width = max(NARROWEST, 1 << (len(encoded) - 1).bit_length())
        group = lengths.get(width)
        if group is None:
            group = lengths[width] = [], []
        group[0].append(name)
        group[1].append(encoded)
    found: dict[str, int] = {}
    for width, (texts, group_bytes) in lengths.items():
        step = max(1, CHUNK // width)
        for start in range(0, len(texts), step):
            found.update(zip(texts[start:start + step], _hash_chunk(group_bytes[start:start + step], width),
                             strict=True))
    return found


def _hash_chunk(names: list[bytes], width: int) -> list[int]:
    """Hashes of names of at most `width` bytes, worked out side by side in one big number.

    The hash is a polynomial in 33, so that of two neighbours joined is left * 33**length(right) + right. Each round
    joins all pairs of neighbours: bytes to 16-bit lanes, these to 32-bit lanes, until a lane is a name. Zeros in front
    of a name add nothing. A lane of 64 bits holds eight bytes without a carry; from there on it is cut to 32 bits.
    """
    size = len(names) * width
    total = int.from_bytes(b"".join([name.rjust(width, b"\0") for name in names]), "big")
    lane = 1                    # in bytes
    while lane < width:
        mask = _mask(lane if lane <= 8 else 4, 2 * lane, max(size, CHUNK))
        total = (total >> 8 * lane & mask) * _power(lane) + (total & mask)
        lane *= 2
    # written in the machine's own order: on little-endian ones the last name comes first, its low word in front
    words = memoryview(total.to_bytes(size, sys.byteorder)).cast("I")
    step = width // 4
    values = words[::step].tolist()[::-1] if sys.byteorder == "little" else words[step - 1::step].tolist()
    return [value + 5381 * _power(len(name)) & MASK for value, name in zip(values, names, strict=True)]


@lru_cache(maxsize=32)
def _mask(low: int, lane: int, size: int) -> int:
    """The `low` low bytes of each lane, in a number of `size` bytes."""
    return int.from_bytes((bytes(lane - low) + b"\xff" * low) * (size // lane), "big")


@cache
def _power(exponent: int) -> int:
    return pow(33, exponent, 1 << 32)


class SymbolNames:
    """Names that are looked for in object after object. Found ones are dropped, so that the rest becomes less."""

    __slots__ = ("_others", "by_key", "either", "hashes")

    def __init__(self, names: Iterable[str]) -> None:
        """Each name once."""
        self.hashes = gnu_hashes(names)
        # a hash chain keeps 31 bits of each hash: the last one tells where it ends. A key has that bit set.
        self.by_key = {value | 1: name for name, value in self.hashes.items()}
        self._others: dict[int, list[str]] = {}
        if len(self.by_key) < len(self.hashes):
            for name, value in self.hashes.items():
                if self.by_key[value | 1] != name:
                    self._others.setdefault(value | 1, []).append(name)
        self.either = {*self.by_key, *[key ^ 1 for key in self.by_key]}     # as a chain may hold them

    def __len__(self) -> int:
        return len(self.hashes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.hashes)

    def of_key(self, key: int) -> Iterable[str]:
        """Names of one key; more than one in a million times."""
        if key in self._others:
            return [name for name in (self.by_key[key], *self._others[key]) if name in self.hashes]
        return (self.by_key[key],)

    def drop(self, names: Iterable[str]) -> None:
        """Look for these no more."""
        for name in names:
            key = self.hashes.pop(name) | 1
            if key not in self._others or not self.of_key(key):
                self.either.discard(key)
                self.either.discard(key ^ 1)
