"""The simulated loader on records alone: what it says of how a library was found, what was tried, and what fails."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from stackfix.diagnose.loader import Simulator, candidates, load
from stackfix.diagnose.records import (
    BadLibrary,
    FoundVia,
    LoadOutcome,
    MissingLibrary,
    MissingSymbol,
    MissingVersion,
    OpenLibrary,
    ProcessState,
    StartProgram,
    Tried,
)
from stackfix.errors import BadInput
from stackfix.inspect.elf import parse_elf
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.plain import from_json, to_json
from stackfix.inspect.records import (
    BadElf,
    ElfObject,
    FileAt,
    LoaderEnvironment,
    LoaderMachine,
    Offer,
    Refused,
    SymbolNames,
    Symbols,
    SymbolUse,
    UndefinedSymbol,
    UnreadableElf,
)
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library, Reference

MACHINE = LoaderMachine(machine="x86_64", bits=64, system_folders=("/lib64", "/usr/lib64"), lib="lib64",
                        platform="x86_64")
ENVIRONMENT = LoaderEnvironment(machine=MACHINE, cwd="/here")
INTERPRETER = "/lib64/ld.so"


@dataclass
class Written:
    """Fills records.Files with files that exist in memory only."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def add(self, path: str, **fields: object) -> Written:
        library = Library(path=path, **fields)      # type: ignore[arg-type]
        program = path.startswith("/bin/")
        self.files[path] = write(library, interpreter=INTERPRETER if program else None)
        return self

    def at(self, path: str) -> FileAt | Refused | None:
        if path in self.refused:
            return self.refused[path]
        real = self.links.get(path, path)
        if real not in self.files:
            return None
        elf: ElfObject | UnreadableElf
        try:
            elf = parse_elf(self.files[real], real)
        except BadElf as error:
            elf = UnreadableElf(path=real, reason=error.reason)
        return FileAt(path=path, real_path=real, identity=real, elf=elf)

    def symbols(self, file: FileAt) -> Symbols:
        if file.real_path in self.broken:
            raise BadElf(file.path, "hash chains without end")
        return Without(MappedSymbols(self.files[file.real_path], file.path))


@dataclass
class Without:
    """Symbols without the call of dlopen that each written file holds."""

    inner: MappedSymbols

    def undefined(self) -> Sequence[UndefinedSymbol]:
        return [each for each in self.inner.undefined() if each.name != "dlopen"]

    def unique(self) -> Sequence[UndefinedSymbol]:
        return self.inner.unique()

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        return self.inner.offered(names)

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        return self.inner.uses(names)


@pytest.fixture
def world() -> Written:
    return Written().add(INTERPRETER, soname="ld.so").add("/bin/program")


def started(world: Written, environment: LoaderEnvironment = ENVIRONMENT) -> ProcessState:
    outcome = load(StartProgram(path="/bin/program"), ProcessState(), environment, world)
    assert outcome.failure is None, outcome.failure
    return outcome.state


def opened(
    world: Written, name: str, environment: LoaderEnvironment = ENVIRONMENT, *, keep_going: bool = False,
) -> LoadOutcome:
    return load(OpenLibrary(name=name), started(world, environment), environment, world, keep_going=keep_going)


def test_every_answer_says_how_it_was_found(world: Written) -> None:
    world.add("/a/libtop.so", soname="libtop.so", needed=("libr.so", "libv.so", "libu.so", "libc.so", "libd.so"),
              runpath="$ORIGIN/run")
    world.add("/var/libv.so").add("/a/run/libu.so").add("/lib64/libd.so").add("/cached/libc.so")
    world.add("/var/glibc-hwcaps/v9/libr.so")
    machine = replace(MACHINE, cache={"libc.so": "/cached/libc.so"}, hwcap_subfolders=("glibc-hwcaps/v9",))
    environment = replace(ENVIRONMENT, machine=machine, library_path="/var/:/other")
    outcome = opened(world, "/a/libtop.so", environment)
    assert outcome.failure is None
    assert {each.name: each.found_via for each in outcome.edges} == {
        "/a/libtop.so": FoundVia(step="path"),
        "libr.so": FoundVia(step="LD_LIBRARY_PATH", element="/var", hwcaps="glibc-hwcaps/v9"),
        "libv.so": FoundVia(step="LD_LIBRARY_PATH", element="/var"),
        "libu.so": FoundVia(step="RUNPATH", element="/a/run", owner="/a/libtop.so"),
        "libc.so": FoundVia(step="ld.so.cache", element="/cached/libc.so"),
        "libd.so": FoundVia(step="default folder", element="/lib64"),
    }


def test_a_miss_says_what_was_tried_in_order(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libx.so",), rpath="$ORIGIN:/r").add("/var/libx.so", machine=183)
    outcome = opened(world, "/a/libtop.so", replace(ENVIRONMENT, library_path=":/var"))
    assert outcome.failures == (MissingLibrary(name="libx.so", requester="/a/libtop.so", tried=(
        Tried(step="RPATH", element="/a", path="/a/libx.so", why="no such file", owner="/a/libtop.so"),
        Tried(step="RPATH", element="/r", path="/r/libx.so", why="no such file", owner="/a/libtop.so"),
        Tried(step="LD_LIBRARY_PATH", element="", path="libx.so", why="no such file"),
        Tried(step="LD_LIBRARY_PATH", element="/var", path="/var/libx.so", why="machine aarch64"),
        Tried(step="default folder", element="/lib64", path="/lib64/libx.so", why="no such file"),
        Tried(step="default folder", element="/usr/lib64", path="/usr/lib64/libx.so", why="no such file"),
    )),)
    assert outcome.failures[0].message() == "libx.so: cannot open shared object file: No such file or directory"
    assert outcome.state == started(world, replace(ENVIRONMENT, library_path=":/var"))


def test_what_a_winner_shadows(world: Written) -> None:
    world.add("/a/libtop.so", runpath="/good").add("/bad/libx.so").add("/good/libx.so").add("/lib64/libx.so")
    environment = replace(ENVIRONMENT, library_path="/bad")
    outcome = opened(world, "/a/libtop.so", environment)
    found = candidates("libx.so", outcome.opened, outcome.state, environment, world)
    assert [(each.path, each.found_via.step) for each in found] == [
        ("/bad/libx.so", "LD_LIBRARY_PATH"), ("/good/libx.so", "RUNPATH"), ("/lib64/libx.so", "default folder")]


def test_a_refusal_other_than_permission_gives_up_the_list(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libx.so",)).add("/two/libx.so").add("/lib64/libx.so")
    environment = replace(ENVIRONMENT, library_path="/one:/two")
    world.refused["/one/libx.so"] = Refused(path="/one/libx.so", reason="permission denied", ends_list=False)
    assert opened(world, "/a/libtop.so", environment).edges[-1].found_via.element == "/two"
    world.refused["/one/libx.so"] = Refused(path="/one/libx.so", reason="too many links", ends_list=True)
    assert opened(world, "/a/libtop.so", environment).edges[-1].found_via.element == "/lib64"


@pytest.mark.parametrize(("reason", "why"), [
    ("permission denied", "Permission denied"),
    ("too many levels of symbolic links", "Too many levels of symbolic links"),
])
def test_the_kernel_s_word_for_a_path_that_cannot_be_opened(world: Written, reason: str, why: str) -> None:
    world.refused["/one/libx.so"] = Refused(path="/one/libx.so", reason=reason, ends_list=True)
    failure = opened(world, "/one/libx.so").failure
    assert failure is not None
    assert failure.message() == f"/one/libx.so: cannot open shared object file: {why}"
    failure = opened(world, "libx.so", replace(ENVIRONMENT, library_path="/one")).failure
    assert failure is not None      # of a name, only what the last folder said
    assert failure.message() == "libx.so: cannot open shared object file: No such file or directory"


def test_rubbish_on_the_path_ends_the_search(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libx.so",)).add("/lib64/libx.so")
    world.files["/one/libx.so"] = b"GROUP ( /lib64/libx.so ) is what a linker script looks like, and no ELF file"
    outcome = opened(world, "/a/libtop.so", replace(ENVIRONMENT, library_path="/one"))
    assert outcome.failures == (BadLibrary(
        name="libx.so", path="/one/libx.so", requester="/a/libtop.so", why="invalid ELF header",
        found_via=FoundVia(step="LD_LIBRARY_PATH", element="/one")),)


def test_setuid_programs_ignore_the_variables(world: Written) -> None:
    world.add("/bin/program", needed=("libx.so",)).add("/var/libx.so").add("/lib64/libx.so").add("/var/pre.so")
    environment = replace(ENVIRONMENT, library_path="/var", preload="/var/pre.so")
    assert [each.path for each in started(world, environment).objects[2:]] == ["/var/pre.so", "/var/libx.so"]
    assert [each.path for each in started(world, replace(environment, secure=True)).objects[2:]] == ["/lib64/libx.so"]


def test_keep_going_gathers_every_fault(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libgone.so", "libold.so", "liblost.so"), runpath="/a", refers=(
        Reference(name="there", version="V2", file="libold.so"), Reference(name="nowhere"),
        Reference(name="later", plt=True)))
    world.add("/a/libold.so", soname="libold.so", versions=("V1",), defines=(Definition(name="there", version="V1"),))
    first = opened(world, "/a/libtop.so")
    assert [type(each) for each in first.failures] == [MissingLibrary]
    every = opened(world, "/a/libtop.so", keep_going=True)
    assert [each.message() for each in every.failures] == [
        "libgone.so: cannot open shared object file: No such file or directory",
        "liblost.so: cannot open shared object file: No such file or directory",
        "/a/libold.so: version `V2' not found (required by /a/libtop.so)",
        "/a/libtop.so: undefined symbol: there, version V2",
        "/a/libtop.so: undefined symbol: nowhere",
        "/a/libtop.so: undefined symbol: later",
    ]
    assert isinstance(every.failures[2], MissingVersion)


def test_lazy_binding_defers_functions(world: Written) -> None:
    world.add("/a/libtop.so", refers=(Reference(name="later", plt=True),))
    state = started(world)
    lazy = load(OpenLibrary(name="/a/libtop.so", now=False), state, ENVIRONMENT, world)
    miss = MissingSymbol(name="later", version=None, file=None, requester="/a/libtop.so", deferred=True)
    assert (lazy.failures, lazy.deferred) == ((), (miss,))
    bound = load(OpenLibrary(name="/a/libtop.so", now=False), state, replace(ENVIRONMENT, bind_now=True), world)
    assert bound.failures == (replace(miss, deferred=False),)


def test_unreadable_symbols_are_unjudged_and_no_failure(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libx.so",), runpath="/a", refers=(Reference(name="where"),))
    world.add("/a/libx.so", defines=(Definition(name="where"),))
    world.broken.add("/a/libtop.so")
    outcome = opened(world, "/a/libtop.so")
    assert outcome.failure is None
    assert [(each.path, each.reason) for each in outcome.unjudged] == [("/a/libtop.so", "hash chains without end")]


def test_what_a_simulator_remembers_changes_no_answer(world: Written) -> None:
    """Requests from older and newer states in turn, each as a simulator of its own answers it."""
    world.add("/a/libone.so", soname="libone.so", needed=("libtwo.so",), runpath="$ORIGIN",
              refers=(Reference(name="two"), Reference(name="lost", plt=True), Reference(name="single")))
    world.add("/a/libtwo.so", soname="other.so", defines=(Definition(name="two"), Definition(name="single",
                                                                                           binding="unique")))
    world.add("/b/libthree.so", soname="libtwo.so", defines=(Definition(name="two"), Definition(name="lost")))
    world.add("/b/libfour.so", soname="libfour.so", needed=("other.so",), refers=(Reference(name="two"),))
    world.add("/b/libbad.so", soname="libbad.so", needed=("libtwo.so",), refers=(Reference(name="two"),))
    world.broken.add("/b/libbad.so")
    simulator = Simulator(ENVIRONMENT, world, keep_going=True)
    states, requests = [started(world)], [
        OpenLibrary(name=f"/{name}.so", now=now, to_global=to_global)
        for name in ("a/libone", "b/libthree", "b/libfour", "b/libbad") for now in (True, False)
        for to_global in (False, True)]
    rng = random.Random(4)      # noqa: S311 - not a secret
    for _ in range(300):
        state, request = rng.choice(states), rng.choice(requests)
        outcome = simulator.load(request, state)
        assert outcome == load(request, state, ENVIRONMENT, world, keep_going=True)
        states = [*states[-12:], rng.choice((outcome.state, outcome.attempted))]
    assert {each.path for state in states for each in state.objects} > {"/a/libone.so", "/b/libfour.so"}


def test_unreadable_symbols_are_told_of_at_each_request(world: Written) -> None:
    world.add("/a/libtop.so", soname="libtop.so").add("/a/libnext.so", needed=("libtop.so",),
                                                      refers=(Reference(name="far"),))
    world.broken.add("/a/libtop.so")
    simulator = Simulator(ENVIRONMENT, world)
    state = simulator.load(OpenLibrary(name="/a/libtop.so", to_global=True), started(world)).state
    for _ in range(2):
        outcome = simulator.load(OpenLibrary(name="/a/libnext.so"), state)
        assert [each.path for each in outcome.unjudged] == ["/a/libtop.so"]


def test_a_chain_longer_than_the_stack(world: Written) -> None:
    for place in range(1500):
        world.add(f"/a/lib{place}.so", needed=(f"lib{place + 1}.so",), runpath="/a")
    world.add("/a/lib1500.so")
    assert len(opened(world, "/a/lib0.so").loaded) == 1501


def test_records_survive_json(world: Written) -> None:
    world.add("/a/libtop.so", needed=("libx.so", "libgone.so"), runpath="/a:/b", refers=(
        Reference(name="there", version="V1", file="libx.so"), Reference(name="perhaps", weak=True)))
    world.add("/a/libx.so", soname="libx.so", versions=("V1",), defines=(
        Definition(name="there", version="V1"), Definition(name="one", binding="unique")))
    outcome = opened(world, "/a/libtop.so", replace(ENVIRONMENT, library_path="/v"), keep_going=True)
    assert outcome.failures
    assert outcome.bindings
    again = from_json(json.loads(json.dumps(to_json(outcome))), LoadOutcome)
    assert again == outcome
    environment = replace(ENVIRONMENT, machine=replace(MACHINE, cache={"libc.so": "/c"}))
    assert from_json(json.loads(json.dumps(to_json(environment))), LoaderEnvironment) == environment
    follow_up = load(OpenLibrary(name="/a/libx.so"), again.attempted, ENVIRONMENT, world)
    assert follow_up.loaded == ()


@pytest.mark.parametrize("value", [
    None, [], "x", {"is": "Other"}, {"is": "FoundVia"}, {"is": "FoundVia", "step": 3, "element": None, "owner": None,
                                                        "hwcaps": None},
    {"is": "FoundVia", "step": "x", "element": None, "owner": None, "hwcaps": None, "more": 1},
])
def test_json_that_is_no_record_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="FoundVia"):
        from_json(value, FoundVia)
