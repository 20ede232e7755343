"""Whether the loader can map an ELF file, as its program headers and dynamic section want it.

Source: elf/dl-load.c (_dl_map_object_from_fd), dl-map-segments.h and get-dynamic-info.h of glibc 2.36: the order of
checks, and the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from stackfix.inspect.elf_layout import BUS_ERROR, INCONSISTENT, PAGE, PT_LOAD, Layout, Segment

MOST_ADDRESSES = 1 << 47        # of a process on x86_64, and the least of the 64-bit machines
WRAP = 1 << 64
MOST_FILE = 1 << 63             # of an offset in a file
PF_W = 2
PT_GNU_RELRO = 0x6474E552
DT_STRTAB = 5
DT_RELA, DT_RELAENT, DT_PLTREL, DT_RELR, DT_RELRENT = 7, 9, 20, 36, 37
RELA_MACHINES = frozenset({"x86_64", "aarch64"})        # these take no DT_REL
ASSERTED = ((DT_PLTREL, DT_PLTREL, DT_RELA, "DT_PLTREL"), (DT_RELA, DT_RELAENT, 24, "DT_RELAENT"),
            (DT_RELR, DT_RELRENT, 8, "DT_RELRENT"))      # where the first is, the second has this value
FAR = 1 << 40                   # behind where libraries are mapped there are fewer addresses left, at random
NO_ALIGN = "ELF load command address/offset not page-aligned"
NO_MAP = "failed to map segment from shared object"


def check_segments(layout: Layout) -> None:
    """Raise BadElf for segments that the loader refuses, or dies of. Nearly all files are in order."""
    if layout.kind == "other" or in_order(layout):
        return
    if any((load.address - load.start) % PAGE for load in layout.loads):
        raise layout.refuse(NO_ALIGN)
    if not layout.loads:
        raise layout.refuse("object file has no loadable segments")
    if layout.kind == "shared" and layout.dynamic_segment():
        check_mapping(layout)


def in_order(layout: Layout) -> bool:
    """Whether segments follow one another in the file and in memory, as every linker lays them."""
    before = low = -1
    for kind, start, address, size, memory, align, _ in layout.segments:
        if kind == PT_LOAD:
            if (address - start) % PAGE or size > memory or start + size > layout.size or align > FAR \
                    or address & -PAGE < before:
                return False
            low, before = (low if low >= 0 else address), address + memory
        elif kind == PT_GNU_RELRO and not low <= address <= address + memory <= before:
            return False
    return 0 <= low <= before < FAR


def check_mapping(layout: Layout) -> None:
    """Raise BadElf where the segments of a shared object cannot be mapped, or end behind the file's end."""
    if layout.bits == 64:
        check_room(layout)
    for load in layout.loads:
        last = up(load.start + load.size) - PAGE
        # of the others only what is asked for is touched; a writable one is: relocations, and zeros behind its end
        if load.size and load.flags & PF_W and last >= layout.size:
            raise layout.bad(f"cut short: {layout.size} bytes of at least {load.start + load.size}", BUS_ERROR)


def check_room(layout: Layout) -> None:
    """Raise BadElf for addresses and sizes that a process has no room for."""
    first, last = layout.loads[0], layout.loads[-1]
    base = down(first.address)
    length = (last.address + last.memory - base) % WRAP
    align = max((each.align for each in layout.loads if each.align & each.align - 1 == 0), default=0)
    wanted = length if align <= PAGE else max(length + align, 2 * align)
    if not length or wanted > MOST_ADDRESSES:
        raise layout.refuse(NO_MAP)
    if has_holes(layout.loads) and down(last.address) < end_of(first):
        raise layout.refuse(NO_ALIGN)       # since glibc 2.35; BZ 28838
    for load in layout.loads:
        end, memory = load.address + load.size, (load.address + load.memory) % WRAP
        if load.start + length >= MOST_FILE or (load is not first and (
                not base - FAR < load.address < base + FAR or end > base + FAR)):
            raise layout.refuse(NO_MAP)
        if memory > max(end, base + FAR):
            raise layout.refuse("cannot map zero-fill pages")
        if load.address < base or max(end, memory) > up(base + length):
            raise layout.bad("a segment lies over what is mapped beside the file")
    check_relro(layout, base, up(base + length))


def check_relro(layout: Layout, begin: int, end: int) -> None:
    """Raise BadElf where PT_GNU_RELRO lies outside of what is mapped. Nobody tells its error from those before it."""
    for relro in [each for each in layout.segments if each.kind == PT_GNU_RELRO][-1:]:
        first, last = down(relro.address), down((relro.address + relro.memory) % WRAP)
        if relro.memory and first != last and not begin <= first < last <= end:
            raise layout.refuse("cannot apply additional memory protection after relocation: Cannot allocate memory")


def check_dynamic(layout: Layout, last: Mapping[int, int]) -> None:
    """Raise BadElf where the process dies of the dynamic section (`last`: by tag), by an assertion or later."""
    if DT_STRTAB not in last and layout.dynamic_segment():      # what lies behind the file's end reads as zeros
        short = any(load.start + load.size > layout.size for load in layout.loads)
        raise layout.bad("cut short: the dynamic section is behind its end" if short else "no table of strings")
    if layout.machine not in RELA_MACHINES or layout.bits != 64:
        return
    for tag, entry, size, name in ASSERTED:
        if tag in last and last.get(entry) != size:
            raise layout.bad(f"{name} is not what this machine has", INCONSISTENT)


def has_holes(loads: tuple[Segment, ...]) -> bool:
    """Whether a segment does not begin where the one before it ends."""
    return any(end_of(one) != down(other.address) for one, other in pairwise(loads))


def end_of(load: Segment) -> int:
    """The address at which the pages of a segment's file end."""
    return up(load.address + load.size) % WRAP


def down(address: int) -> int:
    """The page's begin."""
    return address & -PAGE


def up(address: int) -> int:
    """The next page's begin, or the address where it is one."""
    return address + PAGE - 1 & -PAGE


__all__ = ["check_dynamic", "check_segments"]
