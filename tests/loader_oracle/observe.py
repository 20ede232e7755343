"""One graph as the real ld.so loads it and as the simulator does, in the same words."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import OpenLibrary, ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.ldso_cache import choose, parse_cache
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt, Files, LoaderEnvironment, LoaderMachine
from tests.loader_oracle.build import Bench
from tests.loader_oracle.graph import Graph
from tests.loader_oracle.simulators import Faithful

BINDING = re.compile(r"binding file (.+?) \[0\] to (.+?) \[0\]: (?:normal|protected) symbol `([^']+)'(?: \[([^]]+)\])?")
Bound: TypeAlias = tuple[str, str, str, str | None]     # requester, provider, symbol, version
START_ERROR = re.compile(r".*?: (?:error while loading shared libraries|symbol lookup error|relocation error): (.*)")
DEBUG_LINE = re.compile(r"\s*\d+:\t")
OWN = ("oracle_main", "dlopen")     # relocations of the bench itself
BENCH = ("/libdriver.so", "/ld-oracle.so")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one step does."""

    error: str                      # "" where it succeeds
    objects: tuple[str, ...]        # link map after it, in order, without the program and the kernel's own
    bindings: frozenset[Bound]      # of the graph's own objects


@dataclass(frozen=True, slots=True)
class Observation:
    """What a whole graph does: start-up, then each step."""

    steps: tuple[Seen, ...]
    mapped: frozenset[str] | None   # real paths at the end; None where the program never ran


@cache
def machine() -> LoaderMachine:
    """This machine's loader, without its cache: graphs bring their own."""
    version = os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0"
    major, minor = version.split()[1].split(".")[:2]
    return replace(read_loader(Root(), machine="x86_64", glibc=(int(major), int(minor))), cache={}, preload_file=())


def environment_of(graph: Graph, folder: Path) -> dict[str, str]:
    """The variables that the graph's program is started with."""
    root = str(folder)
    found = {"LD_LIBRARY_PATH": graph.library_path, "LD_PRELOAD": graph.preload,
             "LD_BIND_NOW": "1" if graph.bind_now else None}
    return {name: value.replace("@", root) for name, value in found.items() if value is not None}


def run_real(graph: Graph, folder: Path) -> Observation:
    """Let the real loader do it."""
    environ = {**environment_of(graph, folder), "LD_DEBUG": "bindings", "LC_ALL": "C"}
    command = [str(folder / graph.program.path), str(folder / "steps")]
    done = subprocess.run(command, cwd=folder / graph.cwd, env=environ, check=False,
                          capture_output=True, text=True, timeout=60)
    if done.returncode and not done.stdout:
        return Observation((Seen(start_error(done.stderr, done.returncode), (), bindings_of(done.stderr)),), None)
    parts = re.split(r"\nORACLE (?:step \d+|between)\n", done.stderr)
    blocks, _, maps = done.stdout.removesuffix("end\n").partition("maps\n")
    steps = []
    for place, block in enumerate(("step\t\n" + blocks).split("step\t")[1:]):
        error, *lines = block.splitlines()
        objects = tuple(line.partition("\t")[2] for line in lines)
        steps.append(Seen(error, tuple(filter(counts, objects)), bindings_of(parts[2 * place - 1 if place else 0])))
    if done.returncode:     # dlopen itself ended the process
        steps.append(Seen(start_error(done.stderr, done.returncode), (), bindings_of(parts[-1])))
        return Observation(tuple(steps), None)
    return Observation(tuple(steps), frozenset(maps.splitlines()))


def start_error(text: str, status: int) -> str:
    """What the loader says when the program cannot start."""
    for line in text.splitlines():
        if DEBUG_LINE.match(line):
            continue
        found = START_ERROR.fullmatch(line)
        if found:
            return found[1]
        if "version `" in line and "not found" in line:     # at start-up all of them are reported
            return line
        if "Inconsistency detected" in line:
            return CRASH
    return f"status {status}: {text[-400:]}"


CRASH = "Inconsistency detected by ld.so"


def bindings_of(text: str) -> frozenset[Bound]:
    """Bindings that LD_DEBUG prints, those of the bench itself left out."""
    return frozenset(found for found in (
        (each[1], each[2], each[3], each[4]) for each in BINDING.finditer(text)) if of_graph(found))


def counts(path: str) -> bool:
    """Whether an object is compared: the loader moves itself about in its list, the rest stays in order of mapping."""
    return bool(path) and not path.startswith("linux-vdso") and not path.endswith("/ld-oracle.so")


def of_graph(bound: Bound) -> bool:
    """Whether a binding is of an object of the graph."""
    requester, _, name, version = bound
    if name in OWN or (version or "").startswith(("GLIBC_", "LINUX_")):     # ld.so wants malloc in its name
        return False
    return not requester.startswith(("/lib/", "/usr/", "linux-vdso")) and not requester.endswith(BENCH)


def run_simulated(graph: Graph, folder: Path, bench: Bench, kind: type[Simulator] = Faithful,
                  files: Files | None = None) -> Observation:
    """Let the simulator do it. `files`: the disk as somebody else reads it."""
    environ = environment_of(graph, folder)
    files = files or DiskFiles()
    cwd = folder / graph.cwd
    cached = cwd / "ld.so.cache"
    own = machine()
    if cached.exists():
        levels = [name.removeprefix("glibc-hwcaps/") for name in own.hwcap_subfolders if name.startswith("glibc")]
        own = replace(own, cache=choose(parse_cache(cached.read_bytes()), machine="x86_64", bits=64, hwcaps=levels))
    simulator = kind(LoaderEnvironment(
        machine=own, cwd=os.path.realpath(cwd), library_path=environ.get("LD_LIBRARY_PATH"),
        preload=environ.get("LD_PRELOAD"), bind_now="LD_BIND_NOW" in environ), files)
    state, steps = ProcessState(), list[Seen]()
    lazy = frozenset[tuple[str, str, str | None]]() if graph.bind_now else lazy_names(graph, folder)
    requests: list[StartProgram | OpenLibrary] = [StartProgram(path=str(folder / graph.program.path))]
    for step in graph.steps:
        calling = files.at(str(folder / step.caller)) if step.caller else None
        requests.append(OpenLibrary(
            name=step.name.replace("@", str(folder)), now=step.now, to_global=step.to_global, deep_bind=step.deep_bind,
            caller=calling.identity if isinstance(calling, FileAt) else None))
    for request in requests:
        outcome = simulator.load(request, state)
        failure = outcome.failure
        error = "" if failure is None else CRASH if getattr(failure, "crash", False) else failure.message()
        objects = outcome.attempted.objects
        at_once = isinstance(request, OpenLibrary) and request.now
        bound = frozenset(
            (objects[each.requester].path, objects[each.provider].path, each.name, each.version)
            for each in outcome.bindings if each.provider is not None
            and (at_once or (objects[each.requester].real_path, each.name, each.version) not in lazy))
        state = outcome.state
        held = tuple(filter(counts, (each.path for each in state.objects[1:])))
        steps.append(Seen(error, held, frozenset(filter(of_graph, bound))))
        if error == CRASH or (error and isinstance(request, StartProgram)):
            return Observation(tuple(steps), None)
    return Observation(tuple(steps), frozenset(each.real_path for each in state.objects))


def lazy_names(graph: Graph, folder: Path) -> frozenset[tuple[str, str, str | None]]:
    """(object, symbol, version) that only the PLT asks for: bound when called, and nobody calls here."""
    found: set[tuple[str, str, str | None]] = set()
    for library in (graph.program, *graph.libraries):
        if {"DF_BIND_NOW", "DF_1_NOW"} & set(library.flags):
            continue
        own = {(each.name, each.version) for each in library.defines}
        known = {each: each.version if each.file or (each.name, each.version) in own else None
                 for each in library.refers}
        data = {(each.name, version) for each, version in known.items() if not each.plt}
        real = os.path.realpath(folder / library.path)
        found |= {(real, each.name, version) for each, version in known.items()
                  if each.plt and (each.name, version) not in data}
    return frozenset(found)


def bare(error: str) -> str:
    """An error without what depends on more than the rules."""
    # the errno of "cannot open" is the last folder's, and none where every folder was known to be absent; what stands
    # before a missing version differs between start-up and dlopen
    text = error.removesuffix(": No such file or directory")
    return text[text.index("version `"):] if "version `" in text else text


def differences(real: Observation, simulated: Observation) -> list[str]:
    """What differs, in words; empty where nothing does."""
    found = []
    for place, (one, other) in enumerate(zip(real.steps, simulated.steps, strict=False)):
        where = f"step {place}" if place else "start"
        if bare(one.error) != bare(other.error):
            found.append(f"{where}: ld.so says {one.error!r}, simulated {other.error!r}")
        if one.objects != other.objects and one.error != CRASH and (one.objects or place):
            found.append(f"{where}: ld.so holds {one.objects}, simulated {other.objects}")
        # the real loader stops at the first missing symbol, the simulator binds what comes after it too
        extra = one.bindings - other.bindings if one.error else one.bindings ^ other.bindings
        if extra:
            found.append(f"{where}: bindings differ: ld.so {sorted(map(str, one.bindings - other.bindings))}, "
                         f"simulated {sorted(map(str, other.bindings - one.bindings))}")
        if found:
            return found
    if len(real.steps) != len(simulated.steps):
        found.append(f"ld.so went {len(real.steps)} steps, simulated {len(simulated.steps)}")
    if real.mapped is not None and simulated.mapped is not None:
        odd = simulated.mapped ^ {each for each in real.mapped if "locale" not in each and ".cache" not in each}
        if odd:
            found.append(f"/proc/self/maps differs: {sorted(odd)}")
    return found
