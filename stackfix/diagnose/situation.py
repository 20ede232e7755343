"""What a diagnosis is made from: records, and questions that only the edges can answer (all of them Protocols)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from stackfix.diagnose.loader import candidates
from stackfix.diagnose.records import Candidate, LoadOutcome, OpenLibrary, ProcessState
from stackfix.inspect.environment_records import Distribution, Environment, Owner
from stackfix.inspect.fatbin_records import GpuArchs, UnreadableFatbin
from stackfix.inspect.ldso_records import ConfiguredFolder
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.records import Files, LoaderEnvironment
from stackfix.matrix.library_records import Libraries, LibraryFamily
from stackfix.matrix.records import Matrix, Needs

if TYPE_CHECKING:
    from stackfix.abi.records import Books


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One environment on one machine, in one set of variables."""

    environment: Environment
    machine: Machine                # its `variables` are the process's
    loader: LoaderEnvironment
    configured: tuple[ConfiguredFolder, ...]    # /etc/ld.so.conf: why the cache has what it has
    extra: tuple[str, ...] = ()     # shared objects that were named to be judged too (--ext, --wheel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One dlopen of an import, and what the simulated loader made of it (all faults, not only the first)."""

    project: str | None             # normalised: "torch"; None for a file that no project owns
    what: str                       # "import torch", "torchvision/_C.so", "libcudnn.so.9 opens libcudnn_ops.so.9"
    phase: str                      # "import": surely done by the import; "first use"; "module": importable by itself
    request: OpenLibrary
    outcome: LoadOutcome            # the next opening starts from outcome.attempted, as if faults were cured
    may_fail: str | None            # why a failure harms nobody


class Owners(Protocol):
    """Who installed which file."""

    def owners(self, path: str) -> tuple[Owner, ...]:
        """Who claims the path, each once; empty: no installer knows it."""
        ...


@dataclass(frozen=True, kw_only=True)
class View:
    """A situation with everything that the checks ask. Answers are remembered, nothing else changes."""

    situation: Situation
    libraries: Libraries
    load_matrix: Callable[[], Matrix]   # read only when a check needs it
    load_books: Callable[[], Books]     # the almanac: opened only where symbols are missing
    files: Files
    installed: Owners
    start: ProcessState             # the interpreter, before any import
    openings: Sequence[Opening]
    archs: Callable[[str], GpuArchs | UnreadableFatbin | None] | None = None    # GPU code of a file; asked only where
    #                                                                             a GPU's capability is known
    load_needs: Callable[[], Needs] | None = None   # companions and rules alone: quicker than the whole matrix

    @property
    def environment(self) -> Environment:
        return self.situation.environment

    @property
    def machine(self) -> Machine:
        return self.situation.machine

    @cached_property
    def matrix(self) -> Matrix:
        return self.load_matrix()

    @cached_property
    def needs(self) -> Needs:
        if self.load_needs is not None and "matrix" not in vars(self):
            return self.load_needs()
        return Needs(companions=self.matrix.companions, rules=self.matrix.rules)

    @cached_property
    def books(self) -> Books:
        return self.load_books()

    @cached_property
    def variables(self) -> Mapping[str, str]:
        return dict(self.machine.variables)

    @cached_property
    def distributions(self) -> Mapping[str, Distribution]:
        """By normalised name, the copy that Python imports."""
        found: dict[str, Distribution] = {}
        for each in self.environment.distributions:
            found.setdefault(each.name, each)
        return found

    def owners(self, *paths: str) -> tuple[Owner, ...]:
        """Who installed a file, by the first of these paths that somebody claims."""
        return next(filter(None, (self.installed.owners(path) for path in paths)), ())

    def is_own(self, *paths: str) -> bool:
        """Whether a file belongs to the environment: in its prefix, or in a folder that Python imports from."""
        inside = (self.environment.prefix, *(each.path for each in self.environment.sites))
        return any(path.startswith(f"{folder}/") for path in paths for folder in inside)

    def is_inside(self, path: str) -> bool:
        """Whether a path lies in the prefix, as its text has it: nothing else is ever changed."""
        return posixpath.normpath(path).startswith(f"{self.environment.prefix}/")

    def is_at_hand(self, path: str) -> bool:
        """Whether the environment may name a file: in the prefix, or of its base, its .pth files or the user's site.

        PYTHONPATH is another one in another shell.
        """
        return self.is_inside(path) or any(path.startswith(f"{each}/") for each in self.outside)

    @property
    def outside(self) -> tuple[str, ...]:
        """Folders that Python always imports from and that lie outside of the prefix."""
        return tuple(each.path for each in self.environment.sites
                     if each.kind in {"base", "pth", "user"} and each.exists and not self.is_inside(each.path))

    def family_of(self, soname: str) -> LibraryFamily | None:
        """The family of "libcudnn_ops.so.9"."""
        stem = soname.partition(".so")[0]
        return self._families.get(stem)

    @cached_property
    def _families(self) -> Mapping[str, LibraryFamily]:
        return {stem: family for family in self.libraries.families for stem in family.stems}

    def candidates(self, name: str, requester: int | None, state: ProcessState) -> tuple[Candidate, ...]:
        """Every file that a search would come to; the first wins and shadows the rest."""
        return candidates(name, requester, state, self.situation.loader, self.files)
