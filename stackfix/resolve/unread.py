"""Versions of which nobody read a wheel, of packages of which other versions were read.

Releases of a package follow torch's. So a version that is newer than one whose wheels want a later torch than this one
cannot load with it either, nor one that is older than one whose wheels want an earlier torch. What lies between a
release for an earlier torch and one for a later torch may well be the one for this torch: nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.abi.records import Books, JudgedWheel
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.resolve.judged import cannot_load, judgements, machine_of, of_release, read_releases
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.needs import Candidate, Exclusion
from stackfix.resolve.pep508 import normalise, parse_specifier, parse_version
from stackfix.resolve.spans import versions_text

TORCH = "torch"


def is_unread(books: Books | None, candidate: Candidate, build: TorchBuild) -> bool:
    """Whether nobody read a compiled wheel, though of the package others for the same machine were, and this torch."""
    return bool(_read_of_package(books, candidate, build)) and not judgements(books, candidate.files[0], build)


def neighbours_exclusion(books: Books | None, candidate: Candidate, build: TorchBuild) -> Exclusion | None:
    """Why the read versions next to one that was not read rule it out, or None."""
    wheels = _read_of_package(books, candidate, build)
    if books is None or not wheels or judgements(books, candidate.files[0], build):
        return None
    near = _next_to(wheels, candidate.version)
    machine = machine_of(candidate.files[0].filename)
    if not near or not all(
        cannot_load(of_release(books, candidate.name, each.version, machine, build)) for each in near
    ) or not any(_leads_away(each, candidate.version, build) for each in near):
        return None
    able = "; ".join(f"{each.version} with {_able(books, each)} only" for each in near)
    one = len(near) == 1
    return Exclusion(
        version=candidate.text, kind="matrix", source=SYMBOLS, rows=tuple(near), by_torch=True,
        reason=f"was not read, and its read neighbour{'' if one else 's'} {' and '.join(each.version for each in near)}"
               f" cannot load with torch {build.version} (by symbols {able})",
    )


def is_silent(matrix: Matrix, candidate: Candidate, on_torch: Iterable[SpecifierSet]) -> bool:
    """Whether neither metadata nor the matrix says up to which torch a version was built.

    `on_torch`: what its metadata requires of torch.
    """
    row = query.companion(matrix, candidate.name, candidate.text)
    stated = parse_specifier(row.torch) if row is not None and row.torch is not None else None
    if any(map(bounds_above, [*on_torch, *([stated] if stated is not None else [])])):
        return False
    return not any(
        rule.confidence != "low" and normalise(rule.needs[: len(TORCH) + 1].rstrip("<>=!~ ")) == TORCH
        for rule in query.rules_for(matrix, candidate.name, candidate.text)
    )


def bounds_above(specifier: SpecifierSet) -> bool:
    """Whether a specifier names a newest version that it takes."""
    return any(part.operator in {"==", "===", "~=", "<", "<="} for part in specifier)


def _read_of_package(books: Books | None, candidate: Candidate, build: TorchBuild) -> tuple[JudgedWheel, ...]:
    """Read wheels of a compiled candidate's package for its machine, newest first; () for a torch that was not read."""
    file = candidate.files[0]
    if books is None or candidate.direct or not file.is_wheel or file.filename.endswith("-any.whl"):
        return ()
    found = books.judged.of(candidate.name)
    if not found or build.version not in read_releases(books, build):
        return ()
    machine = machine_of(file.filename)
    return tuple(wheel for wheel in found if machine_of(wheel.file) == machine)


def _next_to(wheels: Iterable[JudgedWheel], version: Version) -> list[JudgedWheel]:
    """Of the read releases that can load with any torch, the next newer one and the next older one."""
    able = [(parse_version(wheel.version), wheel) for wheel in wheels if wheel.torch]
    known = [(parsed, wheel) for parsed, wheel in able if parsed is not None]
    newer = min((entry for entry in known if entry[0] > version), key=lambda entry: entry[0], default=None)
    older = max((entry for entry in known if entry[0] < version), key=lambda entry: entry[0], default=None)
    return [entry[1] for entry in (newer, older) if entry is not None]


def _leads_away(wheel: JudgedWheel, version: Version, build: TorchBuild) -> bool:
    """Whether the version stands on the side of the wheel that is farther from this torch."""
    of_wheel, minor = parse_version(wheel.version), query.minor_of(build.version)
    first, last = (_numbers(query.minor_of(wheel.torch[place])) for place in (0, -1))
    if of_wheel is None:
        return False
    return _numbers(minor) < first if version > of_wheel else _numbers(minor) > last


def _able(books: Books, wheel: JudgedWheel) -> str:
    """`torch 2.2` or `torch 2.4 to 2.7`."""
    minors = [release.minor for release in books.torch.releases]
    whole = versions_text([each for each in wheel.torch if each in minors], minors[::-1])
    return f"torch {' and '.join(filter(None, (whole, *(each for each in wheel.torch if each not in minors))))}"


def _numbers(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))
