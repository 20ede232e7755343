"""What the owners of files have to do with the imports: which files are mapped, which are missed, who asks for whom."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from stackfix.diagnose.families_parts import CUDA_SUFFIX, named
from stackfix.diagnose.faults_text import seen_error, why_unusable
from stackfix.diagnose.imports_projects import Projects, required_names
from stackfix.diagnose.records import BadLibrary, Failure, MissingLibrary
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import Copies, Distribution, FileFault, Owner
from stackfix.inspect.records import ElfObject, FileAt

SHARED_OBJECT = re.compile(r"\.so(?:\.\d+)*$")
# Left out of slim images on purpose, and asked for by nobody
ASIDE = re.compile(r"/(?:tests?|testing|_tests?|docs?|examples?|benchmarks?|include|[^/]+\.(?:dist|egg)-info)/"
                   r"|/(?:test_[^/]*|[^/]*_tests?|conftest)(?:\.[^/]*)?$")
GONE, CHANGED = frozenset({"missing", "broken-link", "no-file"}), frozenset({"size", "hash"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Why a file that is at fault is needed."""

    opening: Opening | None         # None: a library that is there opens it by name
    requester: str | None           # path
    error: str | None               # in the loader's words
    unusable: str | None = None     # why the loader cannot use what lies there


def facts_of(view: View) -> Facts:
    """The facts of a view; made once for it."""
    remembered = vars(view)         # as functools.cached_property does it
    if "_ownership" not in remembered:
        remembered["_ownership"] = Facts(view)
    found: Facts = remembered["_ownership"]
    return found


class Facts:
    """Answers about one view; each is made at most once."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.projects = Projects(view.environment, view.libraries)

    @cached_property
    def faults(self) -> dict[str, list[FileFault]]:
        """Faults by path."""
        found: dict[str, list[FileFault]] = {}
        for each in self.view.environment.file_faults:
            found.setdefault(each.path, []).append(each)
        return found

    @cached_property
    def mapped(self) -> dict[str, Opening]:
        """The first opening that maps a file, by its path and by the path behind its links."""
        found: dict[str, Opening] = {}
        for opening in self.view.openings:
            for number in opening.outcome.loaded:
                object_ = opening.outcome.attempted.objects[number]
                for path in (object_.path, posixpath.normpath(object_.path), object_.real_path):
                    found.setdefault(path, opening)
        return found

    @cached_property
    def missing(self) -> dict[str, tuple[Opening, MissingLibrary]]:
        """The first opening that misses a library, by the name it was asked for; those first that may not fail."""
        found: dict[str, tuple[Opening, MissingLibrary]] = {}
        for opening in sorted(self.view.openings, key=lambda each: each.may_fail is not None):
            for failure in opening.outcome.failures:
                if isinstance(failure, MissingLibrary):
                    found.setdefault(failure.name, (opening, failure))
        return found

    @cached_property
    def failed_files(self) -> dict[str, tuple[Opening, Failure]]:
        """Openings that fail on a file itself: one that is no library, or that lacks what others want of it."""
        found: dict[str, tuple[Opening, Failure]] = {}
        for opening in self.view.openings:
            if opening.may_fail is None:
                for failure in opening.outcome.failures:
                    path = getattr(failure, "path", None) or getattr(failure, "provider", None)
                    if isinstance(path, str):
                        found.setdefault(posixpath.normpath(path), (opening, failure))
        return found

    def failed(self, path: str) -> Need | None:
        """Why a shared object that is there is needed: an import fails on it."""
        opening, failure = self.failed_files.get(path) or (None, None)
        if opening is None or failure is None:
            return None
        return Need(opening=opening, requester=None, error=seen_error(failure),
                    unusable=why_unusable(failure) if isinstance(failure, BadLibrary) else None)

    def cut_short(self, path: str) -> Need | None:
        """Why a shared object whose end is gone is damaged, also where the loader gets over it."""
        file = self.view.files.at(path)
        if not isinstance(file, FileAt) or not isinstance(file.elf, ElfObject) or file.elf.cut_short is None:
            return None
        return Need(opening=None, requester=None, error=None,
                    unusable=f"cut short: {file.elf.size} bytes of at least {file.elf.cut_short}")

    @cached_property
    def _opened_by_folder(self) -> dict[tuple[str, str], str]:
        """(folder, name): path of the library in that folder which opens the name, and cannot do without it."""
        found: dict[tuple[str, str], str] = {}
        for folder in self.view.environment.library_folders:
            for row in self.view.libraries.opened:
                if row.optional or row.versions is not None:
                    continue        # of a row for some versions only the openings know whether it counts
                caller = next((each for each in folder.libraries if fnmatchcase(each, row.library)), None)
                for name in row.names if caller else ():
                    found.setdefault((folder.path, name), f"{folder.path}/{caller}")
        return found

    def need(self, path: str) -> Need | None:
        """Why a shared object that is gone is needed: an import misses it, or a library beside it opens it."""
        folder, _, name = path.rpartition("/")
        opening, failure = self.missing.get(path) or self.missing.get(name) or (None, None)
        if opening is not None and failure is not None and opening.may_fail is None:
            return Need(opening=opening, requester=failure.requester, error=failure.message())
        caller = self._opened_by_folder.get((folder, name))
        return Need(opening=None, requester=caller, error=None) if caller else None

    @cached_property
    def askers(self) -> dict[str, tuple[Distribution, ...]]:
        """Installed projects that require a project, by its name."""
        found: dict[str, list[Distribution]] = {}
        for name, requires in self.projects.requires.items():
            for each in requires:
                found.setdefault(each, []).append(self.projects.distributions[name])
        return {name: tuple(askers) for name, askers in found.items()}

    def asked_by(self, owner: Owner) -> tuple[str, ...]:
        """"torch 2.3.1" for each installed project that requires one."""
        names = (owner.name, *self.projects_of(owner))
        return tuple(f"{each.name} {each.version}" for name in dict.fromkeys(names)
                     for each in self.askers.get(name, ()))

    def said_of(self, owner: Owner) -> str:
        """Who requires a package, in words. An extra may or may not have been asked for: nothing records that."""
        asked = self.asked_by(owner)
        if asked:
            return f"required by {', '.join(asked)}"
        extras = self.extras_asking(owner)
        return f"required by an extra of {', '.join(extras)}" if extras else "required by nothing that is installed"

    def extras_asking(self, owner: Owner) -> tuple[str, ...]:
        """Installed projects of which only an extra requires a package."""
        names = {owner.name, *self.projects_of(owner)}
        return tuple(f"{each.name} {each.version}" for each in self.projects.distributions.values()
                     if any("extra" in line and names & set(required_names((line.partition(";")[0],)))
                            for line in each.requires))

    def projects_of(self, owner: Owner) -> tuple[str, ...]:
        """Python projects that a conda package states; a wheel is its own."""
        if owner.manager != "conda":
            return (owner.name,)
        conda = self.view.environment.conda
        return next((each.projects for each in (conda.packages if conda else ()) if each.name == owner.name), ())

    def same_project(self, owners: Iterator[Owner]) -> bool:
        """Whether several owners are one project in two installations."""
        sets = [set(self.projects_of(each)) for each in owners]
        return bool(sets) and bool(set.intersection(*sets))

    def level(self, owner: Owner) -> str | None:
        """The storey of the pyramid that a package belongs to; None outside of the GPU stack."""
        for name in (owner.name, *self.projects_of(owner)):
            plain = CUDA_SUFFIX.sub("", name)
            for family in self.view.libraries.families:
                if plain in family.projects or (owner.manager == "conda" and name in family.conda):
                    return family.level
            if name in self._importing:
                return "torch" if name == "torch" else "extensions"
            if name.startswith("nvidia-"):
                return "cuda"
        return None

    @cached_property
    def _importing(self) -> frozenset[str]:
        return frozenset(each.project for each in self.view.libraries.imports) | {"torch"}

    @cached_property
    def twice(self) -> frozenset[Owner]:
        """Owners whose project is installed twice: what is wrong with their files is that finding's."""
        found = set()
        for copies in self.view.environment.copies:
            found |= set(self.owners_of(copies))
        return frozenset(found)

    def owners_of(self, copies: Copies) -> tuple[Owner, ...]:
        """The owners of all installations of a project, the one that Python imports first."""
        conda = self.view.environment.conda
        by_metadata = {each.metadata: each for each in self.view.environment.distributions}
        found = [self._owner(by_metadata[each]) for each in copies.distributions if each in by_metadata]
        found += [Owner(manager="conda", name=each.name, version=each.version)
                  for each in (conda.packages if conda else ()) if each.name in copies.conda_packages]
        return tuple(dict.fromkeys(found))

    def _owner(self, distribution: Distribution) -> Owner:
        conda = self.view.environment.conda
        package = next((each for each in (conda.packages if conda else ())
                        if each.name == distribution.conda_package), None)
        if package is not None:
            return Owner(manager="conda", name=package.name, version=package.version)
        return Owner(manager=distribution.manager, name=distribution.name, version=distribution.version)


def is_shared_object(path: str) -> bool:
    return SHARED_OBJECT.search(path) is not None


def listed(owners: tuple[Owner, ...]) -> str:
    """`a 1 and b 2`."""
    return " and ".join(f"{named(each)}" + (" (conda)" if each.manager == "conda" else "") for each in owners)
