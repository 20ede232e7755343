"""One root of what fails, and where it was seen. The categories: faults.py."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.diagnose.faults_symbols import LIBSTDCXX
from stackfix.diagnose.records import Failure, LoadedObject
from stackfix.diagnose.situation import Opening
from stackfix.matrix.library_records import LibraryFamily

SYSTEM_VERSIONS = ("GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One failure of one opening."""

    opening: Opening
    failure: Failure
    requester: LoadedObject | None  # who needs the library, or opens it by name; None: Python itself
    number: int | None              # of who asked, the interpreter too, in opening.outcome.attempted.objects
    severity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One root. `sightings` are in the order of the openings, `first` is the earliest of the worst."""

    category: str
    name: str                       # soname that was asked for, or that the symbols come from; else the requester's
    family: LibraryFamily | None    # of `name`
    provider: LoadedObject | None   # what was loaded for `name` and ought to have the symbols
    symbols: tuple[str, ...]        # all that are not found, in the loader's order; also those of a missing library
    versions: tuple[str, ...]       # version nodes that the provider lacks
    sightings: tuple[Sighting, ...]
    first: Sighting

    @property
    def opening(self) -> Opening:
        return self.first.opening

    @property
    def failure(self) -> Failure:
        """The first, as the loader reports it."""
        return self.first.failure

    @property
    def requester(self) -> LoadedObject | None:
        return self.first.requester

    @property
    def severity(self) -> str:
        """The worst of its sightings."""
        return self.first.severity

    @property
    def requesters(self) -> tuple[LoadedObject, ...]:
        """All of them, each once, the first one first."""
        found = (self.first, *self.sightings)
        return tuple({each.requester.identity: each.requester for each in found if each.requester}.values())

    @property
    def is_system(self) -> bool:
        """Whether it is about the versions of the C or C++ library."""
        return self.name == LIBSTDCXX or any(each.startswith(SYSTEM_VERSIONS) for each in self.versions)
