"""A graph of libraries to build and to load, as plain records. Paths are relative to the folder it is built in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A symbol that a library defines."""

    name: str
    version: str | None = None      # one of Library.versions
    default: bool = True            # "foo@@V1", else "foo@V1"
    binding: str = "global"         # "global", "weak" or "unique"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A relocation of a library: of a symbol of its own where it defines one of that name and version."""

    name: str
    version: str | None = None
    file: str | None = None         # soname that the version is linked from
    weak: bool = False
    plt: bool = False               # bound lazily, as functions are


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One ELF file."""

    path: str
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    flags: tuple[str, ...] = ()     # "DF_SYMBOLIC", "DF_BIND_NOW", "DF_1_NODEFLIB", "DF_1_GLOBAL" ...
    versions: tuple[str, ...] = ()  # DT_VERDEF
    defines: tuple[Definition, ...] = ()
    refers: tuple[Reference, ...] = ()      # in the order of relocation, functions behind the rest
    gnu_hash: bool = True
    machine: int = 62               # e_machine
    bits: int = 64
    garbage: bool = False           # no ELF file at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link."""

    path: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One dlopen."""

    name: str                       # "@/x" stands for the graph's folder
    caller: str | None = None       # path of the library that calls; None: the program
    now: bool = True
    to_global: bool = False
    deep_bind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """All of it. In search paths, names and variables `@` stands for the folder that the graph is built in."""

    seed: int
    program: Library
    libraries: tuple[Library, ...]
    links: tuple[Link, ...] = ()
    steps: tuple[Step, ...] = ()
    cached: tuple[str, ...] = ()    # paths that ld.so.cache holds, under their sonames
    library_path: str | None = None
    preload: str | None = None
    bind_now: bool = True
    cwd: str = "cwd"


def features(graph: Graph) -> set[str]:
    """What the graph tries, read from the graph itself."""
    libraries = (graph.program, *graph.libraries)
    sonames = [each.soname for each in graph.libraries if each.soname]
    elements = (graph.library_path or "").replace(";", ":").split(":")
    paths = [each.rpath or "" for each in libraries] + [each.runpath or "" for each in libraries]
    references = [reference for each in libraries for reference in each.refers]
    definitions = [definition for each in libraries for definition in each.defines]
    flags = {flag for each in libraries for flag in each.flags}
    known = {name for each in graph.libraries for name in (each.soname, each.path.rpartition("/")[2])}
    known |= {each.path.rpartition("/")[2] for each in graph.links}
    asked = {name for each in libraries for name in each.needed if "/" not in name} | {
        step.name for step in graph.steps if "/" not in step.name}
    found = {
        "RPATH": any(each.rpath for each in libraries),
        "RUNPATH": any(each.runpath for each in libraries),
        "RPATH and RUNPATH together": any(each.rpath and each.runpath for each in libraries),
        "program RPATH": bool(graph.program.rpath),
        "LD_LIBRARY_PATH": bool(graph.library_path),
        "empty element": bool(graph.library_path) and "" in elements,
        "semicolon": ";" in (graph.library_path or ""),
        "$ORIGIN": any("ORIGIN" in path for path in paths),
        "symbolic link": bool(graph.links),
        "several copies": len(sonames) != len(set(sonames)),
        "no soname": any(each.soname is None for each in graph.libraries),
        "version script": any(each.versions for each in libraries),
        "versioned reference": any(each.version and each.file for each in references),
        "weak definition": any(each.binding == "weak" for each in definitions),
        "weak reference": any(each.weak for each in references),
        "unique": any(each.binding == "unique" for each in definitions),
        "dlopen by name from a library": any(step.caller and "/" not in step.name for step in graph.steps),
        "dlopen by absolute path": any(step.name.startswith("@/") for step in graph.steps),
        "RTLD_LOCAL": any(not step.to_global for step in graph.steps),
        "RTLD_GLOBAL": any(step.to_global for step in graph.steps),
        "RTLD_DEEPBIND": any(step.deep_bind for step in graph.steps),
        "RTLD_LAZY": not graph.bind_now and any(not step.now for step in graph.steps),
        "RTLD_NOW": any(step.now for step in graph.steps),
        "hwcaps folder": any(each.path.count("/") > 1 for each in graph.libraries),
        "NODEFLIB": "DF_1_NODEFLIB" in flags,
        "DT_SYMBOLIC": "DF_SYMBOLIC" in flags,
        "ld.so.cache": bool(graph.cached),
        "LD_PRELOAD": bool(graph.preload),
        "missing library": bool(asked - known),
        "missing symbol": bool({each.name for each in references} - {each.name for each in definitions}),
        "foreign file": any(each.machine != 62 or each.bits != 64 for each in graph.libraries),
        "garbage": any(each.garbage for each in graph.libraries),
        "DT_HASH": any(not each.gnu_hash for each in libraries),
    }
    return {name for name, there in found.items() if there}
