"""The roots of all that fails when the imports are simulated: one fault, whatever the number of its symptoms.

    category          what it is                                                    judged by
    "symbol"          a library is there and lacks symbols                          shadows, library_versions
    "version"         a library is there and lacks a version node                   the same; system versions: machine
    "missing"         nothing was found under a name                                missing; CUDA of another major and
                                                                                    torch's own libraries: abi
    "bad"             what was found cannot be loaded                               shadows, missing
    "mixed"           parts of one library from several places do not fit           two families, mixed origin
    "torch-symbol"    a symbol that only torch exports                              abi
    "symbol-unknown"  a symbol of which nothing tells who should have it            abi

On the right: the modules whose checks make findings of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from stackfix.diagnose.faults_hidden import hidden_library
from stackfix.diagnose.faults_open import is_open, lacks_system
from stackfix.diagnose.faults_records import Fault, Sighting
from stackfix.diagnose.faults_symbols import (
    LIBSTDCXX,
    family_of_symbol,
    is_asked_of_torch,
    is_standard_symbol,
    is_torch_library,
)
from stackfix.diagnose.finding_records import SEVERITIES
from stackfix.diagnose.records import (
    BadLibrary,
    Failure,
    LoadedObject,
    MissingLibrary,
    MissingSymbol,
    MissingVersion,
)
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.records import FileAt
from stackfix.matrix.library_records import LibraryFamily

Key: TypeAlias = tuple[str, ...]


def find_faults(view: View) -> tuple[Fault, ...]:
    """All roots, in the order in which an import would meet them; worked out once for a view."""
    return sorted_faults(view)[0]


def find_open_faults(view: View) -> tuple[Fault, ...]:
    """Symbols that are perhaps the interpreter's own, where there is none: its program, libc, what it links.

    In a tree without a C library also what the system would give.
    """
    return sorted_faults(view)[1]


def sorted_faults(view: View) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Those that are sure, and those that only an interpreter, or a system, would tell."""
    remembered = vars(view)         # as functools.cached_property does it
    if "_faults" not in remembered:
        found: dict[bool, list[Fault]] = {True: [], False: []}
        bare = lacks_system(view)
        for each in Roots(view).faults():
            sure = bool(view.start.objects) or each.category != "symbol-unknown"
            found[sure and not (bare and is_open(view, each.category, each.name, each.versions,
                                                 provided=each.provider is not None))].append(each)
        remembered["_faults"] = tuple(found[True]), tuple(found[False])
    answer: tuple[tuple[Fault, ...], tuple[Fault, ...]] = remembered["_faults"]
    return answer


@dataclass(slots=True)
class Root:
    """A fault in the making."""

    category: str
    name: str
    family: LibraryFamily | None
    provider: LoadedObject | None
    symbols: dict[str, None] = field(default_factory=dict)
    versions: dict[str, None] = field(default_factory=dict)
    sightings: list[Sighting] = field(default_factory=list)


class Roots:
    """Sorts the failures of all openings by their roots."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.roots: dict[Key, Root] = {}

    def faults(self) -> tuple[Fault, ...]:
        for opening in self.view.openings:
            if opening.outcome.failures:
                InOpening(self, opening).sort()
        return tuple(Fault(category=root.category, name=root.name, family=root.family, provider=root.provider,
                           symbols=tuple(root.symbols), versions=tuple(root.versions),
                           sightings=tuple(root.sightings), first=min(root.sightings, key=rank))
                     for root in self.roots.values())


class InOpening:
    """The failures of one opening."""

    def __init__(self, roots: Roots, opening: Opening) -> None:
        self.view, self.roots, self.opening = roots.view, roots.roots, opening
        self.objects = opening.outcome.attempted.objects
        self.missing = {each.name: self.kind(each) for each in opening.outcome.failures
                        if isinstance(each, (MissingLibrary, BadLibrary))}
        self.by_path = {each.path: number for number, each in enumerate(self.objects)}
        self.by_name = named(self.objects)

    def kind(self, failure: MissingLibrary | BadLibrary) -> Key:
        """What a library that could not be loaded is known under."""
        if isinstance(failure, MissingLibrary):
            return "missing", failure.name
        file = file_at(self.view, failure.path)         # one file is opened by several paths
        return "bad", file.identity if file else failure.path

    def sort(self) -> None:
        for failure in self.opening.outcome.failures:
            if isinstance(failure, (MissingLibrary, BadLibrary)):
                self.note(self.kind(failure), failure, name=failure.name)
            elif isinstance(failure, MissingVersion):
                self.sort_version(failure)
            else:
                self.sort_symbol(failure)

    def note(self, key: Key, failure: Failure, *, name: str, family: LibraryFamily | None = None,
             provider: LoadedObject | None = None) -> None:
        """Put a failure to its root."""
        root = self.roots.get(key)
        if root is None:
            root = self.roots[key] = Root(key[0], name, family or self.view.family_of(name), provider)
        if isinstance(failure, MissingSymbol):
            root.symbols.setdefault(failure.name)
        elif isinstance(failure, MissingVersion):
            root.versions.setdefault(failure.version)
        number = self.by_path.get(failure.requester) if failure.requester is not None else None
        requester = self.objects[number] if number is not None and not self.objects[number].program else None
        if any(each.opening is self.opening and each.requester is requester for each in root.sightings):
            return      # the next of its symptoms
        root.sightings.append(Sighting(opening=self.opening, failure=failure, requester=requester, number=number,
                                       severity=severity(self.view, self.opening, root.family)))

    def symptom(self, key: Key, failure: MissingSymbol) -> None:
        """A symbol that is missing because its library is."""
        self.roots[key].symbols.setdefault(failure.name)

    def sort_version(self, failure: MissingVersion) -> None:
        file = failure.provider
        if file in self.missing:                    # the loader's assertion, where the library is not there at all
            return
        number = self.by_path.get(file)
        provider = self.objects[number] if number is not None else None
        name = (provider.elf.soname if provider else None) or file.rpartition("/")[2]
        self.note(("version", file), failure, name=name, provider=provider)

    def sort_symbol(self, failure: MissingSymbol) -> None:
        """By the library that the version was linked from, else by whose name it is."""
        requester = self.objects[self.by_path[failure.requester]] if failure.requester in self.by_path else None
        if failure.file is not None:
            self.sort_by_file(failure, failure.file, requester)
        elif is_asked_of_torch(self.view, failure.name):
            absent = next((key for name, key in self.missing.items() if is_torch_library(name)), None)
            if absent:
                self.symptom(absent, failure)
            else:
                self.note(("torch-symbol", failure.requester), failure, name=failure.requester.rpartition("/")[2])
        else:
            self.sort_by_name(failure, requester)

    def sort_by_file(self, failure: MissingSymbol, file: str, requester: LoadedObject | None,
                     family: LibraryFamily | None = None) -> None:
        """A symbol of the library `file`."""
        if file in self.missing:
            self.symptom(self.missing[file], failure)
            return
        provider = self.by_name.get(file)
        if provider is not None and ("version", provider.path) in self.roots:
            root = self.roots["version", provider.path]
            if failure.version in root.versions:
                root.symbols.setdefault(failure.name)
                return
        family = family or self.view.family_of(file)
        category = "mixed" if self.is_mixed(requester, provider, family) else "symbol"
        key = (category, provider.identity, str(self.is_own(requester))) if provider else (
            category, file, failure.requester)
        self.note(key, failure, name=file, family=family, provider=provider)

    def sort_by_name(self, failure: MissingSymbol, requester: LoadedObject | None) -> None:
        """An unversioned symbol: of a family that the requester needs, of libstdc++, or nobody's."""
        needed = requester.elf.needed if requester else ()
        of_name = {name: family for name in needed if (family := self.view.family_of(name)) is not None}
        family = family_of_symbol(failure.name, of_name.values())
        if family is not None:
            main = next((name for name in of_name if of_name[name] is family), "")
            self.sort_by_file(failure, main, requester, family)
        elif is_standard_symbol(failure.name):
            self.sort_by_file(failure, LIBSTDCXX, requester)
        elif absent := next((self.missing[name] for name in needed if name in self.missing), None):
            self.symptom(absent, failure)
        elif (family := family_of_symbol(failure.name, self.view.libraries.families)) is not None and (
                loaded := self.member(family)):
            self.sort_by_file(failure, loaded, requester, family)
        elif hidden := self.hidden(failure):
            self.sort_by_file(failure, hidden, requester)
        else:
            self.note(("symbol-unknown", failure.requester), failure, name=failure.requester.rpartition("/")[2])

    def hidden(self, failure: MissingSymbol) -> str | None:
        """The needed library that has the symbol in a copy which another one hides."""
        number = self.by_path.get(failure.requester)
        return None if number is None else hidden_library(self.view, self.opening.outcome.attempted, number,
                                                          failure.name)

    def member(self, family: LibraryFamily) -> str | None:
        """The loaded library of a family, its main one first."""
        sonames = [each.elf.soname for each in self.objects if each.elf.soname]
        of_family = [each for each in sonames if self.view.family_of(each) is family]
        return min(of_family, key=lambda name: family.stems.index(name.partition(".so")[0]), default=None)

    def is_own(self, object_: LoadedObject | None) -> bool:
        return object_ is None or self.view.is_own(object_.path, object_.real_path)

    def is_mixed(self, requester: LoadedObject | None, provider: LoadedObject | None,
                 family: LibraryFamily | None) -> bool:
        """Whether both are parts of one library, from different folders."""
        if requester is None or provider is None or family is None:
            return False
        same = self.view.family_of(requester.elf.soname or "") is family
        return same and folder_of(requester.real_path) != folder_of(provider.real_path)


def named(objects: Iterable[LoadedObject]) -> Mapping[str, LoadedObject]:
    """Objects by the names that they answer to, the first of a name."""
    found: dict[str, LoadedObject] = {}
    for each in objects:
        for name in (each.elf.soname, *each.names):
            if name:
                found.setdefault(name, each)
    return found


def file_at(view: View, path: str) -> FileAt | None:
    """The file behind a path of the loader, which may be relative to the current folder."""
    found = view.files.at(posixpath.join(view.situation.loader.cwd or "/", path))
    return found if isinstance(found, FileAt) else None


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def rank(sighting: Sighting) -> int:
    return SEVERITIES.index(sighting.severity)


def severity(view: View, opening: Opening, family: LibraryFamily | None) -> str:
    """How bad a failure of an opening is: modules are perhaps never imported, unless they belong to the GPU stack.

    A file that was named to be judged is asked for.
    """
    if opening.may_fail is not None:
        return "note"
    asked = opening.phase in {"import", "first use"} or opening.request.name in view.situation.extra
    return "error" if asked or family is not None else "warning"


def is_driver(view: View, name: str) -> bool:
    """Whether a library comes with NVIDIA's driver."""
    family = view.family_of(name)
    return family is not None and family.level == "driver"


def own_copies(view: View, soname: str) -> tuple[str, ...]:
    """Paths in the environment's library folders that have the name of a soname."""
    remembered = vars(view)
    if "_own_copies" not in remembered:
        found: dict[str, list[str]] = {}
        for folder in view.environment.library_folders:
            for name in folder.libraries:
                found.setdefault(name, []).append(f"{folder.path}/{name}")
        remembered["_own_copies"] = {name: tuple(paths) for name, paths in found.items()}
    known: Mapping[str, tuple[str, ...]] = remembered["_own_copies"]
    return known.get(soname, ())


def serious(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Faults that an import does not get over by itself: what may fail at an import is tried in another way then."""
    for each in faults:
        if any(seen.opening.may_fail is None or seen.opening.phase == "first use" for seen in each.sightings):
            yield each
