"""What the symbols of a published extension wheel say against a torch build, whatever its name or metadata say.

"Cannot load" is said only of what was read: this very wheel by its hash, else the wheels of its release for the same
machine where all of them agree, and a torch minor that is in the almanac.
"""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.abi.records import Books, JudgedWheel
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.needs import Exclusion
from stackfix.resolve.pep508 import normalise, parse_version
from stackfix.resolve.spans import versions_text
from stackfix.sources.records import IndexFile

STRING_ABI = {"old": False, "new": True}        # TorchBuild.cxx11_abi of a wheel's std::string


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was read that speaks of one file. `against`: in plain words; "" where it can load."""

    wheel: JudgedWheel
    itself: bool                    # the file was read; else another wheel of its release
    against: str


def judgements(books: Books | None, file: IndexFile, build: TorchBuild) -> tuple[Judgement, ...]:
    """Of the file itself where it was read, else of its release's wheels for the same machine."""
    if books is None or not file.is_wheel:
        return ()
    itself = books.judged.wheel(file.sha256) if file.sha256 is not None else None
    if itself is not None:
        return (Judgement(wheel=itself, itself=True, against=_against(books, itself, build)),)
    return of_release(books, normalise(file.project), file.version, machine_of(file.filename), build)


def of_release(books: Books, package: str, version: str, machine: str, build: TorchBuild) -> tuple[Judgement, ...]:
    """Of all wheels of one release for a machine that were read."""
    parsed = parse_version(version)
    return tuple(
        Judgement(wheel=wheel, itself=False, against=_against(books, wheel, build))
        for wheel in books.judged.releases(package, str(parsed) if parsed is not None else version)
        if machine_of(wheel.file) == machine
    )


def machine_of(filename: str) -> str:
    """`x86_64` of a wheel's name, "any" of one for every machine."""
    tag = filename.removesuffix(".whl").rpartition("-")[2]
    return next((machine for machine in ("x86_64", "aarch64") if tag.endswith(machine)), tag)


def cannot_load(found: tuple[Judgement, ...]) -> bool | None:
    """Whether all that was read speaks against it; None where its release's wheels differ, or nothing was read."""
    against = {bool(one.against) for one in found}
    return against.pop() if len(against) == 1 else None


def judged_exclusion(found: tuple[Judgement, ...], version: str, known: str | None = None) -> Exclusion | None:
    """Why the symbols rule a version out, or None. `known`: what a rule of the matrix says of the same."""
    if not cannot_load(found):
        return None
    first = found[0]
    more = [*([] if first.itself else [f"read of {first.wheel.file}"]), *([known] if known else [])]
    reason = f"{first.against} ({'; '.join(more)})" if more else first.against
    return Exclusion(
        version=version, kind="matrix", reason=reason, source=SYMBOLS, rows=(first.wheel,), by_torch=True,
    )


def _against(books: Books, wheel: JudgedWheel, build: TorchBuild) -> str:
    """What speaks against the wheel beside this torch, or ""."""
    return "; ".join(part for part in (
        _of_minor(books, wheel, build), _of_string(wheel, build), _of_cuda(wheel, build),
    ) if part)


def _of_minor(books: Books, wheel: JudgedWheel, build: TorchBuild) -> str:
    minor = query.minor_of(build.version)
    if minor in wheel.torch:
        return ""
    newest = {release.minor: release.version for release in books.torch.releases}
    # An older patch may have what the newest has no more: of it the wheel says so only where `disproved` names it.
    if minor not in newest or (newest[minor] != build.version and minor not in wheel.disproved):
        return ""
    minors = list(newest)
    if wheel.torch:
        able = f"its symbols can load with torch {versions_text(list(wheel.torch), minors[::-1])} only"
    else:
        able = f"its symbols can load with no torch from {minors[0]} to {minors[-1]}"
    names = f": {', '.join(wheel.because)}" if wheel.because else ""
    return f"{declared(wheel)}, {able}{names}"


def declared(wheel: JudgedWheel) -> str:
    """`declares torch>=2.11`, as its metadata says."""
    if wheel.declares is None:
        return "declares no torch"
    return f"declares torch{wheel.declares.removeprefix('*') or ' of any version'}"


def _of_string(wheel: JudgedWheel, build: TorchBuild) -> str:
    """That the two C++ ABIs differ: an extension for the other one lacks every function that takes a string."""
    abi = STRING_ABI.get(wheel.string_abi or "")
    if abi is None or build.cxx11_abi is None or abi is build.cxx11_abi:
        return ""
    torch = f"torch {build.version} for {build.platform} with the {'new' if build.cxx11_abi else 'old'} one"
    return f"is built with the {wheel.string_abi} C++ ABI, {torch}"


def _of_cuda(wheel: JudgedWheel, build: TorchBuild) -> str:
    if build.cuda == query.CPU or not wheel.cuda or int(build.cuda.partition(".")[0]) in wheel.cuda:
        return ""
    majors = " and ".join(str(major) for major in wheel.cuda)
    return f"is linked against libraries of CUDA {majors}, torch {build.version} is built for CUDA {build.cuda}"

