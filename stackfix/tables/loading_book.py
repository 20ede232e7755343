"""What ships of published wheels for loading: `matrices/abi/loading.bin`, read wheel by wheel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from stackfix.abi.records import TorchBook
from stackfix.errors import BadInput
from stackfix.inspect.plain import from_json
from stackfix.inspect.records import ElfObject, Offer, SymbolUse, UndefinedSymbol, UnreadableElf
from stackfix.matrix.toml_files import matrix_directory
from stackfix.prove.records import LibraryAt, PlannedWheel, WheelProject, WheelTables
from stackfix.quick import replace
from stackfix.tables.loading_format import HINT, MOST, Part, Sections
from stackfix.tables.loading_symbols import OF_TORCH, BookSymbols

FILE = "loading.bin"
INSIDE = ("which symbols its own libraries take from one another was bound when the almanac was made, and is not looked"
          " at again")
WRONG = (BadInput, AttributeError, IndexError, KeyError, TypeError, ValueError)
Document = Mapping[str, Any]


class LoadingBook:
    """The wheels of one file. Raises BadInput where it is damaged."""

    def __init__(self, content: bytes, path: Path, open_torch: Callable[[], TorchBook]) -> None:
        self._sections, self._open_torch = Sections(content, str(path)), open_torch
        self._parts = {part.sha256: part for part in self._sections.wheels}
        self._documents: dict[str, Document] = {}
        self._tables: dict[str, WheelTables] = {}

    def shipped(self, name: str) -> tuple[PlannedWheel, ...]:
        """Wheels of a project, oldest first."""
        return tuple(PlannedWheel(name=part.package, version=part.version, file=part.file, sha256=part.sha256,
                                  url=None, size=None) for part in self._parts.values() if part.package == name)

    @property
    def wheels(self) -> tuple[tuple[str, str, str, str], ...]:
        """Package, version, file and sha256 of each wheel, in the file's order."""
        return tuple((part.package, part.version, part.file, part.sha256) for part in self._parts.values())

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._parts

    def tables(self, sha256: str) -> WheelTables:
        """The tables of a wheel that it has."""
        if sha256 not in self._tables:
            self._tables[sha256] = self._read_tables(sha256)
        return self._tables[sha256]

    def _read_tables(self, sha256: str) -> WheelTables:
        part, document = self._parts[sha256], self._document(sha256)
        try:
            return WheelTables(
                sha256=sha256, file=part.file, basis="almanac", project=from_json(document["project"], WheelProject),
                libraries=tuple(map(library_of, document["libraries"])), listing=None,
                unknown=(INSIDE,) if len(document["libraries"]) > 1 else ())
        except WRONG as error:
            raise self._bad(part, error) from None

    def symbols(self, sha256: str, path: str) -> BookSymbols:
        """Symbols of one library of a wheel that it has, with what the book of torch knows of them."""
        found = self.facts(sha256, path)
        if found.told != OF_TORCH:
            return found
        from stackfix.tables.loading_torch import release_names

        return replace(found, torch=release_names(self._book, self._parts[sha256].version))

    def facts(self, sha256: str, path: str) -> BookSymbols:
        """What the file itself has of them."""
        part = self._parts[sha256]
        try:
            return self._facts(next(each for each in self._document(sha256)["libraries"] if each["path"] == path))
        except (StopIteration, *WRONG) as error:
            raise self._bad(part, error) from None

    def _facts(self, library: Document) -> BookSymbols:
        names = self._names
        likes = [(version, file, weak, hidden) for version, file, weak, hidden in library["likes"]]
        wanted = tuple(UndefinedSymbol(names[name], *likes[like])
                       for name, like in zip(library["wanted"], library["as"], strict=True))
        used = tuple(SymbolUse(each.name, each.version, each.file, bool(number & 1)) for number in library["uses"]
                     for each in (wanted[number >> 1],))
        exports = {names[place]: offers for offers, places in map(offered_alike, library["offers"]) for place in places}
        return BookSymbols(file=library["path"].rpartition("/")[2], wanted=wanted, used=used, exports=exports,
                           told=library["told"], named=self._looked_for,
                           lacks=frozenset(names[place] for place in accumulate(library["lacks"])))

    @cached_property
    def _names(self) -> list[str]:
        return self._sections.names()

    @cached_property
    def _looked_for(self) -> frozenset[str]:
        """Names that some wheel of the almanac wants: they were looked for in each library."""
        wanted = self._sections.looked_for
        return frozenset(self._names[place] for place in accumulate(wanted))

    @cached_property
    def _book(self) -> TorchBook:
        return self._open_torch()

    def _document(self, sha256: str) -> Document:
        if sha256 not in self._documents:
            self._documents[sha256] = self._sections.document(self._parts[sha256])
        return self._documents[sha256]

    def _bad(self, part: Part, error: Exception) -> BadInput:
        return BadInput(self._sections.name, f"is damaged: what it tells of {part.file} is not as it should be"
                                             f" ({' '.join(str(error).split())[:80]})", HINT)


def offered_alike(row: Any) -> tuple[tuple[Offer, ...], list[int]]:
    """Offers, and the names that have just these; names are kept by their distance."""
    offers, steps = row
    return tuple(Offer(*each) for each in offers), list(accumulate(steps))


def library_of(row: Document) -> LibraryAt:
    """A library's record. What a file of it states most often is left out of the document."""
    path = row["path"]
    if "refused" in row:
        return LibraryAt(path=path, elf=from_json({**row["refused"], "path": path}, UnreadableElf))
    return LibraryAt(path=path, elf=from_json({**USUAL, **row["elf"], "path": path}, ElfObject))


USUAL: dict[str, Any] = {
    "is": "ElfObject", "bits": 64, "byte_order": "little", "machine": "x86_64", "kind": "shared", "dynamic": True,
    "rpath": None, "runpath": None, "flags": [], "interpreter": None, "build_id": None, "base_version": None,
    "versioned_symbols": True, "cut_short": None, "versions_refused": None, "defined_versions": [],
}


def open_loading_book(directory: Path | None, open_torch: Callable[[], TorchBook]) -> LoadingBook:
    """The book in `directory`, ours where none is named. Raises BadInput where it is not there or damaged."""
    path = (matrix_directory() / "abi" if directory is None else directory) / FILE
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror or error}", HINT) from None
    if len(content) > MOST:
        raise BadInput(str(path), f"larger than {MOST >> 20} MiB", HINT)
    return LoadingBook(content, path, open_torch)


__all__ = ["FILE", "USUAL", "LoadingBook", "open_loading_book"]
