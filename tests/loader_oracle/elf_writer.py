"""ELF files of a graph, written byte by byte: a linker takes 30 ms a library, and refuses what old ones left behind.

x86_64. One segment, no section headers. tests/loader_oracle/gcc.py builds the same graphs with the real toolchain.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from stackfix.inspect.elf_names import sysv_hash
from stackfix.inspect.records import gnu_hash
from tests.loader_oracle.graph import Definition, Library, Reference

FLAGS = {"DF_ORIGIN": 1, "DF_SYMBOLIC": 2, "DF_BIND_NOW": 8}
FLAGS_1 = {"DF_1_NOW": 1, "DF_1_GLOBAL": 2, "DF_1_NODEFLIB": 0x800}
BINDINGS = {"global": 1, "weak": 2, "unique": 10}
FUNC, OBJECT = 2, 1
GLOB_DAT, JUMP_SLOT = 6, 7
# sub rsp, 8; call [rip + x]; add rsp, 8; ret: dlopen sees the caller's own address
CALL_DLOPEN = b"\x48\x83\xec\x08\xff\x15%s\x48\x83\xc4\x08\xc3"
# mov rdi, rsp; and rsp, -16; call [rip + x]
START = b"\x48\x89\xe7\x48\x83\xe4\xf0\xff\x15%s"
CODE_AT = 0x400                 # of call_dlopen in every file: the driver jumps to base + CODE_AT
Need: TypeAlias = tuple[str | None, str | None]         # file and version of a reference
HEADERS = 0x500                 # room for the headers, the code and PT_INTERP


@dataclass(slots=True)
class Strings:
    """A table of strings."""

    data: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    known: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.known[text]


@dataclass(slots=True)
class Symbol:
    """One line of the dynamic symbol table."""

    name: str
    binding: int
    kind: int
    versym: int
    defined: bool


def write(library: Library, *, interpreter: str | None = None, entry: str | None = None) -> bytes:
    """The file. With `interpreter` it is a program that calls `entry` with its stack pointer."""
    if library.garbage:
        return b"!<arch>\n" + b"this is no ELF file\n" * 8
    return Writer(library, interpreter, entry).write()


class Writer:
    """Lays one file out."""

    def __init__(self, library: Library, interpreter: str | None, entry: str | None) -> None:
        self.library, self.interpreter, self.entry = library, interpreter, entry
        self.strings = Strings()
        self.body = bytearray()
        self.dynamic: list[tuple[int, int]] = []

    def place(self, data: bytes) -> int:
        """Put a table behind the others; its address."""
        self.body += b"\0" * (-len(self.body) % 8)
        address = HEADERS + len(self.body)
        self.body += data
        return address

    def write(self) -> bytes:
        refers = [*self.library.refers, Reference(name="dlopen")]
        if self.entry:
            refers.append(Reference(name=self.entry))
        symbols, indexes = self.symbols(refers)
        for name in self.library.needed:
            self.dynamic.append((1, self.strings.add(name)))
        for tag, text in ((14, self.library.soname), (15, self.library.rpath), (29, self.library.runpath)):
            if text is not None:
                self.dynamic.append((tag, self.strings.add(text)))
        self.flags()
        slots = self.relocations(refers, indexes)
        self.tables(symbols)
        entries = [*self.dynamic, (21, 0), (0, 0)]      # DT_DEBUG, DT_NULL
        dynamic = self.place(b"".join(struct.pack("<qQ", tag, value) for tag, value in entries))
        return self.head(dynamic, slots) + bytes(self.body)

    def flags(self) -> None:
        for tag, known in ((30, FLAGS), (0x6FFFFFFB, FLAGS_1)):
            value = sum(bit for name, bit in known.items() if name in self.library.flags)
            if value:
                self.dynamic.append((tag, value))
        if "DF_SYMBOLIC" in self.library.flags:
            self.dynamic.append((16, 0))

    def symbols(self, refers: list[Reference]) -> tuple[list[Symbol], dict[Reference, int]]:
        """The symbol table, undefined ones first and the rest by bucket, and which line each reference means."""
        versions = {name: number for number, name in enumerate(self.library.versions, 2)}
        own: dict[tuple[str, str | None], Definition] = {}
        for definition in self.library.defines:
            own.setdefault((definition.name, definition.version), definition)
        outside = [each for each in dict.fromkeys(refers) if each.file or (each.name, each.version) not in own]
        needs: list[Need] = list(dict.fromkeys((each.file, each.version) for each in outside
                                               if each.file and each.version))
        numbers = {need: number for number, need in enumerate(needs, len(versions) + 2)}
        table = [Symbol("", 0, 0, 0, defined=False)]
        indexes: dict[Reference, int] = {}
        for each in outside:
            indexes[each] = len(table)
            versym = numbers.get((each.file, each.version), 1)
            table.append(Symbol(each.name, 2 if each.weak else 1, 0, versym, defined=False))
        self.first, self.buckets = len(table), max(1, len(own) // 2)
        for key, mine in sorted(own.items(), key=lambda item: gnu_hash(item[0][0]) % self.buckets):
            versym = versions[mine.version] | (0 if mine.default else 0x8000) if mine.version else 1
            for reference in refers:
                if not reference.file and (reference.name, reference.version) == key:
                    indexes[reference] = len(table)
            kind = OBJECT if mine.binding == "unique" else FUNC
            table.append(Symbol(mine.name, BINDINGS[mine.binding], kind, versym, defined=True))
        self.versioned = bool(versions or needs)
        self.version_tables(versions, needs, numbers)
        return table, indexes

    def version_tables(
        self, versions: dict[str, int], needs: list[Need], numbers: dict[Need, int],
    ) -> None:
        """DT_VERDEF and DT_VERNEED."""
        if versions:
            base = self.library.soname or self.library.path.rpartition("/")[2]
            entries = [(base, 1, 1), *((name, number, 0) for name, number in versions.items())]
            data = b"".join(
                struct.pack("<HHHHIII", 1, flag, number, 1, sysv_hash(name.encode()), 20,
                            28 if place < len(entries) - 1 else 0)
                + struct.pack("<II", self.strings.add(name), 0)
                for place, (name, number, flag) in enumerate(entries))
            self.dynamic += [(0x6FFFFFFC, self.place(data)), (0x6FFFFFFD, len(entries))]
        files = list(dict.fromkeys(file for file, _ in needs))
        data = b""
        for place, file in enumerate(files):
            of_file = [need for need in needs if need[0] == file]
            size = 16 + 16 * len(of_file)
            data += struct.pack("<HHIII", 1, len(of_file), self.strings.add(str(file)), 16,
                                size if place < len(files) - 1 else 0)
            for at, need in enumerate(of_file):
                name = str(need[1])
                data += struct.pack("<IHHII", sysv_hash(name.encode()), 0, numbers[need], self.strings.add(name),
                                    16 if at < len(of_file) - 1 else 0)
        if files:
            self.dynamic += [(0x6FFFFFFE, self.place(data)), (0x6FFFFFFF, len(files))]

    def relocations(self, refers: list[Reference], indexes: dict[Reference, int]) -> dict[str, int]:
        """DT_RELA and DT_JMPREL, a slot for each; the slots by name."""
        slots: dict[str, int] = {}
        self.dynamic.append((3, self.place(bytes(24))))     # DT_PLTGOT: the loader writes into the second and third
        for plt, tags in ((False, (7, 8)), (True, (23, 2))):
            some = [each for each in refers if each.plt is plt]
            if not some:
                continue
            data = b""
            for each in some:
                slot = slots[each.name] = self.place(bytes(8))
                data += struct.pack("<QQq", slot, indexes[each] << 32 | (JUMP_SLOT if plt else GLOB_DAT), 0)
            self.dynamic += [(tags[0], self.place(data)), (tags[1], len(data))]
            self.dynamic.append((20, 7) if plt else (9, 24))
        return slots

    def tables(self, symbols: list[Symbol]) -> None:
        """Symbols, strings, versions of symbols, hash table."""
        data = b"".join(
            struct.pack("<IBBHQQ", self.strings.add(each.name) if each.name else 0, each.binding << 4 | each.kind, 0,
                        int(each.defined), CODE_AT if each.defined else 0, 8 if each.defined else 0)
            for each in symbols)
        self.dynamic += [(6, self.place(data)), (11, 24)]
        if self.versioned:
            versym = struct.pack(f"<{len(symbols)}H", *(each.versym for each in symbols))
            self.dynamic.append((0x6FFFFFF0, self.place(versym)))
        if self.library.gnu_hash:
            self.dynamic.append((0x6FFFFEF5, self.place(self.gnu_table(symbols))))
        else:
            self.dynamic.append((4, self.place(self.old_table(symbols))))
        self.dynamic += [(5, self.place(bytes(self.strings.data))), (10, len(self.strings.data))]

    def gnu_table(self, symbols: list[Symbol]) -> bytes:
        hashed = [gnu_hash(each.name) for each in symbols[self.first:]]
        bloom = 0
        for value in hashed:
            bloom |= 1 << value % 64 | 1 << (value >> 6) % 64
        buckets, chain = [0] * self.buckets, []
        for place, value in enumerate(hashed):
            bucket = value % self.buckets
            buckets[bucket] = buckets[bucket] or self.first + place
            last = place + 1 == len(hashed) or hashed[place + 1] % self.buckets != bucket
            chain.append(value & ~1 | int(last))
        form = f"<4IQ{len(buckets)}I{len(chain)}I"
        return struct.pack(form, self.buckets, self.first, 1, 6, bloom, *buckets, *chain)

    def old_table(self, symbols: list[Symbol]) -> bytes:
        buckets, chain = [0] * self.buckets, [0] * len(symbols)
        for place in reversed(range(1, len(symbols))):
            bucket = sysv_hash(symbols[place].name.encode()) % self.buckets
            chain[place], buckets[bucket] = buckets[bucket], place
        return struct.pack(f"<2I{len(buckets)}I{len(chain)}I", len(buckets), len(chain), *buckets, *chain)

    def head(self, dynamic: int, slots: dict[str, int]) -> bytes:
        """Headers and code."""
        size = HEADERS + len(self.body)
        segments = [(1, 7, 0, size, 0x1000), (2, 6, dynamic, 16 * (len(self.dynamic) + 2), 8),
                    (0x6474E551, 6, 0, 0, 16)]
        code = bytearray(HEADERS)
        if self.interpreter:
            path = self.interpreter.encode() + b"\0"
            at = 0x200
            code[at:at + len(path)] = path
            segments = [(6, 4, 64, 56 * (len(segments) + 2), 8), (3, 4, at, len(path), 1), *segments]
        machine, bits = self.library.machine, self.library.bits
        ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
        start = CODE_AT + 0x40
        header = struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, start, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
        code[:64] = ident + header
        for place, (kind, flags, at, length, align) in enumerate(segments):
            line = struct.pack("<IIQQQQQQ", kind, flags, at, at, at, length, length, align)
            code[64 + 56 * place:120 + 56 * place] = line
        call = CALL_DLOPEN % struct.pack("<i", slots["dlopen"] - (CODE_AT + 10))
        code[CODE_AT:CODE_AT + len(call)] = call
        if self.entry:
            begin = START % struct.pack("<i", slots[self.entry] - (start + 13))
            code[start:start + len(begin)] = begin
        return bytes(code)
