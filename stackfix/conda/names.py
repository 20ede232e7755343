"""Packages of channels and projects of the index: which name is which.

Where the matrix has no row, a package and a project of one normalised name are taken to be the same: a guess, which a
record must bear out (it depends on Python, so it can hold a project's metadata), and which is marked as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stackfix.conda.bounds import parse_line
from stackfix.conda.records import CondaRecord
from stackfix.matrix.query import CPU
from stackfix.matrix.records import CondaName, CondaNames
from stackfix.resolve.pep508 import normalise, parse_version

GUESS = "the names are the same, and it depends on Python"
UNSUFFIXED_FROM = 13    # CUDA major whose toolkit projects have no suffix
# Of packages with the same releases: the one without what only a desktop needs.
PREFERRED = {"matplotlib": "matplotlib-base", "opencv-python-headless": "py-opencv", "opencv-python": "py-opencv"}

Shelf = Callable[[str], tuple[CondaRecord, ...]]        # the records that the channels have of a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """A project that a record brings with it."""

    project: str
    version: str | None             # as the project writes it; None: conda's is no version that pip could compare
    record: CondaRecord
    sure: bool                      # False: only the names are the same
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package of channels that would bring a project."""

    name: str
    sure: bool
    source: str


class NameBook:
    """The rows of conda_names.toml, looked up from both sides."""

    def __init__(self, names: CondaNames) -> None:
        self._rows = {row.package: row for row in (*names.stack, *names.other, *names.same)}
        self._none = frozenset(names.none)
        self._stack = frozenset(project for row in names.stack for project in row.projects)
        self._by_project: dict[str, list[CondaName]] = {}
        for row in (*names.stack, *names.same, *names.other):
            for project in row.projects:
                self._by_project.setdefault(project, []).append(row)

    def provided(self, records: Iterable[CondaRecord], cuda: str) -> tuple[Provided, ...]:
        """What the records bring, sorted by project and each once. `cuda`: of the environment, "cpu" for none."""
        found: dict[str, Provided] = {}
        for record in sorted(records, key=lambda one: one.name):
            for one in self._brought(record, cuda):
                before = found.get(one.project)
                if before is None or (one.sure and not before.sure):
                    found[one.project] = one
        return tuple(found[project] for project in sorted(found))

    def _brought(self, record: CondaRecord, cuda: str) -> Iterator[Provided]:
        row = self._rows.get(record.name)
        if row is not None:
            for project in of_cuda(row.projects, cuda):
                yield Provided(
                    project=project, version=project_version(record.version, longer=row.versions == "longer"),
                    record=record, sure=True, source=row.source,
                )
        elif record.name not in self._none and is_python(record):
            yield Provided(
                project=normalise(record.name), version=project_version(record.version), record=record, sure=False,
                source=GUESS,
            )

    def packages(self, project: str, cuda: str) -> tuple[Package, ...]:
        """Packages to look for in the channels, the likeliest first; those without a row are guesses."""
        project = normalise(project)
        rows = [row for row in self._by_project.get(project, ()) if project in of_cuda(row.projects, cuda)]
        rows.sort(key=lambda row: normalise(row.package) != project)
        own = sum(normalise(row.package) == project for row in rows)
        known = [Package(name=row.package, sure=True, source=row.source) for row in rows]
        guesses = [
            Package(name=name, sure=False, source=GUESS) for name in spellings(project)
            if name not in self._none and name not in self._rows
        ]
        if project in self._stack:
            return (*known, *guesses)
        return (*known[:own], *guesses, *known[own:])

    def choose(self, project: str, shelf: Shelf, cuda: str) -> Package | None:
        """The package of `packages` that the channels have for the project; None: they have none.

        Of a project that has moved to another package (build to python-build) the old one is still there: the one with
        the newest release counts.
        """
        project = normalise(project)
        found = [
            (package, records) for package in self.packages(project, cuda) if (records := shelf(package.name))
            and (package.sure or any(is_python(record) for record in records))
        ]
        if not found or project in self._stack:
            return found[0][0] if found else None
        preferred = PREFERRED.get(project)
        best = max(found, key=lambda pair: (_newest(pair[1]), pair[0].name == preferred))
        return best[0]


def _newest(records: Iterable[CondaRecord]) -> tuple[bool, object]:
    versions = [version for record in records if (version := parse_version(record.version)) is not None]
    return bool(versions), max(versions, default=0)


def of_cuda(projects: tuple[str, ...], cuda: str) -> tuple[str, ...]:
    """Of projects that differ in their CUDA suffix, those of this CUDA major; all where none has a suffix."""
    if not any("-cu" in project and project.rpartition("-cu")[2].isdigit() for project in projects):
        return projects
    if cuda == CPU:
        return ()
    major = cuda.partition(".")[0]
    suffixed = tuple(project for project in projects if project.endswith(f"-cu{major}"))
    if suffixed or int(major) < UNSUFFIXED_FROM:
        return suffixed
    return tuple(project for project in projects if not project.rpartition("-cu")[2].isdigit())


def is_python(record: CondaRecord) -> bool:
    """Whether the record can hold a project's metadata: it depends on Python."""
    return record.noarch == "python" or any(
        parse_line(line).name in {"python", "python_abi"} for line in record.depends
    )


def project_version(text: str, *, longer: bool = False) -> str | None:
    """The version as pip writes it; `longer`: conda's has one part more."""
    head, dot, _ = text.rpartition(".")
    version = parse_version(head if longer and "." in head and dot else text)
    return str(version) if version is not None else None


def spellings(project: str) -> tuple[str, ...]:
    """The names under which a channel may have the project: its dashes may be underscores or dots there."""
    return tuple(dict.fromkeys((project, project.replace("-", "_"), project.replace("-", "."))))
