"""All that the reader of ELF files answers about one file, and a disk whose files are read from their hollow images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stackfix.inspect.elf import map_file, parse_elf
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import BadElf, FileAt, Refused, SymbolNames, Symbols, UnreadableElf
from stackfix.tables.hollow import reduce_elf
from stackfix.tables.image import open_image
from stackfix.tables.packed import pack, unpack

FOREIGN = ("malloc", "nowhere", "__nvJitLinkAddData_12_1", "s0", "s1", "dlopen", "", "_ZSt4cout")
NAME = "site/lib.so"


def answers(data: Buffer, names: frozenset[str] | None = None) -> dict[str, object]:
    """By question: the answer, or the error. `names`: those to ask for, else its own and some foreign ones.

    Of a file that the loader refuses, nobody asks more.
    """
    found: dict[str, object] = {"record": told(lambda: parse_elf(data, NAME))}
    if isinstance(found["record"], UnreadableElf):
        return found
    try:
        symbols = MappedSymbols(data, NAME)
    except BadElf as error:
        return found | {"symbols": error.as_record(NAME)}
    own = told(lambda: frozenset(each.name for each in symbols.defined()))
    asked = sorted({*(names or ()), *(own if isinstance(own, frozenset) else ()), *FOREIGN})
    questions: dict[str, Callable[[], object]] = {
        "undefined": lambda: list(symbols.undefined()), "unique": lambda: list(symbols.unique()),
        "defined": lambda: list(symbols.defined()), "referred": lambda: list(symbols.referred()),
        "offered": lambda: dict(symbols.offered(SymbolNames(asked))), "uses": lambda: list(symbols.uses(asked)),
        "named": lambda: [list(symbols.named(name)) for name in asked[:500]],
    }
    return found | {question: told(ask) for question, ask in questions.items()}


def told(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except BadElf as error:
        return error.as_record(NAME)


def hollow_answers(data: Buffer) -> dict[str, object]:
    """The same from what is kept of the file, packed and unpacked on the way."""
    hollow = reduce_elf(data, NAME)
    if hollow.image is None:
        assert isinstance(hollow.elf, UnreadableElf)
        return {"record": hollow.elf}
    found = answers(open_image(unpack(pack(hollow.image), NAME), NAME))
    assert found["record"] == hollow.elf
    return found


class HollowDisk(DiskFiles):
    """The disk, but nothing of an ELF file is read but what is kept of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read = dict[str, Symbols]()

    def at(self, path: str) -> FileAt | Refused | None:
        found = super().at(path)
        if not isinstance(found, FileAt):
            return found
        return replace(found, elf=reduce_elf(self._content(found), found.elf.path).elf)

    def symbols(self, file: FileAt) -> Symbols:
        if file.identity not in self.read:
            image = reduce_elf(self._content(file), file.path).image
            if image is None:
                return super().symbols(file)        # raises
            self.read[file.identity] = MappedSymbols(open_image(unpack(pack(image), file.path), file.path), file.path)
        return self.read[file.identity]

    def _content(self, file: FileAt) -> Buffer:
        with open(self.root.host(file.real_path), "rb") as stream:     # noqa: PTH123 - a name, not a path
            return map_file(stream.fileno(), file.path) if stream.seek(0, 2) else b""
