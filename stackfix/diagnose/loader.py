"""glibc's loader as a pure function of records: which objects a request maps, from where, and who provides what.

Rules by number: docs/loader.md. Source: glibc 2.36, elf/rtld.c, dl-open.c.
"""

from __future__ import annotations

from stackfix.diagnose.loader_bind import Binder
from stackfix.diagnose.loader_map import Mapper, Stopped
from stackfix.diagnose.loader_process import Index, Mapped, Process, index_of
from stackfix.diagnose.loader_scope import SearchLists
from stackfix.diagnose.loader_search import Search
from stackfix.diagnose.records import (
    GLOBAL_SCOPE,
    OWN_SCOPE,
    BadLibrary,
    Candidate,
    FoundVia,
    LoadedObject,
    LoadOutcome,
    MissingLibrary,
    OpenLibrary,
    ProcessState,
    Request,
    StartProgram,
    Unjudged,
)
from stackfix.inspect.records import FileAt, Files, LoaderEnvironment, UnreadableElf
from stackfix.quick import replace


def load(
    request: Request, state: ProcessState, environment: LoaderEnvironment, files: Files, *, keep_going: bool = False,
) -> LoadOutcome:
    """What `request` does to a process in `state`; the outcome carries the next state.

    A program starts from an empty state. With `keep_going` a missing library or version is noted and left out, so
    that everything wrong is seen at once; the loader itself stops at the first.
    """
    return Simulator(environment, files, keep_going=keep_going).load(request, state)


KEPT = 4        # indexes of states


class Simulator:
    """One machine and environment; `load` may be called again and again."""

    def __init__(self, environment: LoaderEnvironment, files: Files, *, keep_going: bool = False) -> None:
        self.environment, self.files, self.keep_going = environment, files, keep_going
        self.search = self.make_search()
        self.lists = SearchLists()
        self._unique: tuple[tuple[tuple[str, int], ...], dict[str, int]] = ((), {})
        self._indexes: dict[int, tuple[tuple[LoadedObject, ...], Index]] = {}     # by the tuple's own identity

    def make_search(self) -> Search:
        """What looks for libraries."""
        return Search(self.environment, self.files)

    def make_binder(self, process: Process) -> Binder:
        """What binds symbols."""
        return Binder(process, self.lists)

    def unique_of(self, state: ProcessState) -> dict[str, int]:
        """The state's unique symbols by name; not made anew for each of many requests to one state."""
        if self._unique[0] is not state.unique:
            self._unique = (state.unique, dict(state.unique))
        return self._unique[1]

    def index_of(self, state: ProcessState) -> Index:
        """A new index of the state's objects: a copy where one is known, for a state follows upon another."""
        known = self._indexes.get(id(state.objects))
        if known is None:
            known = self.keep_index(state, index_of(state.objects))
        return known[1].copy()

    def keep_index(self, state: ProcessState, index: Index) -> tuple[tuple[LoadedObject, ...], Index]:
        """Remember the index of a state, and let go of the oldest."""
        kept = self._indexes[id(state.objects)] = state.objects, index
        if len(self._indexes) > KEPT:
            del self._indexes[next(iter(self._indexes))]
        return kept

    def make_loading(self, state: ProcessState) -> Loading:
        """What works one request off."""
        return Loading(self, state)

    def load(self, request: Request, state: ProcessState) -> LoadOutcome:
        """What `request` does to a process in `state`."""
        return self.make_loading(state).run(request, state)


def candidates(
    name: str, requester: int | None, state: ProcessState, environment: LoaderEnvironment, files: Files,
) -> tuple[Candidate, ...]:
    """Every file that a search for `name` would come to, in the loader's order, as if nothing were loaded under it.

    `requester` is a number in `state.objects`; None stands for a dlopen by absolute path.
    """
    process = Process(state, files, {}, Index())      # a search asks for no object by name
    asking = process.objects[requester] if requester is not None else None
    hits = Search(environment, files).hits(name, asking, process, [])
    return tuple(Candidate(path=hit.opened_as, real_path=hit.file.real_path, identity=hit.file.identity,
                           found_via=hit.via, bad=hit.bad) for hit in hits)


class Loading(Mapper):
    """One request being worked on."""

    def run(self, request: Request, state: ProcessState) -> LoadOutcome:
        """Work the request off; a failure leaves the state as it was."""
        try:
            if isinstance(request, StartProgram):
                self.start(request)
            else:
                self.open(request)
        except Stopped as stopped:
            self.failures.append(stopped.failure)
        self.failures += self.binder.missing
        attempted = self.process.freeze()
        self.simulator.keep_index(attempted, self.process.index)
        return LoadOutcome(
            state=self.rolled_back(state) if self.failures else attempted, attempted=attempted, opened=self.opened,
            loaded=tuple(range(self.process.start, len(self.process.objects))), edges=tuple(self.edges),
            bound=tuple(self.binder.bound), failures=tuple(self.failures), deferred=tuple(self.binder.deferred),
            unjudged=(*self.unjudged, *self.binder.unjudged),
        )

    def rolled_back(self, state: ProcessState) -> ProcessState:
        """The state without the new objects.

        What stays behind of a failed dlopen are the names that it gave to older objects, which end later searches,
        and the unique symbols that it bound in them.
        """
        kept = tuple((name, number) for name, number in self.process.unique_new.items() if number < self.process.start)
        return replace(state, objects=self.process.objects.renamed(),
                       unique=(*state.unique, *kept) if kept else state.unique)

    # --- start-up (rtld.c) ---

    def start(self, request: StartProgram) -> None:
        """Map the program, its interpreter, the preloaded objects and all that they need; bind."""
        program = self.map_fixed(request.path, FoundVia(step="program"), name="", program=True)
        self.opened = program.number
        if program.elf.interpreter is None:     # static: nothing is loaded
            program.searchlist = program.order = (program.number,)
            self.process.global_scope = [program.number]
            return
        interpreter = self.map_fixed(program.elf.interpreter, FoundVia(step="interpreter"),
                                     name=program.elf.interpreter, program=False)
        interpreter.new = False                 # relocates itself, before all others
        self.search_dependencies(program, self.preload(program))
        self.process.global_scope = list(program.searchlist or ())
        for object_ in self.process.objects:
            object_.scope = [GLOBAL_SCOPE]
            if "DF_SYMBOLIC" in object_.elf.flags and not object_.program:
                object_.scope.insert(0, OWN_SCOPE)
        self.check_versions(self.process.objects)
        self.relocate(program, now=False)

    def map_fixed(self, path: str, via: FoundVia, *, name: str, program: bool) -> Mapped:
        """Map what the kernel maps: the program and its interpreter."""
        file = self.simulator.files.at(self.search.absolute(path))
        if not isinstance(file, FileAt):
            raise Stopped(MissingLibrary(name=path, requester=None, tried=(),
                                         why=file.reason if file else "No such file or directory"))
        if isinstance(file.elf, UnreadableElf):
            raise Stopped(BadLibrary(name=path, path=path, requester=None, found_via=via, why=file.elf.reason,
                                     crash=file.elf.crash))
        return self.process.add(file, file.elf, name=name, path=path, cwd=self.environment.cwd, loader=None, via=via,
                                dlopened=False, program=program)

    def preload(self, program: Mapped) -> list[Mapped]:
        """Objects of LD_PRELOAD and /etc/ld.so.preload; the loader warns of what it cannot load, and goes on."""
        environment, found = self.environment, list[Mapped]()
        names = list(environment.machine.preload_file)
        if environment.preload and not environment.secure:
            names = [*environment.preload.replace(":", " ").split(), *names]
        for name in names:
            try:
                object_ = self.map(name, program, via_preload=True)
            except Stopped as stopped:
                self.unjudged.append(Unjudged(path=name, reason=f"cannot be preloaded: {stopped.failure.message()}"))
                continue
            if object_ is not program and object_ not in found:
                found.append(object_)
        return found

    # --- dlopen (dl-open.c) ---

    def open(self, request: OpenLibrary) -> None:
        """Map the object and what it needs, check versions, bind, then widen scopes."""
        head = self.map(request.name, self.caller(request), dlopened=True)
        self.opened = head.number
        if head.searchlist is None:
            self.search_dependencies(head, ())
            for object_ in self.process.objects[self.process.start:]:
                object_.scope = self.scope_for(object_, deep_bind=request.deep_bind)
            self.check_versions(self.listed(head))
            self.relocate(head, now=request.now)
            self.widen_scopes(head)
        if request.to_global and head.number not in self.process.global_scope:
            known = set(self.process.global_scope)
            self.process.global_scope += [each.number for each in self.listed(head) if each.number not in known]

    def caller(self, request: OpenLibrary) -> Mapped | None:
        """The object whose RPATH or RUNPATH a dlopen by name searches (rule 3)."""
        if "/" in request.name and "$" not in request.name:
            return None
        calling = self.process.by_identity(request.caller) if request.caller is not None else None
        return calling or self.process.program

    def scope_for(self, object_: Mapped, *, deep_bind: bool) -> list[int]:
        """Scope of a newly dlopened object: the global one, then that of the head it came with (rule 9)."""
        top = object_
        while top.loader is not None:
            top = self.process.objects[top.loader]
        if top.program:
            scope = [GLOBAL_SCOPE]
        else:
            scope = [top.number, GLOBAL_SCOPE] if deep_bind else [GLOBAL_SCOPE, top.number]
        if "DF_SYMBOLIC" in object_.elf.flags and not deep_bind:
            scope.insert(0, OWN_SCOPE)
        return scope

    def widen_scopes(self, head: Mapped) -> None:
        """Earlier dlopened objects among the dependencies see the new ones from now on. Source: update_scopes."""
        for object_ in self.listed(head):
            if not object_.new and object_.dlopened and head.number not in object_.scope:
                object_.scope.append(head.number)
