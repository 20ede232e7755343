"""Tables made from installed files, behind the protocol of those of wheels: of a written world, a real environment."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stackfix.abi.books import open_books
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt, Symbols
from stackfix.inspect.wheels import read_distribution
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.library_records import Libraries
from stackfix.matrix.load import load_matrix
from stackfix.matrix.proof_table import load_proof_table
from stackfix.prove.records import (
    BASE,
    SITE,
    Announcement,
    Fetched,
    LibraryAt,
    PlannedWheel,
    Progress,
    WheelProject,
    WheelTables,
)
from stackfix.prove.simulate import Knowledge, Stack
from stackfix.resolve.records import Target
from tests.diagnose_world import LIBRARIES, World

TARGET = Target(python="3.11", platform="linux-64", glibc="2.28")


class InstalledTables:
    """Fills TableSource from a site folder. `NAME VERSION` stands for a wheel's hash."""

    def __init__(self, site: str, root: Root) -> None:
        self.site, self.root, self.files = site, root, DiskFiles(root)
        infos = sorted(each.name for each in root.entries(site) if each.name.endswith(".dist-info"))
        self.tables = {made.sha256: made for each in infos if (made := self.read(f"{site}/{each}")) is not None}

    def read(self, info: str) -> WheelTables | None:
        """What one dist-info says."""
        found = read_distribution(self.root, self.site, info, "dist-info", [])
        record = self.root.find_text(f"{info}/RECORD", 64 << 20)
        if found is None or record is None:
            return None
        listing = sorted(path for row in csv.reader(record.splitlines()) if (path := told(row[0])) is not None)
        return WheelTables(
            sha256=f"{found.name} {found.version}", file=f"{found.name}-{found.version}.whl", basis="wheel",
            libraries=tuple(self.libraries(listing)), listing=tuple(listing),
            project=WheelProject(name=found.name, spelling=found.spelling, version=found.version,
                                 requires=found.requires, requires_python=found.requires_python, extras=found.extras,
                                 tags=found.tags))

    def libraries(self, listing: Sequence[str]) -> Iterator[LibraryAt]:
        """The shared objects among the files."""
        for path in listing:
            at = self.files.at(self.place(path)) if ".so" in path.rpartition("/")[2] else None
            if isinstance(at, FileAt):
                yield LibraryAt(path=path, elf=at.elf)

    def place(self, path: str) -> str:
        """Where it lies in the environment."""
        top, _, rest = path.partition("/")
        return f"{self.site if top == SITE else self.site.rsplit('/', 3)[0]}/{rest}"

    def wheels(self) -> tuple[WheelTables, ...]:
        return tuple(self.tables.values())

    def shipped(self, name: str) -> tuple[PlannedWheel, ...]:
        return ()

    def known(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Mapping[str, WheelTables]:
        return {each.sha256: self.tables[each.sha256] for each in wheels if each.sha256 in self.tables}

    def announce(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Announcement:
        return Announcement(wheels=(), size=0, unsized=())

    def fetch(self, wheels: Sequence[PlannedWheel], progress: Progress, *, exactly: bool = False) -> Fetched:
        return Fetched(tables=self.known(wheels))

    def symbols(self, sha256: str, path: str) -> Symbols:
        at = self.files.at(self.place(path))
        assert isinstance(at, FileAt), (sha256, path)
        return self.files.symbols(at)


def told(path: str) -> str | None:
    """A path of a RECORD as tables tell it; None for what they leave out."""
    if path.startswith("../../../"):
        rest = path.removeprefix("../../../")
        return None if rest.startswith(("bin/", "..")) else f"{BASE}/{rest}"
    return None if path.startswith(("..", "/")) or path.endswith(".pyc") else f"{SITE}/{path}"


def knowledge(libraries: Libraries | None = None) -> Knowledge:
    """What ships, or these libraries."""
    return Knowledge(libraries=libraries or load_libraries(), table=load_proof_table(), load_matrix=load_matrix,
                     load_books=open_books)


def real_stack(prefix: Path, target: Target = TARGET) -> Stack:
    """The packages of an environment on this disk, as a planned stack."""
    source = InstalledTables(str(next(prefix.glob("lib/python3*/site-packages"))), Root())
    return Stack(target, source.wheels(), source, knowledge())


def world_stack(world: World, target: Target = TARGET, libraries: Libraries = LIBRARIES) -> Stack:
    """The packages of a world, as a planned stack."""
    source = InstalledTables(world.site, Root(str(world.folder)))
    return Stack(target, source.wheels(), source, knowledge(libraries))
