"""The bytes of `matrices/abi/full.bin`: which torch minors export a key, to be mapped. See docs/almanac.md.

All numbers are little-endian. In this order, each part beginning at a multiple of 8, with zeros (in the header, blanks)
between:

    prologue    64 bytes: PROLOGUE below
    header      JSON in ASCII: {"libraries": [...], "releases": [{"minor", "version", "file", "sha256", "string_abi",
                "patches"}, ...]}, releases oldest first
    hashes      `keys` u64, ascending: `key_hash` of each key
    minors      `pairs` u64: bit i stands for releases[i]
    libraries   `pairs` u16: bit j stands for libraries[j]
    index       `keys` u16: which of the pairs the key of the same place has
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stackfix.errors import BadInput

MAGIC = b"sfx-abi\x01"
HINT = "Install stackfix again, or make the file anew with `python -m stackfix.almanac torch --make`."
PROLOGUE = struct.Struct("<8sIIIIQ32s")     # magic, size of the header, keys, pairs, 0, size of the file, digest
ALIGN = 8
MOST_RELEASES = 64              # bits of a mask of minors
MOST_LIBRARIES = 16             # bits of a mask of libraries
MOST_PAIRS = 1 << 16            # what an index can name
MOST_HEADER = 1 << 20


def key_hash(key: str) -> int:
    """The number that stands for an ABI-neutral name. The generator sees to it that no two names share one."""
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def digest_of(rest: bytes | memoryview) -> bytes:
    """The digest in the prologue, over all that follows it. Each opening asks for it: 1 ms for the real file."""
    return hashlib.blake2b(rest, digest_size=32).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """Where the parts of a file begin."""

    keys: int                       # how many
    pairs: int
    header: tuple[int, int]         # begin and end
    hashes: int
    minors: int
    libraries: int
    index: int
    size: int                       # of the file
    digest: bytes


def lay_out(header: int, keys: int, pairs: int, digest: bytes = bytes(32)) -> Sections:
    """Where the parts lie, from the size of the header (blanks included) and the two counts."""
    hashes = up(PROLOGUE.size + header)
    minors = hashes + 8 * keys
    libraries = minors + 8 * pairs
    index = up(libraries + 2 * pairs)
    return Sections(keys=keys, pairs=pairs, header=(PROLOGUE.size, PROLOGUE.size + header), hashes=hashes,
                    minors=minors, libraries=libraries, index=index, size=up(index + 2 * keys), digest=digest)


def read_sections(name: str, begin: bytes, size: int) -> Sections:
    """Where the parts of a file of `size` bytes lie, from its first 64 bytes. Raises BadInput where they do not fit."""
    if len(begin) < PROLOGUE.size or begin[:len(MAGIC)] != MAGIC:
        raise BadInput(name, "is no table of torch's symbols, or one of another form", HINT)
    _, header, keys, pairs, zero, stated, digest = PROLOGUE.unpack(begin[:PROLOGUE.size])
    found = lay_out(header, keys, pairs, digest)
    if zero or header > MOST_HEADER or header % ALIGN or pairs > MOST_PAIRS or not stated == found.size == size:
        raise BadInput(name, f"is damaged: {size} bytes, and its parts take {found.size}", HINT)
    return found


def pack(header: Mapping[str, Any], rows: Iterable[tuple[str, int, int]]) -> bytes:
    """The whole file. `rows`: key, mask of minors, mask of libraries, in any order.

    Raises ValueError where two keys share a hash, and where there are more than the form has room for.
    """
    hashed = sorted((key_hash(key), minors, libraries) for key, minors, libraries in rows)
    if len({value for value, _, _ in hashed}) != len(hashed):
        raise ValueError("two names with one 64-bit hash")
    pairs = sorted({(minors, libraries) for _, minors, libraries in hashed})
    if len(pairs) > MOST_PAIRS or len(header["releases"]) > MOST_RELEASES or len(header["libraries"]) > MOST_LIBRARIES:
        raise ValueError("more pairs, releases or libraries than the form has room for")
    place = {pair: number for number, pair in enumerate(pairs)}
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    text += b" " * (up(len(text)) - len(text))
    parts = lay_out(len(text), len(hashed), len(pairs))
    rest = b"".join([
        text, numbers("Q", [value for value, _, _ in hashed]), numbers("Q", [minors for minors, _ in pairs]),
        numbers("H", [libraries for _, libraries in pairs]), bytes(parts.index - parts.libraries - 2 * len(pairs)),
        numbers("H", [place[minors, libraries] for _, minors, libraries in hashed]),
        bytes(parts.size - parts.index - 2 * len(hashed)),
    ])
    return PROLOGUE.pack(MAGIC, len(text), len(hashed), len(pairs), 0, parts.size, digest_of(rest)) + rest


def numbers(code: str, values: Iterable[int]) -> bytes:
    """Unsigned numbers in the file's byte order."""
    found = array(code, values)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def up(size: int) -> int:
    """The next multiple of 8."""
    return size + ALIGN - 1 & -ALIGN


__all__ = ["HINT", "MAGIC", "PROLOGUE", "Sections", "digest_of", "key_hash", "pack", "read_sections"]
