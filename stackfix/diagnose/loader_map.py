"""Mapping of objects and of all that they need: one request's work that start-up and dlopen share.

Rules by number: docs/loader.md. Source: glibc 2.36, elf/dl-load.c, dl-deps.c, dl-version.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from stackfix.diagnose.loader_bind import Binder
from stackfix.diagnose.loader_order import depth_first, original
from stackfix.diagnose.loader_process import Index, Mapped, Process
from stackfix.diagnose.loader_search import NO_FILE, OTHER_MACHINE, WRONG_CLASS, Hit, Search
from stackfix.diagnose.records import (
    BadLibrary,
    Edge,
    Failure,
    FoundVia,
    MissingLibrary,
    MissingVersion,
    ProcessState,
    Tried,
    Unjudged,
)
from stackfix.inspect.records import ElfObject, Files, LoaderEnvironment, NeededVersion

NO_OPEN = "shared object cannot be dlopen()ed"


class Setup(Protocol):
    """What is the same for every request: the simulator."""

    environment: LoaderEnvironment
    files: Files
    search: Search
    keep_going: bool

    def make_binder(self, process: Process) -> Binder: ...
    def unique_of(self, state: ProcessState) -> Mapping[str, int]: ...
    def index_of(self, state: ProcessState) -> Index: ...
    def keep_index(self, state: ProcessState, index: Index) -> object: ...


class Stopped(Exception):
    """The loader gives up. Never leaves the simulator."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class Mapper:
    """Maps objects into one process."""

    def __init__(self, simulator: Setup, state: ProcessState) -> None:
        self.simulator, self.environment, self.search = simulator, simulator.environment, simulator.search
        self.process = Process(state, simulator.files, simulator.unique_of(state),
                               simulator.index_of(state))
        self.binder = simulator.make_binder(self.process)
        self.edges: list[Edge] = []
        self.failures: list[Failure] = []
        self.unjudged: list[Unjudged] = []
        self.opened: int | None = None

    def fail(self, failure: Failure) -> None:
        """Stop, or note and go on."""
        if not self.simulator.keep_going:
            raise Stopped(failure)
        self.failures.append(failure)

    def listed(self, head: Mapped) -> list[Mapped]:
        """The search list of a head."""
        return [self.process.objects[number] for number in head.searchlist or ()]

    # --- mapping (dl-load.c, dl-deps.c) ---

    def map(
        self, name: str, requester: Mapped | None, *, dlopened: bool = False, via_preload: bool = False,
    ) -> Mapped:
        """The object for `name`: one that is mapped already, or the first that the search finds (rules 1 and 6)."""
        loaded = self.already_loaded(name)
        if loaded is not None:
            object_, via = loaded
        else:
            hit = self.find(name, requester)
            elf = hit.file.elf
            late = dlopened or (requester is not None and requester.dlopened)
            bad = hit.bad or (NO_OPEN if late and isinstance(elf, ElfObject) and "DF_1_NOOPEN" in elf.flags else None)
            if bad is not None or not isinstance(elf, ElfObject):
                raise Stopped(BadLibrary(name=name, path=hit.opened_as, requester=requester.path if requester else None,
                                         found_via=hit.via, why=bad or "cannot be read", crash=hit.crash))
            via, same = hit.via, self.process.by_identity(hit.file.identity)
            if same is not None:        # the same file under another path: its names grow by one
                self.process.add_name(same, name)
                object_, via = same, FoundVia(step="same file", element=hit.via.element, owner=hit.via.owner)
            else:
                object_ = self.process.add(
                    hit.file, elf, name=name, path=hit.opened_as, cwd=self.environment.cwd, dlopened=late, via=via,
                    loader=None if dlopened or requester is None else requester.number,
                )
        self.edges.append(Edge(None if dlopened or via_preload or requester is None else requester.number, name,
                               object_.number, via))
        return object_

    def already_loaded(self, name: str) -> tuple[Mapped, FoundVia] | None:
        """The first object that was asked for under `name`, lies at it, or has it as DT_SONAME (rule 6)."""
        called, stating = self.process.called(name), self.process.with_soname(name)
        if called is not None and (stating is None or called.number <= stating.number):
            return called, FoundVia(step="loaded name")
        if stating is not None:
            self.process.add_name(stating, name)
            return stating, FoundVia(step="loaded soname")
        return None

    def find(self, name: str, requester: Mapped | None) -> Hit:
        """What the search gives; a miss ends the request."""
        hit, tried = self.search.find(name, requester, self.process)
        if hit is not None:
            return hit
        why = next((each.why for each in tried if each.why.startswith(WRONG_CLASS)), None) or (
            refusal(tried) if "/" in name else None) or "No such file or directory"
        raise Stopped(MissingLibrary(name=name, requester=requester.path if requester else None, tried=tried, why=why))

    def search_dependencies(self, head: Mapped, preloaded: Iterable[Mapped]) -> None:
        """Map all that `head` needs, breadth first (rule 1), and order it for relocation. Source: dl-deps.c."""
        known = [head, *preloaded]
        seen = {each.number for each in known}
        for object_ in known:           # grows while it is walked
            needed = [each for name in object_.elf.needed if (each := self.need(name, object_)) is not None]
            for each in needed:
                if each.number not in seen:
                    seen.add(each.number)
                    known.append(each)
            if object_.searchlist is None and object_.order is None and object_ is not head:
                object_.order = (object_.number, *(each.number for each in needed))
        head.searchlist = tuple(each.number for each in known)
        sort = depth_first if self.environment.machine.sort_by_depth else original
        head.order = sort(head, head.searchlist, self.process)

    def need(self, name: str, requester: Mapped) -> Mapped | None:
        """The object for one DT_NEEDED; None where it is missing and all faults are wanted."""
        try:
            return self.map(self.search.expand(name, requester.origin), requester)
        except Stopped as stopped:
            self.fail(stopped.failure)
            return None

    # --- versions and relocation (dl-version.c, dl-reloc.c) ---

    def check_versions(self, objects: Iterable[Mapped]) -> None:
        """Whether each new object finds the version nodes that it was linked against (rule 8)."""
        for object_ in [each for each in objects if each.new]:
            if object_.elf.versions_refused is not None:
                self.fail(BadLibrary(name=object_.names[0], path=object_.path, requester=None, found_via=object_.via,
                                     why=object_.elf.versions_refused))
            for need in object_.elf.needed_versions:
                provider = self.process.called(need.file)
                if provider is None:
                    self.fail(MissingVersion(provider=need.file, version=need.version, requester=object_.path,
                                             crash=True))
                elif self.lacks_version(provider, need):
                    self.fail(MissingVersion(provider=provider.path, version=need.version, requester=object_.path))

    def lacks_version(self, provider: Mapped, need: NeededVersion) -> bool:
        """A library without any version definition is believed to have all (rule 8)."""
        elf = provider.elf
        if need.weak or (not elf.defined_versions and elf.base_version is None):
            return False
        return need.version not in elf.defined_versions and need.version != elf.base_version

    def relocate(self, head: Mapped, *, now: bool) -> None:
        """Bind the new objects, dependencies first."""
        new = [each for each in map(self.process.objects.__getitem__, reversed(head.order or ())) if each.new]
        self.binder.prepare(new)
        for object_ in new:
            self.binder.bind(object_, now=self.binds_now(object_, now=now))

    def binds_now(self, object_: Mapped, *, now: bool) -> bool:
        """Whether functions are bound at once: asked for, LD_BIND_NOW, or the object's own flag (rule 7)."""
        return now or self.environment.bind_now or bool({"DF_BIND_NOW", "DF_1_NOW"} & set(object_.elf.flags))


def refusal(tried: Sequence[Tried]) -> str | None:
    """The kernel's word for a path that cannot be opened, as the loader repeats it."""
    why = tried[-1].why if tried else NO_FILE
    return None if why == NO_FILE or why.startswith(OTHER_MACHINE) else why[:1].upper() + why[1:]
