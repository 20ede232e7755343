"""Symbol names and their hashes for DT_GNU_HASH: many at once, and each only once."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache

MASK = 0xFFFFFFFF
CHUNK = 1 << 14             # bytes that one big number holds: the processor's own cache still holds two
NARROWEST = 16              # bytes; a name is laid into the next power of two of them
MOST_KNOWN = 1 << 18        # hashes that are remembered: the largest environments ask for some 100,000 names

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


def sysv_hash(name: bytes) -> int:
    """DT_HASH's hash of a symbol name."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def gnu_hashes(names: Collection[str]) -> list[int]:
    """A hash for each name. Python's time for one of 50 bytes falls from 3 µs to 1 µs where there are many."""
    try:
        return [_known[name] for name in names]
    except KeyError:
        new = [name for name in names if name not in _known]
    if len(_known) + len(new) > MOST_KNOWN:
        _known.clear()
        new = list(names)
    hash_many(new)
    return [_known[name] for name in names]


def hash_many(names: Iterable[str]) -> None:
    """Remember the hashes of these names: those of similar length are worked out together."""
    groups: dict[int, tuple[list[str], list[bytes]]] = {}
    for name in names:
        encoded = encode(name)
        size = (len(encoded) - 1).bit_length()      # names of 17 to 32 bytes are those of 5
        if size not in groups:
            groups[size] = [], []
        texts, encodings = groups[size]
        texts.append(name)
        encodings.append(encoded)
    for size, (texts, encodings) in groups.items():
        width = max(NARROWEST, 1 << size)
        step = max(1, CHUNK // width)
        for start in range(0, len(texts), step):
            hashes = _hash_chunk(encodings[start:start + step], width)
            _known.update(zip(texts[start:start + step], hashes, strict=True))


def _hash_chunk(names: Sequence[bytes], width: int) -> list[int]:
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

    __slots__ = ("_same", "by_hash", "either")

    def __init__(self, names: Collection[str]) -> None:
        """Each name once."""
        self.by_hash = dict(zip(gnu_hashes(names), names, strict=True))
        self._same: list[str] = []      # names whose whole hash is another's too: one pair in a million names
        if len(self.by_hash) < len(names):
            self._same = [name for name in names if self.by_hash[gnu_hash(name)] != name]
        # a hash chain keeps 31 bits of each hash and uses the last one to tell where it ends
        self.either = {*self.by_hash, *[value ^ 1 for value in self.by_hash]}

    def __len__(self) -> int:
        return len(self.by_hash) + len(self._same)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.by_hash.get(gnu_hash(name)) == name or name in self._same)

    def __iter__(self) -> Iterator[str]:
        yield from self.by_hash.values()
        yield from self._same

    def behind(self, values: Iterable[int]) -> dict[str, int]:
        """Names, with their hashes, whose hash is among these values but for the last bit."""
        by_hash = self.by_hash
        found = {by_hash[value]: value for each in values for value in (each, each ^ 1) if value in by_hash}
        return {**found, **{name: gnu_hash(name) for name in self._same}} if self._same else found

    def hashes(self) -> dict[str, int]:
        """All of them, with their hashes."""
        return {name: gnu_hash(name) for name in self}

    def drop(self, names: Collection[str]) -> None:
        """Look for these no more."""
        by_hash = self.by_hash
        values = gnu_hashes(names)
        if self._same:
            values = [value for name, value in zip(names, values, strict=True) if not self._drop_same(name, value)]
        for value in values:
            del by_hash[value]
        self.either.difference_update(values, [value ^ 1 for value in values])
        neighbours = [value ^ 1 for value in values if value ^ 1 in by_hash]
        self.either.update(neighbours, [value ^ 1 for value in neighbours])

    def _drop_same(self, name: str, value: int) -> bool:
        """Drop a name whose hash another one bears in `by_hash`, or bore; False where it is there itself."""
        if self.by_hash.get(value) == name:
            return False
        self._same.remove(name)
        return True
