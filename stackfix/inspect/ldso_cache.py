"""/etc/ld.so.cache: which path wins for a soname. Source: glibc's sysdeps/generic/dl-cache.h and elf/dl-cache.c."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from stackfix.errors import BadInput

OLD_MAGIC, NEW_MAGIC = b"ld.so-1.7.0\0", b"glibc-ld.so.cache1.1"
EXTENSIONS_MAGIC = 0xEAA42174
HWCAPS_TAG = 1                      # cache_extension_tag_glibc_hwcaps
HWCAPS_BIT = 1 << 62                # DL_CACHE_HWCAP_EXTENSION: the low word is an index into that table
FLAGS = {                           # _DL_CACHE_DEFAULT_ID: FLAG_ELF_LIBC6 and the ABI of the machine
    ("x86_64", 64): 0x0303, ("aarch64", 64): 0x0A03, ("i386", 32): 0x0003, ("arm", 32): 0x0903,
    ("ppc64", 64): 0x0503, ("s390x", 64): 0x0403, ("riscv", 64): 0x1003,
}
LARGEST = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One line of `ldconfig -p`."""

    soname: str
    path: str
    flags: int                      # the kind of library and its ABI
    hwcaps: str | None              # glibc-hwcaps subfolder that it was found in: "x86-64-v3"
    legacy_hwcap: int               # mask of the old scheme; 0 for a plain library


def parse_cache(data: bytes, name: str = "ld.so.cache") -> tuple[CacheEntry, ...]:
    """Entries in file order: the new format, alone or behind the old one. Raises BadInput.

    A cache of the old format alone gives nothing: no glibc since 2.32 writes it.
    """
    if len(data) > LARGEST:
        raise BadInput(name, f"{len(data)} bytes are no cache of the loader's")
    if data.startswith(OLD_MAGIC):
        if len(data) < 16:
            raise BadInput(name, "truncated")
        count = int.from_bytes(data[12:16], "little")
        start = 16 + 12 * count
        start += -start % 8         # ALIGN_CACHE
        if not data.startswith(NEW_MAGIC, start):
            return ()
        data = data[start:]
    if not data.startswith(NEW_MAGIC) or len(data) < 48:
        raise BadInput(name, "not a cache of the loader's")
    return _parse_new(data, name)


def _parse_new(data: bytes, name: str) -> tuple[CacheEntry, ...]:
    order = ">" if data[28] & 3 == 3 else "<"       # cache_file_new_flags_endian_big
    count, _, _, extensions = struct.unpack_from(f"{order}IIB3xI", data, 20)
    form = struct.Struct(f"{order}iIIIQ")
    if 48 + count * form.size > len(data):
        raise BadInput(name, f"{count} entries are said to be there, and the file has no room for them")
    hwcaps = _hwcap_names(data, extensions, order, name)
    found = []
    for place in range(count):
        flags, key, value, _, hwcap = form.unpack_from(data, 48 + place * form.size)
        sub = None
        if hwcap & HWCAPS_BIT:
            index = hwcap & 0xFFFFFFFF
            if index >= len(hwcaps):
                continue            # dl-cache.c passes over an index that is not in the table
            sub, hwcap = hwcaps[index], 0
        found.append(CacheEntry(soname=_text(data, key, name), path=_text(data, value, name), flags=flags,
                                hwcaps=sub, legacy_hwcap=hwcap))
    return tuple(found)


def _hwcap_names(data: bytes, offset: int, order: str, name: str) -> tuple[str, ...]:
    if not offset or offset + 8 > len(data):
        return ()
    magic, count = struct.unpack_from(f"{order}II", data, offset)
    if magic != EXTENSIONS_MAGIC or offset + 8 + 16 * count > len(data):
        return ()
    for place in range(count):
        tag, _, start, size = struct.unpack_from(f"{order}IIII", data, offset + 8 + 16 * place)
        if tag == HWCAPS_TAG and start + size <= len(data):
            indexes = struct.iter_unpack(f"{order}I", data[start:start + size // 4 * 4])
            return tuple(_text(data, index, name) for index, in indexes)
    return ()


def _text(data: bytes, offset: int, name: str) -> str:
    end = data.find(b"\0", offset, offset + 8192)
    if end < 0:
        raise BadInput(name, f"a string at {offset:#x} has no end")
    return data[offset:end].decode("utf-8", "surrogateescape")


def choose(entries: Sequence[CacheEntry], *, machine: str, bits: int, hwcaps: Sequence[str]) -> dict[str, str]:
    """Soname to the path that a loader of `machine` takes. `hwcaps`: the subfolders that it honours, best first.

    Source: search_cache in dl-cache.c: the best honoured hwcaps subfolder wins, else the first plain entry. Entries
    of the legacy hwcap scheme are left out: which CPU honours them is not in the cache.
    """
    wanted = FLAGS.get((machine, bits))
    ranks = {name: place for place, name in enumerate(hwcaps)}
    plain = len(ranks)
    best: dict[str, tuple[int, str]] = {}
    for entry in entries:
        if entry.flags != wanted or entry.legacy_hwcap:
            continue
        rank = plain if entry.hwcaps is None else ranks.get(entry.hwcaps)
        if rank is not None and (entry.soname not in best or rank < best[entry.soname][0]):
            best[entry.soname] = (rank, entry.path)
    return {soname: path for soname, (_, path) in best.items()}
