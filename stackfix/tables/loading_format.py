"""The bytes of `matrices/abi/loading.bin`: what loading asks of published wheels. See docs/almanac.md.

All numbers are little-endian. In this order, without gaps:

    prologue    48 bytes: PROLOGUE below
    header      JSON in ASCII: {"names": [size, unpacked size], "looked_for": [distances], "wheels": [[package,
                version, file, sha256, size, unpacked size], ...]} in the order of the manifest
    names       zlib of all names of symbols, sorted, a newline between them
    wheels      zlib of a JSON document each, in the order of the header
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stackfix.errors import BadInput

MAGIC = b"sfx-ldg\x01"
PROLOGUE = struct.Struct("<8sII32s")        # magic, size of the header, 0, digest of all that follows
HINT = "Install stackfix again, or make the file anew with `python -m stackfix.almanac loading --make`."
MOST = 64 << 20                 # bytes of the file, and of one part of it once it is unpacked
SHA256 = re.compile(r"[0-9a-f]{64}")
WHEEL = (str, str, str, str, int, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One wheel in the file."""

    package: str
    version: str
    file: str
    sha256: str
    start: int                      # of its document
    size: int
    unpacked: int


def pack(names: Sequence[str], looked_for: Sequence[int],
         wheels: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> bytes:
    """The whole file. `wheels`: package, version, file, sha256, and the document of each.

    `looked_for`: places of names that were looked for in every library, each as its distance from the one before.
    """
    table = "\n".join(names).encode("utf-8", "surrogateescape")
    rows, parts = list[list[object]](), [zlib.compress(table, 9)]
    for head, document in wheels:
        text = json.dumps(document, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")
        parts.append(zlib.compress(text, 9))
        rows.append([*head, len(parts[-1]), len(text)])
    header = json.dumps({"names": [len(parts[0]), len(table)], "looked_for": list(looked_for), "wheels": rows},
                        ensure_ascii=True, separators=(",", ":")).encode("ascii")
    rest = b"".join([header, *parts])
    return PROLOGUE.pack(MAGIC, len(header), 0, hashlib.sha256(rest).digest()) + rest


class Sections:
    """The parts of a file, each unpacked when it is asked for. Raises BadInput for content that is none."""

    def __init__(self, content: bytes, name: str) -> None:
        self._content, self.name = memoryview(content), name
        if content[:len(MAGIC)] != MAGIC or len(content) < PROLOGUE.size:
            raise BadInput(name, "is no table of what loading asks, or one of another form", HINT)
        _, size, zero, digest = PROLOGUE.unpack_from(content)
        rest = self._content[PROLOGUE.size:]
        if zero or hashlib.sha256(rest).digest() != digest:
            raise self.bad("its content is not what its digest says")
        try:
            header = json.loads(bytes(rest[:size]))
            self._names, self.wheels = self._laid_out(header, PROLOGUE.size + size)
            self.looked_for: tuple[int, ...] = tuple(map(int, header["looked_for"]))
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise self.bad(f"its header is none ({str(error)[:80]})") from None

    def _laid_out(self, header: Any, start: int) -> tuple[tuple[int, int, int], tuple[Part, ...]]:
        size, unpacked = header["names"]
        names, at, found = (start, size, unpacked), start + size, list[Part]()
        for row in header["wheels"]:
            if tuple(map(type, row)) != WHEEL or not SHA256.fullmatch(row[3]) or min(row[4:]) < 0:
                raise ValueError("a row of another form")
            found.append(Part(package=row[0], version=row[1], file=row[2], sha256=row[3], start=at, size=row[4],
                              unpacked=row[5]))
            at += row[4]
        if at != len(self._content):
            raise ValueError(f"parts of {at} bytes")
        return names, tuple(found)

    def names(self) -> list[str]:
        """All names."""
        return self._unpacked(*self._names).decode("utf-8", "surrogateescape").split("\n")

    def document(self, part: Part) -> Any:
        """What is told of one wheel."""
        try:
            return json.loads(self._unpacked(part.start, part.size, part.unpacked))
        except (RecursionError, ValueError):
            raise self.bad(f"what it tells of {part.file} is no document") from None

    def _unpacked(self, start: int, size: int, unpacked: int) -> bytes:
        if unpacked > MOST:
            raise self.bad(f"a part of {unpacked} bytes")
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(self._content[start:start + size], unpacked + 1)
        except zlib.error as error:
            raise self.bad(str(error)) from None
        if len(text) != unpacked or not unpacking.eof:
            raise self.bad("a part of another size than its header says")
        return text

    def bad(self, reason: str) -> BadInput:
        return BadInput(self.name, f"is damaged: {reason}", HINT)


__all__ = ["HINT", "MOST", "Part", "Sections", "pack"]
