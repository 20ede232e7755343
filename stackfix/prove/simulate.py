"""The imports of a planned stack in one environment: diagnose's loader over the tables of the wheels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stackfix.abi.records import Books
from stackfix.diagnose.imports import simulate_imports
from stackfix.diagnose.situation import Situation, View
from stackfix.inspect.records import ElfObject, LoaderEnvironment, LoaderMachine, UnreadableElf
from stackfix.matrix.library_records import Libraries
from stackfix.matrix.proof_records import ProofTable
from stackfix.matrix.records import Matrix
from stackfix.prove.alone import with_libraries
from stackfix.prove.base import FOLDER, Base, Demands, Noting, base_of, place_base
from stackfix.prove.planned import claims_of, environment_of, machine_of
from stackfix.prove.records import TableSource, WheelTables
from stackfix.prove.tree import Layout, Placed, PlannedFiles, place_wheel
from stackfix.resolve.records import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What a simulation is told beside the tables."""

    libraries: Libraries
    table: ProofTable
    load_matrix: Callable[[], Matrix]
    load_books: Callable[[], Books]


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """What an environment has beside the stack."""

    files: Mapping[str, Placed] = field(default_factory=dict)
    library_path: str | None = None
    preload: str | None = None
    without: tuple[str, ...] = ()   # sonames of the system


CLEAN = Met()


class Stack:
    """One target's planned tree, to be tried in environment after environment."""

    def __init__(self, target: Target, wheels: Sequence[WheelTables], source: TableSource, told: Knowledge) -> None:
        self.target, self.wheels, self.told = target, tuple(wheels), told
        self.layout = Layout(python=target.python)
        self.base = base_of(told.table, platform=target.platform, glibc=target.glibc)
        self.claims = claims_of(self.wheels, self.layout)
        self.environment = environment_of(self.wheels, self.layout, self.claims, platform=target.platform)
        self.planned: dict[str, Placed] = {}
        self.overwritten: dict[str, dict[str, None]] = {}      # by path: wheels that write it with other contents
        for each in self.wheels:
            self.lay(each, place_wheel(each, self.layout, source))

    def lay(self, wheel: WheelTables, placed: Mapping[str, Placed]) -> None:
        """Put a wheel's files over those before; of two wheels with one path an installer keeps either."""
        for path, each in placed.items():
            before = self.planned.get(path)
            if before is not None and not is_alike(before.elf, each.elf):
                names = self.overwritten.setdefault(path, {})
                names |= dict.fromkeys(f"{owner.name} {owner.version}" for owner in self.claims.owners(path))
            self.planned[path] = each

    def view(self, met: Met = CLEAN) -> View:
        """The stack in one environment, with all that its imports open."""
        demands = Demands()
        placed = {path: noting(each, demands) for path, each in {**met.files, **self.planned}.items()}
        elves = [each.elf for each in placed.values() if isinstance(each.elf, ElfObject)]
        system = dict(place_base(self.base, self.layout, demands, elves, met.without))
        files = PlannedFiles({**system, **placed})
        situation = Situation(
            environment=self.environment, machine=machine_of(self.base), configured=(),
            loader=LoaderEnvironment(machine=loader_machine(self.base), cwd="/", library_path=met.library_path,
                                     preload=met.preload))
        start, openings = simulate_imports(situation, self.told.libraries, files)
        return with_libraries(View(
            situation=situation, libraries=self.told.libraries, load_matrix=self.told.load_matrix,
            load_books=self.told.load_books, files=files, installed=self.claims, start=start, openings=openings))


def is_alike(one: ElfObject | UnreadableElf, other: ElfObject | UnreadableElf) -> bool:
    """Whether two files surely are one build."""
    return isinstance(one, ElfObject) and isinstance(other, ElfObject) and one.build_id is not None and (
        replace(one, path=other.path) == other)


def noting(placed: Placed, demands: Demands) -> Placed:
    """The same file, noting what it wants of the system."""
    return Placed(placed.elf, lambda: Noting(placed.symbols(), demands))


def loader_machine(base: Base) -> LoaderMachine:
    """glibc's loader as most distributions set it up; the order of relocation is that of the target's glibc."""
    return LoaderMachine(machine=base.machine, bits=64, system_folders=(FOLDER, "/usr/lib64"), lib="lib64",
                         platform=base.machine, sort_by_depth=base.newest["GLIBC"] >= (2, 35))
