"""Mapped libraries as parts of their families: which major and version each is, and who brought it in."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from stackfix.diagnose.records import LoadedObject, ProcessState
from stackfix.diagnose.releases import Release, release_of
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import Owner
from stackfix.inspect.records import FileAt
from stackfix.matrix.library_records import LibraryFamily

# auditwheel and torch's own bundles put a hash into the name: libcudart-d0da41ae.so.11.0
HASHED = re.compile(r"-[0-9a-f]{8,}$")
CUDA_SUFFIX = re.compile(r"-cu\d+$")
MAJOR = re.compile(r"\.so\.(\d{1,9})(?!\d)")
FULL = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One mapped object of a family."""

    object: LoadedObject
    number: int                     # in the state's objects: the order of mapping
    family: LibraryFamily
    major: int | None               # of the soname: 12 of libcublas.so.12
    version: str | None             # "9.1.0.70"; None where neither file name nor owner tells
    owner: Owner | None
    path: str                       # for people: without `..`

    @property
    def folder(self) -> str:
        """Real folder."""
        return self.object.real_path.rpartition("/")[0]

    @property
    def soname(self) -> str:
        return self.object.elf.soname or self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """`libcublasLt`, or with its hash for a bundled copy."""
        return self.soname.partition(".so")[0]

    @property
    def plain_stem(self) -> str:
        """Without the hash."""
        return HASHED.sub("", self.stem)

    def origin(self) -> str:
        """Who installed it, in words."""
        if self.owner is not None:
            return f"{self.owner.name} {self.owner.version}"
        return f"a copy that no package installed ({f'version {self.version}' if self.version else 'version unknown'})"


def parts_of(view: View) -> Parts:
    """The parts of a view; made once for it."""
    remembered = vars(view)         # as functools.cached_property does it
    if "_parts" not in remembered:
        remembered["_parts"] = Parts(view)
    found: Parts = remembered["_parts"]
    return found


class Known(NamedTuple):
    """What is the same for a file in each state."""

    family: LibraryFamily
    major: int | None
    version: str | None
    owner: Owner | None
    path: str


class Parts:
    """Finds the parts of families in process states; each file is looked at once."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._families = {stem: each for each in view.libraries.families for stem in each.stems}
        self._known: dict[tuple[str, str], Known | None] = {}

    @cached_property
    def openings(self) -> tuple[tuple[Opening, tuple[Part, ...]], ...]:
        """Openings that map a part of a family, each with all parts that the process then has."""
        return tuple((opening, tuple(self.of(opening.outcome.attempted))) for opening in self.view.openings
                     if any(self.part(opening.outcome.attempted, number) for number in opening.outcome.loaded))

    @cached_property
    def _mapped_in(self) -> dict[str, list[int]]:
        """Numbers of the openings that map a file, by its identity."""
        found: dict[str, list[int]] = {}
        for number, opening in enumerate(self.view.openings):
            for each in opening.outcome.loaded:
                found.setdefault(opening.outcome.attempted.objects[each].identity, []).append(number)
        return found

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(each): number for number, each in enumerate(self.view.openings)}

    def opened_by(self, part: Part, until: Opening) -> Opening | None:
        """The last opening before, or at, `until` that mapped the file of a part."""
        numbers = self._mapped_in.get(part.object.identity, [])
        place = bisect_right(numbers, self._numbers[id(until)])
        return self.view.openings[numbers[place - 1]] if place else None

    def of(self, state: ProcessState) -> Iterator[Part]:
        """All parts in a state, in the order of mapping."""
        for number in range(len(state.objects)):
            found = self.part(state, number)
            if found is not None:
                yield found

    def part(self, state: ProcessState, number: int) -> Part | None:
        """The part that an object is; None where no family has it."""
        object_ = state.objects[number]
        key = (object_.path, object_.identity)
        if key not in self._known:
            self._known[key] = self._look(object_)
        known = self._known[key]
        if known is None:
            return None
        return Part(object=object_, number=number, family=known.family, major=known.major, version=known.version,
                    owner=known.owner, path=known.path)

    def _look(self, object_: LoadedObject) -> Known | None:
        name = object_.elf.soname or object_.path.rpartition("/")[2]
        family = self.family(name)
        if family is None:
            return None
        path = plain(self.view, object_.path)
        owner = next(iter(self.view.owners(path, object_.real_path)), None)
        version = version_of(object_.real_path, object_.elf.soname, owner, family)
        return Known(family, major_of(name), version, owner, path)

    def family(self, name: str) -> LibraryFamily | None:
        """The family of a library by its file name or soname, bundled copies too."""
        return self._families.get(HASHED.sub("", name.partition(".so")[0]))


def major_of(name: str) -> int | None:
    """12 of "libcublas.so.12"."""
    found = MAJOR.search(name)
    return int(found[1]) if found else None


def version_of(real_path: str, soname: str | None, owner: Owner | None,
               family: LibraryFamily | None = None) -> str | None:
    """Version of a library: of its real file's name, where that says more than the soname, else of its owner.

    The owner's counts only where it is a package of the `family`, and not one that bundles a copy. Only numbers that
    begin with the soname's own major can be compared: the wheel of libnvToolsExt.so.1 is 12.1.105, and CUPTI's file
    in a toolkit is libcupti.so.2023.1.1.
    """
    name = real_path.rpartition("/")[2]
    found, major = FULL.search(name), major_of(soname or name)
    in_name = found[1] if found and name != soname else None
    stated = (in_name, owner.version if owner and (family is None or carries(owner, family)) else None)
    return next((each for each in stated if each and major in {None, *(release_of(each) or ())[:1]}), None)


def carries(owner: Owner, family: LibraryFamily) -> bool:
    """Whether a package is one of those that bring a family."""
    if owner.manager == "conda":
        return owner.name in family.conda or owner.name in family.projects
    return CUDA_SUFFIX.sub("", owner.name) in family.projects


def same_version(one: str | None, other: str | None) -> bool | None:
    """Whether two versions agree as far as both go (9.1.0 and 9.1.0.70 do); None where one is not known."""
    first, second = (release_of(each) if each else None for each in (one, other))
    if first is None or second is None:
        return None
    width = min(written(one), written(other))
    return padded(first, width) == padded(second, width)


def is_older(one: str | None, other: str | None) -> bool:
    """Whether a version is surely the older one, as far as both go."""
    if same_version(one, other) is not False:
        return False
    width = min(written(one), written(other))
    return padded(release_of(one or "") or (), width) < padded(release_of(other or "") or (), width)


def written(version: str | None) -> int:
    """How many numbers a version writes: 3 for "9.0.0+cu12"."""
    found = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version or "")
    return found[1].count(".") + 1 if found else 0


def padded(release: Release, width: int) -> Release:
    return (*release, *(0,) * width)[:width]


def bringer(part: Part, state: ProcessState) -> LoadedObject | None:
    """The object at the head of the chain of those that need a part; None where the part itself was opened."""
    here = part.object
    while here.loader is not None:
        here = state.objects[here.loader]
    return None if here is part.object or here.program else here


def plain(view: View, path: str) -> str:
    """A path without `..`, where the same file lies there: `torch/lib/../../nvidia/cublas/lib` is hard to read.

    What an empty or relative element of LD_LIBRARY_PATH gave is told by its whole path.
    """
    path = whole(view, path)
    tidy = posixpath.normpath(path)
    if tidy == path:
        return path
    one, other = view.files.at(path), view.files.at(tidy)
    same = isinstance(one, FileAt) and isinstance(other, FileAt) and one.identity == other.identity
    return tidy if same else path


def whole(view: View, path: str) -> str:
    """A path from the root on; what the loader names by a relative one lies in the current folder."""
    return posixpath.join(view.situation.loader.cwd, path)


def owner_at(view: View, path: str | None) -> Owner | None:
    """Who installed the file at a path, as the loader or a person writes it."""
    if path is None:
        return None
    path = whole(view, path)
    file = view.files.at(path)
    real = (file.real_path,) if isinstance(file, FileAt) else ()
    return next(iter(view.owners(path, posixpath.normpath(path), *real)), None)


def named(owner: Owner | None) -> str | None:
    """`torch 2.3.1` for a package."""
    return f"{owner.name} {owner.version}" if owner else None
