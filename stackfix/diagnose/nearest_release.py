"""The release of an extension for the torch that is there: one answer for `stackfix check` and `stackfix abi`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stackfix.abi.nearest import DECLARED, DEFAULT, FLASH, TorchThere, nearest_extension
from stackfix.abi.records import JudgedWheel, Nearest
from stackfix.diagnose.installed_torch import numbers
from stackfix.diagnose.library_needs import parsed
from stackfix.diagnose.releases import admits
from stackfix.matrix.records import Companion, Matrix, TorchBuild
from stackfix.quick import replace


class Known(NamedTuple):
    """An extension as it is there, or as a wheel has it."""

    name: str
    version: str
    file: str | None = None         # of the wheel, where it is known
    conda: bool = False             # conda builds the same release anew for each torch


def nearest_release(known: Known, there: TorchThere, cuda: str | None, matrix: Matrix,
                    judged: Iterable[JudgedWheel]) -> Nearest | None:
    """The nearest one whose symbols, file name or declaration fit the torch; never the one that does not.

    `cuda` is that of torch: "12.1", "12" where only the major is known, "cpu".
    """
    if known.name == FLASH:
        # of its own release another wheel, where it is known which one it is
        wheels = [each for each in matrix.flash_attn_wheels
                  if not same(known, each.version) or (known.file and each.file != known.file)]
        return nearest_extension(FLASH, known.version, there, flash=wheels)
    rows = builds_of(matrix, there, cuda)
    every = [each for each in matrix.companions if each.package == known.name]
    companions = [each for each in every if not same(known, each.version) and is_for(each, rows, there)
                  and has_cuda_of(matrix, each, there)]
    read = [] if known.conda else [each for each in judged if not same(known, each.version)
                                   and takes_cuda_of(each, every, rows)
                                   and is_admitted(matrix, known.name, each.version, there.release)]
    found = nearest_extension(known.name, known.version, there, companions=companions, judged=read,
                              others=[each.version for each in every])
    if found is not None:
        return found
    silent = sorted((each.version for each in companions if each.torch is None), key=numbers, reverse=True)
    return Nearest(package=known.name, version=silent[0], build=None, basis=DECLARED) if silent else None


def flash_line(matrix: Matrix, there: TorchThere, cuda: str | None, found: Nearest) -> str | None:
    """The lock with one of flash-attn's own wheels; None where the torch that is there cannot be locked."""
    rows = [each for each in builds_of(matrix, there, cuda) if each.index == DEFAULT]
    if not rows:
        return None
    return (f"stackfix lock --torch {rows[0].version} --cuda {rows[0].cuda} --flash-attn "
            f"{found.version.partition('+')[0]}  # there is {found.build}")


def builds_of(matrix: Matrix, there: TorchThere, cuda: str | None) -> Sequence[TorchBuild]:
    """Rows of the torch: of its own CUDA where that is known."""
    rows = [each for each in matrix.torch if each.version == there.release and each.platform == there.platform]
    exact = [each for each in rows if each.cuda == cuda]
    return exact or [each for each in rows if cuda is None or each.cuda.partition(".")[0] == cuda.partition(".")[0]]


def is_for(row: Companion, rows: Sequence[TorchBuild], there: TorchThere) -> bool:
    """Whether a release is known to be for this torch."""
    from stackfix.matrix.query import companion_fits

    if row.torch is None and not is_of_release(row, there):
        return False
    if rows:
        return any(companion_fits(row, each) is None for each in rows)
    return row.torch is None or admits(row.torch, there.release)


def is_of_release(row: Companion, there: TorchThere) -> bool:
    """Whether a release that states no torch came with this one, under its number: torchaudio does so up to 2.11."""
    return row.package == "torchaudio" and numbers(row.version)[:2] == numbers(there.release)[:2]


def has_cuda_of(matrix: Matrix, row: Companion, there: TorchThere) -> bool:
    """Whether a release is for torch's CUDA major: where it does not say, for that of the index's own torch."""
    own = next((each.cuda for each in matrix.torch if each.version == there.release and each.index == DEFAULT
                and each.platform == there.platform), None)
    told = row.cuda or own
    return there.cuda is None or told is None or told.partition(".")[0] == str(there.cuda)


def takes_cuda_of(wheel: JudgedWheel, companions: Iterable[Companion], rows: Sequence[TorchBuild]) -> bool:
    """Whether a wheel that was read is for the torch's CUDA, which some packages compare when they are imported.

    Of its torch the symbols tell.
    """
    from stackfix.matrix.query import companion_fits

    release = wheel.version.partition("+")[0]
    row = next((replace(each, torch=None) for each in companions if each.version == release), None)
    return row is None or not rows or any(companion_fits(row, each) is None for each in rows)


def is_locked_with(build: TorchBuild, known: Known, matrix: Matrix) -> bool:
    """Whether a lock takes a build beside an extension, as far as the matrix decides: by its rules and its CUDA."""
    from stackfix.matrix.query import companion_fits

    release = known.version.partition("+")[0]
    row = next((each for each in matrix.companions if (each.package, each.version) == (known.name, release)), None)
    return (row is None or companion_fits(row, build) is None) and is_admitted(matrix, known.name, release,
                                                                               build.version)


def is_admitted(matrix: Matrix, name: str, version: str, torch: str) -> bool:
    """Whether the rules of the matrix, which a lock obeys, admit a torch beside a release of a package."""
    ruled = (parsed(each.needs) for each in matrix.rules if each.package == name and admits(each.versions, version))
    return all(admits(specifier, torch) for needed, specifier in ruled if needed == "torch" and specifier)


def same(known: Known, version: str) -> bool:
    """Whether it is the release that is there already."""
    return known.version.partition("+")[0] == version.partition("+")[0]
