"""METADATA out of the last bytes of a wheel, where they hold all that it takes and nothing is unusual.

The directory of a large wheel has thousands of entries, of which zipfile makes thousands of objects: it took a third of
the time of a lock without metadata files. Here the few entries that end in METADATA are looked for. What is unusual is
left to zipfile (archives.py): comments, Zip64, encryption, more than one METADATA, and all that does not agree.
"""

from __future__ import annotations

import zlib
from struct import Struct

from stackfix.sources.page import normalise

_END, _ENTRY, _LOCAL = Struct("<4s4H2LH"), Struct("<4s6H3L5H2L"), Struct("<4s5H3L2H")
_SUFFIX = b".dist-info/METADATA"
_LONGEST_NAME = 1024
_STORED, _DEFLATED = 0, 8
_FLAGS = 0x080E                     # names in UTF-8, sizes behind the content, how hard it was packed: all read alike
_NO_SIZE = 0xFFFFFFFF
_BESIDE = 32 * 1024                 # of METADATA and what may stand behind it beside RECORD
_NEAR = 512 * 1024                  # before the end: what is farther away is had alone


def metadata_at_end(tail: bytes, total: int, project: str, *, most: int) -> bytes | None:
    """METADATA of the wheel of `total` bytes that ends in `tail`; None where zipfile has to tell."""
    place = _directory(tail, total)
    if place is None or place[0] < total - len(tail):
        return None
    at = len(tail) - _END.size
    found = _entries(tail, at - place[1], at)
    ours = None if found is None else [entry for entry in found if _is_of(entry[0], project)]
    return _content(tail, total, *ours[0], most) if ours is not None and len(ours) == 1 else None


def first_needed(tail: bytes, total: int, project: str) -> int | None:
    """Where the wheel's part begins that metadata_at_end is likely to be content with; None where it cannot be.

    Where the directory is not all here, that is a guess: METADATA mostly stands before it, with RECORD in between, and
    that has a line for each entry of the directory.
    """
    place = _directory(tail, total)
    if place is None:
        return None
    start, size = place
    if start < total - len(tail):
        return max(0, start - size * 7 // 8 - _BESIDE)
    at = len(tail) - _END.size
    ours = [entry for entry in _entries(tail, at - size, at) or () if _is_of(entry[0], project)]
    if len(ours) != 1:
        return None
    header = ours[0][1][16]
    return header if total - len(tail) - header < _NEAR else None


def _directory(tail: bytes, total: int) -> tuple[int, int] | None:
    """Where the directory of the wheel of `total` bytes begins, and its size; None where zipfile has to tell."""
    at = len(tail) - _END.size
    if at < 0:
        return None
    mark, disk, first_disk, here, entries, size, offset, comment = _END.unpack_from(tail, at)
    if mark != b"PK\5\6" or disk or first_disk or here != entries or comment:
        return None
    if offset + size != total - _END.size:      # Zip64, or something before the archive
        return None
    return offset, size


def _entries(tail: bytes, begin: int, end: int) -> list[tuple[bytes, tuple[int, ...]]] | None:
    """Names and fields of the directory's entries that end in METADATA; None where one is not as it should be."""
    found = []
    place = tail.find(_SUFFIX, begin, end)
    while place >= 0:
        stop = place + len(_SUFFIX)
        start = tail.rfind(b"PK\1\2", max(begin, place - _LONGEST_NAME), place)
        if start < 0 or start + _ENTRY.size > place:
            return None
        fields = _ENTRY.unpack_from(tail, start)
        if start + _ENTRY.size + fields[10] < stop:
            return None                         # it stands in something else: a comment, say
        if start + _ENTRY.size + fields[10] == stop:
            name = tail[start + _ENTRY.size:stop]
            if not name.isascii():
                return None
            found.append((name, fields))
        place = tail.find(_SUFFIX, stop, end)
    return found


def _is_of(name: bytes, project: str) -> bool:
    folder, _, rest = name.decode("ascii").partition("/")
    return rest == "METADATA" and normalise(folder.partition("-")[0]) == project


def _content(tail: bytes, total: int, name: bytes, fields: tuple[int, ...], most: int) -> bytes | None:
    """What is stored under one entry, checked against its sum."""
    flags, method, crc, packed, size, at = fields[3], fields[4], fields[7], fields[8], fields[9], fields[16]
    if flags & ~_FLAGS or method not in (_STORED, _DEFLATED) or _NO_SIZE in (packed, size, at):
        return None
    start = at - (total - len(tail))
    if start < 0 or start + _LOCAL.size > len(tail) or packed > most or size > most:
        return None
    local = _LOCAL.unpack_from(tail, start)
    begin = start + _LOCAL.size + local[9]
    if local[0] != b"PK\3\4" or tail[start + _LOCAL.size:begin] != name:
        return None
    content = tail[begin + local[10]:begin + local[10] + packed]
    if method == _DEFLATED:
        unpack = zlib.decompressobj(-15)
        try:
            content = unpack.decompress(content, size + 1)
        except zlib.error:
            return None
    return content if len(content) == size and zlib.crc32(content) == crc else None
