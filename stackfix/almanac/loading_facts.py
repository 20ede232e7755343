"""What loading asks of one wheel: records of its libraries, what they take from other wheels, what they offer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stackfix.abi.names import is_torch_library
from stackfix.almanac.records import ManifestWheel
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.plain import to_json
from stackfix.inspect.records import ElfObject, Offer, SymbolNames, UndefinedSymbol
from stackfix.prove.records import LibraryAt, WheelTables
from stackfix.tables.loading_book import USUAL
from stackfix.tables.loading_symbols import EVERY, INTERNAL, NAMED, NOT_INTERNAL, OF_TORCH, TorchNames

FEW, SHORT = 3000, 120_000      # symbols of a library, and bytes of their names, that are all told
ANY = ""                        # no version
OfLibrary = Callable[[str], MappedSymbols]      # its symbols, by its path


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFacts:
    """One library that the loader can map."""

    elf: ElfObject
    wanted: tuple[UndefinedSymbol, ...]     # of other wheels and of the system, in the file's order
    uses: tuple[int, ...]                   # twice the place in `wanted`, one more where only the PLT asks
    told: str
    lacks: tuple[str, ...]          # names that the book of torch has of the release, but not in this library of it
    symbols: MappedSymbols


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFacts:
    """One wheel."""

    wheel: ManifestWheel
    tables: WheelTables
    libraries: Mapping[str, LibraryFacts]   # by path; those that the loader refuses are in `tables` alone


def facts_of(wheel: ManifestWheel, tables: WheelTables, symbols: OfLibrary, torch: TorchNames | None) -> WheelFacts:
    """The facts of a wheel. `torch`: what its book says, where it was made of this very wheel."""
    within = Within(tables.libraries, symbols)
    exported = Exported(tables.libraries, symbols, torch) if torch is not None else None
    found = {}
    for each in tables.libraries:
        if isinstance(each.elf, ElfObject):
            own = symbols(each.path)
            wanted = tuple(within.outward(each.path, own))
            told = told_of(each.path, wheel, own, in_book=torch is not None)
            found[each.path] = LibraryFacts(
                elf=each.elf, wanted=wanted, uses=tuple(uses_of(wanted, own)), symbols=own, told=told,
                lacks=tuple(sorted(exported.elsewhere(each.path))) if exported and told == OF_TORCH else ())
    return WheelFacts(wheel=wheel, tables=tables, libraries=found)


class Within:
    """The libraries of one wheel among themselves."""

    def __init__(self, libraries: Iterable[LibraryAt], symbols: OfLibrary) -> None:
        self._symbols = symbols
        self._elves = {each.path: each.elf for each in libraries if isinstance(each.elf, ElfObject)}
        self._by_name: dict[str, list[str]] = {}
        for path, elf in self._elves.items():
            for name in {file_of(path), elf.soname} - {None}:
                self._by_name.setdefault(str(name), []).append(path)

    def outward(self, path: str, symbols: MappedSymbols) -> Iterator[UndefinedSymbol]:
        """What a library wants that neither it nor a library of the wheel that it needs has."""
        wanted = symbols.undefined()
        names = SymbolNames({each.name for each in wanted})
        offers: dict[str, set[str | None]] = {}     # versions; ANY where an unversioned reference binds to one
        for each in self.closure(path):
            for name, found in self._symbols(each).offered(names).items():
                versions = offers.setdefault(name, set())
                versions.update(offer.version for offer in found)
                versions.update(ANY for offer in found if not offer.hidden)
        for symbol in wanted:
            if (symbol.version or ANY) not in offers.get(symbol.name, ()):
                yield symbol

    def closure(self, path: str) -> Collection[str]:
        """The library and those of its wheel that it needs, and they need."""
        seen, ahead = {path: None}, [path]
        while ahead:
            for name in self._elves[ahead.pop()].needed:
                # of several with one name (a copy in two folders) nobody knows which one is found
                found = self._by_name.get(name, [])
                if len(found) == 1 and found[0] not in seen:
                    seen[found[0]] = None
                    ahead.append(found[0])
        return seen


class Exported:
    """What the libraries of a torch wheel export, beside what the book says of the release."""

    def __init__(self, libraries: Iterable[LibraryAt], symbols: OfLibrary, torch: TorchNames) -> None:
        self._torch = torch
        paths = [each.path for each in libraries
                 if isinstance(each.elf, ElfObject) and is_torch_library(file_of(each.path))]
        self._names = {path: {each.name for each in symbols(path).defined() if torch.is_told(each.name)}
                       for path in paths}
        self._every = frozenset[str]().union(*self._names.values())

    def elsewhere(self, path: str) -> Iterator[str]:
        """Names that the book gives to this library, which another one of the wheel has: they have moved."""
        own, file = self._names[path], file_of(path)
        return (name for name in self._every - own if self._torch.offers(file, name))


def file_of(path: str) -> str:
    return path.rpartition("/")[2]


def uses_of(wanted: Sequence[UndefinedSymbol], symbols: MappedSymbols) -> Iterator[int]:
    """The relocations that ask for what is wanted, in the loader's order."""
    places = {(each.name, each.version, each.file): place for place, each in enumerate(wanted)}
    for use in symbols.uses({each.name for each in wanted}):
        place = places.get((use.name, use.version, use.file))
        if place is not None:
            yield 2 * place + use.lazy


def told_of(path: str, wheel: ManifestWheel, symbols: MappedSymbols, *, in_book: bool) -> str:
    """Which of its names will be told."""
    if symbols.hashes.count() <= FEW and sum(len(each.name) for each in symbols.defined()) <= SHORT:
        return EVERY
    if wheel.package.startswith("nvidia-"):
        return NOT_INTERNAL
    return OF_TORCH if in_book and is_torch_library(file_of(path)) else NAMED


def exports_of(library: LibraryFacts, looked_for: SymbolNames) -> Mapping[str, tuple[Offer, ...]]:
    """What it offers, of the names that are told."""
    found = {name: tuple(offers) for name, offers in library.symbols.offered(looked_for).items()}
    if library.told in {EVERY, NOT_INTERNAL}:
        every = dict.fromkeys(each.name for each in library.symbols.defined())
        names = [name for name in every if library.told == EVERY or not INTERNAL.match(name)]
        found |= {name: tuple(offers) for name, offers in library.symbols.offered(SymbolNames(names)).items()}
    return found


def document_of(facts: WheelFacts, exports: Mapping[str, Mapping[str, tuple[Offer, ...]]],
                places: Mapping[str, int]) -> dict[str, Any]:
    """A wheel as the file has it. `exports`: by path; `places`: of each name in the table of names."""
    return {"project": to_json(facts.tables.project), "libraries": [
        {"path": each.path, "refused": without_path(each)} if each.path not in facts.libraries else
        library_document(each, facts.libraries[each.path], exports[each.path], places)
        for each in facts.tables.libraries]}


def library_document(library: LibraryAt, facts: LibraryFacts, exports: Mapping[str, tuple[Offer, ...]],
                     places: Mapping[str, int]) -> dict[str, Any]:
    likes = sorted({each[1:] for each in facts.wanted}, key=repr)
    alike: dict[tuple[Offer, ...], list[int]] = {}
    for name in sorted(exports, key=places.__getitem__):
        alike.setdefault(exports[name], []).append(places[name])
    elf = {key: value for key, value in without_path(library).items() if key not in USUAL or USUAL[key] != value}
    return {
        "path": library.path, "elf": elf, "told": facts.told, "likes": [list(each) for each in likes],
        "wanted": [places[each.name] for each in facts.wanted], "as": [likes.index(each[1:]) for each in facts.wanted],
        "uses": list(facts.uses), "lacks": distances(places[each] for each in facts.lacks),
        "offers": [[[list(offer) for offer in offers], distances(found)]
                   for offers, found in sorted(alike.items(), key=lambda item: item[1])],
    }


def without_path(library: LibraryAt) -> dict[str, Any]:
    found: dict[str, Any] = to_json(library.elf)
    del found["path"]
    return found


def distances(numbers: Iterable[int]) -> list[int]:
    """Ascending numbers, each as its distance from the one before."""
    return [other - one for one, other in pairwise([0, *numbers])]


__all__ = ["LibraryFacts", "WheelFacts", "distances", "document_of", "exports_of", "facts_of"]
