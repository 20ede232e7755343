"""What a simulated loader is asked, what it holds, and what it answers. Frozen; `inspect.plain` writes them as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from stackfix.inspect.records import FALSE_HASH, ElfObject, UndefinedSymbol


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProgram:
    """execve: the program, LD_PRELOAD and all that they need."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLibrary:
    """dlopen. A name without a slash is searched for with the caller's RPATH or RUNPATH (rule 3)."""

    name: str
    caller: str | None = None       # identity of the object whose code calls; None: the program
    now: bool = True                # RTLD_NOW, as Python opens extension modules and ctypes libraries
    to_global: bool = False         # RTLD_GLOBAL
    deep_bind: bool = False         # RTLD_DEEPBIND


Request: TypeAlias = StartProgram | OpenLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVia:
    """The step of the search that gave an object, and the path element of that step."""

    # "loaded name", "loaded soname", "same file", "RPATH", "LD_LIBRARY_PATH", "RUNPATH", "ld.so.cache",
    # "default folder", "path", "program" or "interpreter"
    step: str
    element: str | None = None      # the folder as it was written; "" is the current folder
    owner: str | None = None        # path of the object whose RPATH or RUNPATH it is
    hwcaps: str | None = None       # subfolder of the element


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One place that was looked at in vain, in the loader's order; hwcaps subfolders without a file are left out."""

    step: str
    element: str | None
    path: str
    why: str                        # "no such file", "wrong ELF class: ELFCLASS32", "machine aarch64" ...
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that a search comes to: the first wins, and shadows the rest."""

    path: str
    real_path: str
    identity: str
    found_via: FoundVia
    bad: str | None                 # why the loader would stop at it: "invalid ELF header"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedObject:
    """One object of a process. Its number is its place in ProcessState.objects: the order of mapping."""

    path: str                       # under which it was opened: decides $ORIGIN (rule 4)
    origin: str                     # what $ORIGIN stands for in it
    identity: str
    real_path: str
    elf: ElfObject
    names: tuple[str, ...]          # under which it was asked for; with its soname they end later searches
    loader: int | None              # who needed it first; None for the program and what was dlopened
    program: bool                   # the main program
    dlopened: bool                  # came after start-up
    found_via: FoundVia
    searchlist: tuple[int, ...] | None      # breadth first, for the program and dlopened heads
    order: tuple[int, ...] | None           # l_initfini: dependencies, or the relocation order of a head
    scope: tuple[int, ...]          # where its symbols are looked up: numbers of heads, GLOBAL_SCOPE, OWN_SCOPE


GLOBAL_SCOPE, OWN_SCOPE = -1, -2    # in LoadedObject.scope: the process's global scope; DT_SYMBOLIC's own object


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """A process between two requests."""

    objects: tuple[LoadedObject, ...] = ()
    global_scope: tuple[int, ...] = ()
    unique: tuple[tuple[str, int], ...] = ()    # STB_GNU_UNIQUE symbols in use, and who provides them (rule 9)

    def find(self, name: str) -> LoadedObject | None:
        """The first object that is called `name`, by soname, name or path."""
        return next((each for each in self.objects if name in {each.path, each.elf.soname, *each.names}), None)

    def by_identity(self, identity: str) -> LoadedObject | None:
        """The object of one file."""
        return next((each for each in self.objects if each.identity == identity), None)


class Binding(NamedTuple):
    """Which object provides a symbol of a requester; None for a weak symbol that stays null."""

    requester: int
    name: str
    version: str | None
    provider: int | None


class Bound(NamedTuple):
    """Bindings of one object, as two columns: there are tens of thousands, and few are ever asked for."""

    requester: int
    symbols: tuple[UndefinedSymbol, ...]
    providers: tuple[int | None, ...]       # of the symbol at the same place


class Edge(NamedTuple):
    """Who was asked for under which name, by whom, and what the search gave."""

    requester: int | None           # None: the request itself
    name: str
    provider: int
    found_via: FoundVia


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLibrary:
    """Nothing was found under a name."""

    name: str
    requester: str | None           # path of the object that needs it
    tried: tuple[Tried, ...]
    why: str = "No such file or directory"

    def message(self) -> str:
        """As the loader says it."""
        cannot = "" if self.why.startswith("wrong ELF class") else "cannot open shared object file: "
        return f"{self.name}: {cannot}{self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLibrary:
    """A file that the search took and the loader cannot use: the search does not go on behind it."""

    name: str
    path: str
    requester: str | None
    found_via: FoundVia
    why: str                        # in the loader's words, "invalid ELF header"; with `crash`, in ours
    crash: str | None = None        # the loader says nothing and dies: what is seen then, "Bus error"

    def message(self) -> str:
        """As the loader says it, or what is seen instead."""
        return self.crash or f"{self.path}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingVersion:
    """The library is there and lacks the version node that was linked against (rule 8)."""

    provider: str                   # path of the library, or its name where it is not loaded at all
    version: str
    requester: str
    crash: bool = False             # not loaded: the loader's own assertion stops the process

    def message(self) -> str:
        """As the loader says it."""
        version = self.version.partition(FALSE_HASH)[0]
        return f"{self.provider}: version `{version}' not found (required by {self.requester})"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingSymbol:
    """No object in scope provides a symbol."""

    name: str
    version: str | None
    file: str | None                # library that the version was linked from
    requester: str
    deferred: bool                  # bound lazily: fails when it is called, not now (rule 7)
    crash: bool = False             # the loader's own assertion: the library lost its versions (rule 8)

    def message(self) -> str:
        """As the loader says it."""
        version = f", version {self.version.partition(FALSE_HASH)[0]}" if self.version is not None else ""
        return f"{self.requester}: undefined symbol: {self.name}{version}"


Failure: TypeAlias = MissingLibrary | BadLibrary | MissingVersion | MissingSymbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """Symbols of an object that could not be read, or a preloaded name that was passed over."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What a request does. With a failure the new objects are gone from `state`; `attempted` shows how far it came."""

    state: ProcessState             # after the request
    attempted: ProcessState         # with the objects that a failed request would have left mapped
    opened: int | None              # number of the object that was asked for; None where it was not found
    loaded: tuple[int, ...]         # newly mapped objects, in order; numbers in `attempted`
    edges: tuple[Edge, ...]
    bound: tuple[Bound, ...]        # the new objects' symbols, in the order of relocation
    failures: tuple[Failure, ...]   # the loader stops at the first; the rest would come after it is cured
    deferred: tuple[MissingSymbol, ...]     # what lazy binding leaves for later
    unjudged: tuple[Unjudged, ...]

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Bindings of the new objects' symbols, made when they are asked for."""
        return tuple([Binding(requester, symbol.name, symbol.version, provider)
                      for requester, symbols, providers in self.bound
                      for symbol, provider in zip(symbols, providers, strict=True)])

    @property
    def failure(self) -> Failure | None:
        """What the loader reports; None where the request succeeds."""
        return self.failures[0] if self.failures else None
