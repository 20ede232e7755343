"""The bounds-checked ground of ELF reading: header, program headers, address to offset, the dynamic section.

Source: the System V gABI and the GNU extensions as binutils' elf/common.h numbers them. Section headers may be
stripped or false, so nothing here asks them.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import TypeAlias

from stackfix.inspect.records import BadElf

MACHINES = {3: "i386", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
KINDS = {2: "executable", 3: "shared"}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
SHORTEST = 64                   # the header of a 64-bit file; the loader looks at nothing in a shorter one
LONGEST_STRING = 1 << 16        # a longer symbol name would be a C++ name of 64 KiB
MOST_DYNAMIC = 1 << 16          # entries of PT_DYNAMIC; real ones have fewer than 100


Buffer: TypeAlias = mmap.mmap | bytes   # a mapped file; bytes in tests


class Layout:
    """Header facts of one ELF file and checked access to its bytes. Raises BadElf for all that is not there."""

    def __init__(self, data: Buffer, path: str) -> None:
        self.data, self.path, self.size = data, path, len(data)
        ident = data[0:16]
        if len(ident) < 16 or ident[:4] != b"\x7fELF":
            raise self.bad("file too short" if self.size < SHORTEST else "invalid ELF header")
        if ident[4] not in {1, 2} or ident[5] not in {1, 2} or ident[6] != 1:
            raise self.bad("invalid ELF header")
        self.bits, self.byte_order = 32 * ident[4], "little" if ident[5] == 1 else "big"
        self.order = "<" if ident[5] == 1 else ">"
        self.word, self.word_code = (8, "Q") if self.bits == 64 else (4, "I")
        head = self.unpack("HHIQQQIHHHHHH" if self.bits == 64 else "HHIIIIIHHHHHH", 16)
        self.kind, self.machine = KINDS.get(head[0], "other"), MACHINES.get(head[1], f"EM_{head[1]}")
        self.segments = tuple(self._segments(offset=head[4], entry_size=head[8], count=head[9]))
        self.loads = tuple(segment for segment in self.segments if segment[0] == PT_LOAD)

    def bad(self, reason: str) -> BadElf:
        """The error to raise about this file."""
        return BadElf(self.path, reason)

    def unpack(self, codes: str, offset: int) -> tuple[int, ...]:
        """Numbers at `offset`, in the file's byte order."""
        form = struct.Struct(self.order + codes)
        chunk = self.take(offset, form.size)
        return form.unpack(chunk)

    def take(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`; all of them or BadElf."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.bad(f"truncated: {size} bytes at {offset:#x} of {self.size}")
        return self.data[offset:offset + size]

    def _segments(self, offset: int, entry_size: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """(type, file offset, address, bytes in the file) of each program header."""
        if entry_size != (56 if self.bits == 64 else 32):
            if count:
                raise self.bad("ELF file's phentsize not the expected size")
            return
        table = self.take(offset, entry_size * count)
        if self.bits == 64:
            for kind, _, start, address, _, size, _, _ in struct.iter_unpack(f"{self.order}IIQQQQQQ", table):
                yield kind, start, address, size
        else:
            for kind, start, address, _, size, *_ in struct.iter_unpack(f"{self.order}8I", table):
                yield kind, start, address, size

    def offset_of(self, address: int) -> int:
        """File offset of a mapped address."""
        for _, start, base, size in self.loads:
            if base <= address < base + size:
                return start + address - base
        raise self.bad(f"address {address:#x} lies in no segment of the file")

    def string(self, offset: int, end: int) -> bytes:
        """The zero-terminated bytes at `offset` of a table that ends at `end`."""
        if not 0 <= offset < end:
            raise self.bad(f"a string at {offset:#x} lies outside its table")
        stop = self.data.find(b"\0", offset, min(end, self.size, offset + LONGEST_STRING))
        if stop < 0:
            raise self.bad(f"the string at {offset:#x} has no end")
        return self.data[offset:stop]

    def dynamic(self) -> list[tuple[int, int]] | None:
        """(tag, value) of PT_DYNAMIC in file order up to DT_NULL, or None where there is no such segment."""
        for kind, start, _, size in self.segments:
            if kind == PT_DYNAMIC and size:
                entry = 2 * self.word
                table = self.take(start, min(size, MOST_DYNAMIC * entry) // entry * entry)
                found: list[tuple[int, int]] = []
                for tag, value in struct.iter_unpack(f"{self.order}2{self.word_code}", table):
                    if tag == 0:
                        break
                    found.append((tag, value))
                return found
        return None
