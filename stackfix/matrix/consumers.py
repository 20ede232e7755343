"""Whether other frameworks that share torch's CUDA libraries (JAX, TensorFlow, ONNX Runtime …) fit a build of torch."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from stackfix.matrix.hardware import CPU, major_of
from stackfix.matrix.records import BitsandbytesLibraries, Framework, Matrix, TorchBuild

BITSANDBYTES = "bitsandbytes"
WINDOWS = "win-64"
MINOR = 2                           # numbers of a version that cuDNN's own check compares


def consumer_misfit(
    matrix: Matrix, package: str, version: str, build: TorchBuild,
) -> tuple[str, Framework | BitsandbytesLibraries] | None:
    """Why a release cannot use the CUDA libraries of a torch build, and the row; None where nothing speaks against it.

    `package` is normalised. The reason begins with what the release is or has: "is built for CUDA 13, torch …".
    """
    if build.cuda == CPU:
        return None
    try:
        parsed = Version(version)
    except InvalidVersion:
        return None
    if package == BITSANDBYTES:
        return _of_bitsandbytes(matrix, parsed, build)
    rows = [row for row in matrix.frameworks.frameworks if canonicalize_name(row.project) == package]
    row = row_of(rows, parsed)
    if row is not None and build.platform == WINDOWS and not row.windows:
        return None
    reason = None if row is None else _of_cuda(row, build) or _of_cudnn(row, build)
    if row is None or reason is None:
        return None
    carried = "" if between(parsed, row.first, row.last) else f" (as read of {row.project} {row.first} to {row.last})"
    return f"{reason}{carried}", row


def row_of(rows: Sequence[Framework], version: Version) -> Framework | None:
    """The row of a version; of one that nobody read, the row next below, else the oldest. None: there is no row."""
    ordered = sorted(rows, key=lambda row: Version(row.first))
    below = [row for row in ordered if Version(row.first).release <= version.release]
    return below[-1] if below else next(iter(ordered), None)


def between(version: Version, first: str, last: str) -> bool:
    """Whether a version is one of `first` to `last`; each patch release of both belongs to them."""
    lower, upper = Version(first).release, Version(last).release
    return version.release[:len(lower)] >= lower and version.release[:len(upper)] <= upper


def _of_bitsandbytes(
    matrix: Matrix, version: Version, build: TorchBuild,
) -> tuple[str, BitsandbytesLibraries] | None:
    """It takes the library of torch's very CUDA."""
    for row in matrix.frameworks.bitsandbytes:
        has = row.windows if build.platform == WINDOWS and row.windows else row.cuda
        if between(version, row.first, row.last) and build.cuda not in has:
            return f"has libraries for CUDA {', '.join(has)}, torch {build.version} is for CUDA {build.cuda}", row
    return None


def _of_cuda(row: Framework, build: TorchBuild) -> str | None:
    if row.cuda == major_of(build.cuda):
        return None
    return f"is built for CUDA {row.cuda}, torch {build.version} for CUDA {build.cuda}"


def _of_cudnn(row: Framework, build: TorchBuild) -> str | None:
    """Which cuDNN it was compiled with: the one that is loaded must have the same major, and no older minor.

    One place holds cuDNN for both. An exact pin is that of an extra; what the binary itself checks is its minor.
    """
    if row.cudnn is None or build.cudnn is None:
        return None
    here = Version(build.cudnn)
    wanted = Requirement(row.cudnn)
    if wanted.specifier.contains(here, prereleases=True):
        return None
    pins = [clause.version for clause in wanted.specifier if clause.operator == "=="]
    if pins and here.major == (pinned := Version(pins[0])).major and here.release[:MINOR] >= pinned.release[:MINOR]:
        return None
    needed = f"was compiled with cuDNN {pins[0]} and needs that minor or a newer one" if pins else f"requires {wanted}"
    return f"{needed}, torch {build.version} pins {build.cudnn}"
