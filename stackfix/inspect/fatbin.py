"""Which GPU architectures a shared object carries code for, read from the headers of its fatbins.

NVIDIA documents no format. What is read here was found in files of CUDA 11 to 13 and agrees, entry by entry, with what
`cuobjdump -lelf -lptx` lists:

- The sections `.nv_fatbin` and `__nv_relfatbin` (relocatable code, which a driver can still link) are rows of fatbins.
- A fatbin: u32 magic, u16 version, u16 size of this header, u64 size of the entries after it.
- An entry: u16 kind, u16, u32 header size, u64 payload size, then at 0x1C u32 architecture, at 0x28 u64 flags, at 0x38
  u64 size of the payload when unpacked (0 where it is not compressed). The header may be longer (options, ABI notes).

Payloads are neither read nor unpacked: of a library of 1.4 GB only the pages that hold a header are touched.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator

from stackfix.inspect.elf import map_file
from stackfix.inspect.elf_layout import Layout
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs, UnreadableFatbin
from stackfix.inspect.places import Root, reason_of
from stackfix.inspect.records import BadElf

SECTIONS = (b".nv_fatbin\0", b"__nv_relfatbin\0")
SHT_NOBITS = 8
MAGIC, VERSION = 0xBA55ED50, 1
FATBIN, ENTRY = struct.Struct("<IHHQ"), struct.Struct("<HHIQ12xI8xQ8xQ")
ARCH_SPECIFIC, FAMILY = 1 << 20, 1 << 21    # flags: the "a" of sm_90a, the "f" of sm_100f
LONGEST_GAP = 4096              # zeros that a linker may leave between fatbins; real files have none
MOST_HEADERS = 1 << 17          # of fatbins and entries in one file; libcublasLt 12.8 has 7,000
PTX, CUBIN = 1, 2               # kinds of entry
NAMES = {PTX: "compute_", CUBIN: "sm_", 8: "lto_"}
# Bytes below which there is no kernel. Of 3,000 small entries in wheels of torch 2.3.1 and 2.8 and of NVIDIA, unpacked
# and looked into, the smallest with code had 1,800 bytes as a cubin and 117 as PTX.
LEAST = {PTX: 80, CUBIN: 1536}
NUMBER = re.compile(r"\d+")


def read_gpu_archs(path: str, root: Root | None = None) -> GpuArchs | UnreadableFatbin | None:
    """The GPU code of the file at `path`; None where it has no fatbin.

    None does not mean that no GPU is used: code may be compiled at run time, as triton does it.
    """
    try:
        descriptor = (root or Root()).open(path)
    except OSError as error:
        return UnreadableFatbin(path=path, reason=reason_of(error))
    try:
        with map_file(descriptor, path) as mapped:
            mapped.madvise(mmap.MADV_RANDOM)    # headers are megabytes apart: reading ahead would read it all
            return parse_gpu_archs(mapped, path)
    except BadElf as error:
        return UnreadableFatbin(path=path, reason=error.reason)
    finally:
        os.close(descriptor)


def parse_gpu_archs(content: mmap.mmap | bytes, name: str) -> GpuArchs | None:
    """The GPU code of an ELF file; None where it has no fatbin. Raises BadElf."""
    layout = Layout(content, name)
    sections = list(fatbin_sections(layout))
    if not sections:
        return None
    found, headers = Counter[frozenset[str]](), 0
    for offset, size in sections:
        for archs, count in read_fatbins(layout, offset, offset + size):
            found[archs] += 1
            headers += count
            if headers > MOST_HEADERS:
                raise layout.bad(f"more than {MOST_HEADERS} headers of fatbins and their entries")
    return as_record(found, name)


def as_record(found: Counter[frozenset[str]], name: str) -> GpuArchs:
    """The record of fatbins that were counted by what they carry."""
    empty = found.pop(frozenset(), 0)
    every = sorted(frozenset[str]().union(*found), key=by_number)
    sets = [CodeSet(archs=tuple(sorted(archs, key=by_number)), fatbins=count) for archs, count in found.items()]
    return GpuArchs(
        path=name, empty=empty, sets=tuple(sorted(sets, key=lambda each: (-each.fatbins, each.archs))),
        cubins=tuple(arch for arch in every if arch.startswith("sm_")),
        ptx=tuple(arch for arch in every if arch.startswith("compute_")),
        others=tuple(arch for arch in every if not arch.startswith(("sm_", "compute_"))),
    )


def by_number(arch: str) -> tuple[bool, int, str]:
    """Sorts machine code before the rest, and 90 before 100."""
    numbers = NUMBER.findall(arch)
    return not arch.startswith("sm_"), int(numbers[-1]) if numbers else 0, arch


def fatbin_sections(layout: Layout) -> Iterator[tuple[int, int]]:
    """(file offset, size) of each section with fatbins. Only section headers name them. Raises BadElf."""
    wide = layout.bits == 64
    start = layout.unpack("Q", 0x28)[0] if wide else layout.unpack("I", 0x20)[0]
    entry_size, count, names = layout.unpack("HHH", 0x3A if wide else 0x2E)
    form = struct.Struct(layout.order + ("IIQQQQIIQQ" if wide else "10I"))
    if start == 0:
        raise layout.bad("has no section headers, which alone tell where GPU code lies")
    if entry_size != form.size:
        raise layout.bad(f"section headers of {entry_size} bytes")
    first = form.unpack(layout.take(start, form.size))
    count, names = count or first[5], first[6] if names == 0xFFFF else names    # gABI: large numbers stand in entry 0
    table = layout.take(start, count * form.size)
    if names >= count:
        raise layout.bad("the names of sections lie in no section")
    strings = form.unpack_from(table, names * form.size)[4]
    for name, kind, _, _, offset, size, *_ in form.iter_unpack(table):
        place = strings + name
        if kind != SHT_NOBITS and any(layout.data[place:place + len(each)] == each for each in SECTIONS):
            if offset + size > layout.size:
                raise layout.bad(f"truncated: a section of fatbins ends at {offset + size:#x} of {layout.size:#x}")
            yield offset, size


def read_fatbins(layout: Layout, offset: int, end: int) -> Iterator[tuple[frozenset[str], int]]:
    """(what it carries, headers) of each fatbin between two offsets; one without kernels has none. Raises BadElf."""
    while offset < end:
        head = layout.take(offset, min(FATBIN.size, end - offset))
        if not any(head[:4]):
            offset = skip_gap(layout, offset, end)
            continue
        magic, version, header, size = FATBIN.unpack(head.ljust(FATBIN.size, b"\0"))
        if magic != MAGIC or version != VERSION or header < FATBIN.size:
            raise layout.bad(f"no fatbin that is known at {offset:#x}: {magic:#x}, version {version}")
        start, offset = offset + header, offset + header + size
        if offset > end:
            raise layout.bad(f"truncated: the fatbin at {start - header:#x} ends outside of its section")
        yield with_kernels(list(read_entries(layout, start, offset)))


def skip_gap(layout: Layout, offset: int, end: int) -> int:
    """Where the zeros end that a linker filled in for alignment. Raises BadElf for more of them."""
    gap = layout.data[offset:min(end, offset + LONGEST_GAP)]
    offset += len(gap) - len(gap.lstrip(b"\0"))
    if offset < end and not any(gap):
        raise layout.bad(f"no fatbin at {offset:#x}")
    return offset


def read_entries(layout: Layout, offset: int, end: int) -> Iterator[tuple[int, str, bool]]:
    """(kind, architecture, whether it can hold a kernel) of each entry between two offsets. Raises BadElf."""
    for _ in range(MOST_HEADERS):
        if offset == end:
            return
        if offset + ENTRY.size > end:
            raise layout.bad(f"truncated: an entry of a fatbin at {offset:#x}")
        kind, _, header, size, arch, flags, unpacked = ENTRY.unpack_from(layout.data, offset)
        following = offset + header + size
        if header < ENTRY.size or following > end:
            raise layout.bad(f"the entry at {offset:#x} does not fit into its fatbin")
        if kind in NAMES and not 10 <= arch < 1000:
            raise layout.bad(f"the entry at {offset:#x} is for architecture {arch}")
        suffix = "a" if flags & ARCH_SPECIFIC else "f" if flags & FAMILY else ""
        yield kind, f"{NAMES.get(kind, f'kind{kind}_')}{arch}{suffix}", (unpacked or size) >= LEAST.get(kind, 0)
        offset = following
    raise layout.bad(f"more than {MOST_HEADERS} entries in one fatbin")


def with_kernels(entries: list[tuple[int, str, bool]]) -> tuple[frozenset[str], int]:
    """(architectures of the entries that hold kernels, headers read).

    PTX is of the same source as the cubins beside it: where none of these has a kernel, the PTX has only variables.
    """
    cubins = [full for kind, _, full in entries if kind == CUBIN]
    hollow = bool(cubins) and not any(cubins)
    kept = frozenset(arch for kind, arch, full in entries if full and not (hollow and kind == PTX))
    return kept, 1 + len(entries)


__all__ = ["parse_gpu_archs", "read_gpu_archs"]
