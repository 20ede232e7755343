"""From a target's lock to its proof: which wheels, what is outside, which environments are tried beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stackfix.cli.check import rare_collections
from stackfix.matrix.libraries import FILES, load_libraries
from stackfix.matrix.load import load_matrix
from stackfix.matrix.proof_table import load_proof_table
from stackfix.matrix.records import Matrix
from stackfix.platforms import LINUX
from stackfix.prove.proof_records import OutsideOfProof, ProvenTarget
from stackfix.prove.prove import Prover, Subject
from stackfix.prove.records import Fetched, PlannedWheel, TableSource
from stackfix.prove.simulate import Knowledge
from stackfix.prove.surroundings import Laid, Locked, lay
from stackfix.resolve.records import LockedPackage, Target, TargetLock

SDIST = "is an sdist: what its build gives is not known before it is built"
SECOND_STEP = "is built in the second step: what that gives is not known before"
UNHASHED = "has no sha256 here, so that nothing can be known of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the proofs of one command are told beside the tables."""

    told: Knowledge
    matrix: Matrix

    def proven(self, locked: TargetLock, fetched: Fetched, source: TableSource) -> ProvenTarget:
        """The proof of one target."""
        wheels, outside = planned_of(locked)
        failed = tuple(each for each in fetched.failed if each.wheel in wheels)
        with rare_collections():
            prover = Prover(Subject(target=locked.target, wheels=wheels, outside=outside, tables=fetched.tables,
                                    failed=failed), source, self.told)
            return prover.proven(() if prover.broken else self.laid(locked, source))

    def laid(self, locked: TargetLock, source: TableSource) -> tuple[Laid, ...]:
        """The environments that are tried beside the clean one."""
        beside = Locked(cuda=locked.build.cuda, platform=locked.target.platform,
                        versions={each.name: each.version for each in locked.packages})
        return tuple(lay(row, beside, self.matrix.components, source)
                     for row in self.told.table.surroundings)


def prepare(matrix_directory: str | None) -> Prepared:
    """The matrix, its libraries and its table of environments, each read once. Raises BadInput."""
    from stackfix.cli.wiring import matrix_folder, symbol_books

    directory = matrix_folder(matrix_directory)
    matrix = load_matrix(directory)
    return Prepared(matrix=matrix, told=Knowledge(
        libraries=load_libraries(folder_with(directory, FILES)), table=load_proof_table(directory),
        load_matrix=lambda: matrix, load_books=lambda: symbol_books(directory)))


def folder_with(directory: Path | None, names: tuple[str, ...]) -> Path | None:
    """The folder where it has all these files; a copy of the matrix may have only those that decide a lock."""
    return directory if directory is not None and all((directory / name).exists() for name in names) else None


def is_simulated(target: Target) -> bool:
    """Whether it is known what the target's system does to load: Linux's."""
    return target.platform in LINUX


def planned_of(locked: TargetLock) -> tuple[tuple[PlannedWheel, ...], tuple[OutsideOfProof, ...]]:
    """The wheels of a target that an installer would take, by name, and what is none."""
    found = [planned(each) for each in locked.packages]
    return (tuple(each for each in found if isinstance(each, PlannedWheel)),
            tuple(each for each in found if isinstance(each, OutsideOfProof)))


def planned(package: LockedPackage) -> PlannedWheel | OutsideOfProof:
    """One package."""
    file = package.files[0]
    if package.step != 1 or not file.is_wheel or file.sha256 is None:
        why = SECOND_STEP if package.step != 1 else SDIST if not file.is_wheel else UNHASHED
        return OutsideOfProof(name=package.name, version=package.version, why=why)
    return PlannedWheel(name=package.name, version=package.version, file=file.filename, sha256=file.sha256,
                        url=file.url, size=file.size, requires=package.requires)
