"""The bounds-checked ground of ELF reading: header, program headers, address to offset, the dynamic section.

Checks, their order and their words are the loader's: elf/dl-load.c of glibc 2.36 (open_verify). Source of the format:
the System V gABI and the GNU extensions as binutils' elf/common.h numbers them. Section headers may be stripped or
false, so nothing here asks them.
"""

from __future__ import annotations

import mmap
import struct
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from stackfix.inspect.records import BadElf

MACHINES = {3: "i386", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
KINDS = {2: "executable", 3: "shared"}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
LONGEST_STRING = 1 << 16        # a longer symbol name would be a C++ name of 64 KiB
MOST_DYNAMIC = 1 << 16          # entries of PT_DYNAMIC; real ones have fewer than 100
PAGE = 4096                     # the smallest there is: what is aligned for larger ones is aligned for it too
HEADER = {32: 52, 64: 64}       # bytes of the ELF header, by class
READ_AT_ONCE = 832              # the loader reads so much; a sum that is too large for its numbers seems to lie there
OSABI_GNU = 3                   # what uses STT_GNU_IFUNC or STB_GNU_UNIQUE says so
ABI_VERSIONS = 4                # EI_ABIVERSION under OSABI_GNU: those that glibc 2.36 knows
BUS_ERROR, SEGMENTATION_FAULT = "Bus error", "Segmentation fault"
INCONSISTENT = "Inconsistency detected by ld.so"


form_of = lru_cache(maxsize=256)(struct.Struct)
Buffer: TypeAlias = mmap.mmap | bytes   # a mapped file; bytes in tests


class Segment(NamedTuple):
    """One program header."""

    kind: int
    start: int                  # in the file
    address: int
    size: int                   # in the file
    memory: int                 # size in memory
    align: int
    flags: int


new_segment = partial(tuple.__new__, Segment)       # half the time of a call of the class


class Layout:
    """Header facts of one ELF file and checked access to its bytes. Raises BadElf for all that is not there."""

    def __init__(self, data: Buffer, path: str) -> None:
        self.data, self.path, self.size = data, path, len(data)
        # what an error says that the loader has seen by then
        self._bits: int | None = None
        self._byte_order: str | None = None
        self._machine: str | None = None
        ident = data[0:16]
        is_elf = ident[:4] == b"\x7fELF"
        if self.size < (HEADER.get(32 * ident[4], 64) if is_elf and self.size > 4 else 64):
            raise self.refuse("file too short")
        if not is_elf:
            raise self.refuse("invalid ELF header")
        self.bits = self._bits = {1: 32, 2: 64}.get(ident[4], 0)
        self.byte_order = self._byte_order = {1: "little", 2: "big"}.get(ident[5], "unknown")
        self._check_ident(ident)
        self.order = "<" if ident[5] == 1 else ">"
        self.word, self.word_code = (8, "Q") if self.bits == 64 else (4, "I")
        head = self.unpack("HHIQQQIHHHHHH" if self.bits == 64 else "HHIIIIIHHHHHH", 16)
        if head[2] != 1:
            raise self.refuse("ELF file version does not match current one")
        self.kind = KINDS.get(head[0], "other")
        self.machine = self._machine = MACHINES.get(head[1], f"EM_{head[1]}")
        self.segments: tuple[Segment, ...] = ()
        if self.kind != "other":        # the loader looks no further
            self.segments = tuple(self._segments(offset=head[4], entry_size=head[8], count=head[9]))
        self.loads = tuple([segment for segment in self.segments if segment[0] == PT_LOAD])
        self._reversed = self.loads[::-1]
        self._near = 0, 0, 0            # what `read` has found: an answer of `_around`

    def _check_ident(self, ident: bytes) -> None:
        if not self.bits:
            raise self.refuse(f"unknown ELF class {ident[4]}")
        if self.byte_order == "unknown":
            raise self.refuse(f"unknown ELF data encoding {ident[5]}")
        if ident[6] != 1:
            raise self.refuse("ELF file version ident does not match current one")
        if ident[7] not in {0, OSABI_GNU}:
            raise self.refuse("ELF file OS ABI invalid")
        if ident[8] and (ident[7] != OSABI_GNU or ident[8] >= ABI_VERSIONS):
            raise self.refuse("ELF file ABI version invalid")
        if ident[9:] != bytes(7):
            raise self.refuse("nonzero padding in e_ident")

    def refuse(self, words: str) -> BadElf:
        """The error to raise where the loader refuses this file with these words."""
        return BadElf(self.path, words, bits=self._bits, byte_order=self._byte_order, machine=self._machine)

    def bad(self, reason: str, crash: str = SEGMENTATION_FAULT) -> BadElf:
        """The error to raise where this file makes the loader crash; `reason` is in our words."""
        return BadElf(self.path, reason, crash=crash, bits=self._bits, byte_order=self._byte_order,
                      machine=self._machine)

    def unpack(self, codes: str, offset: int) -> tuple[int, ...]:
        """Numbers at `offset`, in the file's byte order."""
        form = form_of(self.order + codes)
        return form.unpack(self.take(offset, form.size))

    def take(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`; all of them or BadElf."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.bad(f"truncated: {size} bytes at {offset:#x} of {self.size}", BUS_ERROR)
        return self.data[offset:offset + size]

    def _segments(self, offset: int, entry_size: int, count: int) -> list[Segment]:
        """Each program header."""
        if entry_size != (56 if self.bits == 64 else 32):
            raise self.refuse("ELF file's phentsize not the expected size")
        end = offset + entry_size * count
        if (count or offset >> 63) and end > self.size and not 1 << 64 <= end <= (1 << 64) + READ_AT_ONCE:
            # pread(2) takes no offset that is negative as a signed number
            raise self.refuse("cannot read file data" + (": Invalid argument" if offset >> 63 else ""))
        table = self.data[offset:offset + entry_size * count]
        if self.bits == 64:
            return [new_segment((kind, start, address, size, memory, align, flags))
                    for kind, flags, start, address, _, size, memory, align
                    in form_of(f"{self.order}IIQQQQQQ").iter_unpack(table)]
        return [new_segment((kind, start, address, size, memory, align, flags))
                for kind, start, address, _, size, memory, flags, align
                in form_of(f"{self.order}8I").iter_unpack(table)]

    def load_of(self, address: int) -> Segment:
        """The segment that is mapped at an address: in whole pages, later ones over earlier ones."""
        for load in self._reversed:
            if load.address & -PAGE <= address < load.address + max(load.size, load.memory) + PAGE - 1 & -PAGE:
                return load
        raise self.bad(f"address {address:#x} lies in no segment of the file")

    def offset_of(self, address: int) -> int:
        """File offset of a mapped address."""
        load = self.load_of(address)
        if load.memory > load.size and address >= load.address + load.size:
            raise self.bad(f"address {address:#x} lies behind what segments have in the file")
        return load.start + address - load.address

    def mapped(self, address: int, size: int) -> bytes:
        """`size` bytes of memory at an address: as in the file, then zeros to the end of the pages. May be fewer."""
        load = self.load_of(address)
        start, zeros_from, pages = self.extent(load, address)
        if start + size <= zeros_from:
            return self.data[start:start + size]
        content = self.data[start:zeros_from] if start < zeros_from else b""
        return content + bytes(max(0, min(size, pages - start) - len(content)))

    def extent(self, load: Segment, address: int) -> tuple[int, int, int]:
        """Where memory at an address begins, where it gets zero, and where it ends, as offsets in the file."""
        start, end = load.start + address - load.address, load.start + load.size
        pages = end + PAGE - 1 & -PAGE
        if load.memory > load.size:
            return start, min(end, self.size), load.start + load.memory + PAGE - 1 & -PAGE
        if start >= self.size + PAGE - 1 & -PAGE:
            raise self.bad(f"cut short: {self.size} bytes of at least {start}", BUS_ERROR)
        return start, min(pages, self.size), min(pages, self.size + PAGE - 1 & -PAGE)

    def read(self, codes: str, address: int) -> tuple[int, ...]:
        """Numbers in memory at an address, in the file's byte order."""
        form = form_of(self.order + codes)
        low, high, shift = self._near
        if low <= address <= high - form.size:
            return form.unpack_from(self.data, address + shift)
        self._near = self._around(address)
        content = self.mapped(address, form.size)
        if len(content) < form.size:
            raise self.bad(f"{form.size} bytes at address {address:#x} are not all mapped")
        return form.unpack(content)

    def _around(self, address: int) -> tuple[int, int, int]:
        """(first address, last, file offset less address) of what is in the file as it is in memory from there on."""
        load = self.load_of(address)
        over = [each.address & -PAGE for each in self.loads if each.address & -PAGE > address]
        return address, min(load.address + load.size, self.size + load.address - load.start, *over), (
            load.start - load.address)

    def text(self, address: int) -> bytes:
        """The zero-terminated bytes in memory at an address."""
        start, zeros_from, pages = self.extent(self.load_of(address), address)
        stop = self.data.find(b"\0", start, min(zeros_from, start + LONGEST_STRING))
        if stop >= 0:
            return self.data[start:stop]
        if zeros_from == pages or zeros_from - start > LONGEST_STRING:
            raise self.bad(f"the string at address {address:#x} has no end")
        return self.data[start:max(start, zeros_from)]

    def string(self, offset: int, end: int) -> bytes:
        """The zero-terminated bytes at `offset`, which must lie before `end`."""
        if not 0 <= offset < end:
            raise self.bad(f"a string at {offset:#x} lies outside its table")
        stop = self.data.find(b"\0", offset, min(end, self.size, offset + LONGEST_STRING))
        if stop < 0:
            raise self.bad(f"the string at {offset:#x} has no end")
        return self.data[offset:stop]

    def dynamic_segment(self) -> Segment | None:
        """The PT_DYNAMIC that the loader goes by: the last; None where one is empty, as in a file of debug symbols."""
        found = [segment for segment in self.segments if segment[0] == PT_DYNAMIC]
        if len(found) > 1 and not all(each.size for each in found):
            return None
        return found[-1] if found and found[-1].size and found[-1].address else None

    def dynamic(self) -> list[tuple[int, int]] | None:
        """(tag, value) of the dynamic section in file order up to DT_NULL, or None where there is none.

        The loader finds it by its address, whatever PT_DYNAMIC says of its place and size in the file.
        """
        segment = self.dynamic_segment()
        if segment is None:
            return None
        entry = 2 * self.word
        form = form_of(f"{self.order}2{self.word_code}")
        found: list[tuple[int, int]] = []
        for size in (min(segment.size, MOST_DYNAMIC * entry), MOST_DYNAMIC * entry):
            table = self.mapped(segment.address, size)
            found.clear()
            for each in form.iter_unpack(table[:len(table) // entry * entry]):
                if not each[0]:
                    return found
                found.append(each)
        return found
