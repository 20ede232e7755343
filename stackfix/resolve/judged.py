"""What the symbols of a published extension wheel say against a torch build, whatever its name or metadata say.

"Cannot load" is said only of what was read: this very wheel by its hash, else the wheels of its release for the same
machine where all of them agree, and a torch minor that is in the almanac.
"""

from __future__ import annotations

from collections.abc import Sequence

from stackfix.abi.records import Books, JudgedWheel
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import LINUX_MACHINES
from stackfix.quick import dataclass
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
    if file.torch_path is not None:
        return ()                       # the release's wheels that were read are of the default index: another build
    return of_release(books, normalise(file.project), file.version, machine_of(file.filename), build)


def of_release(books: Books, package: str, version: str, machine: str, build: TorchBuild) -> tuple[Judgement, ...]:
    """Of all wheels of one release for a machine that were read."""
    parsed = parse_version(version)
    return tuple(
        Judgement(wheel=wheel, itself=False, against=_against(books, wheel, build))
        for wheel in books.judged.releases(package, str(parsed) if parsed is not None else version)
        if machine_of(wheel.file) == machine
    )


def untold(books: Books, wheel: JudgedWheel, build: TorchBuild) -> str:
    """Why what was read of a wheel does not tell whether it can load with a build; "" where it does."""
    torch = f"torch {build.version}"
    if wheel.string_abi is not None and STRING_ABI.get(wheel.string_abi) is not build.cxx11_abi:
        return f"its names are of the {wheel.string_abi} C++ ABI, and nobody read that of {torch}" \
            if build.cxx11_abi is None else "its names are of both C++ ABIs"
    if build.cuda == query.CPU and wheel.cuda:
        return f"its wheel is for CUDA, and the almanac has no CPU build of {torch}"
    if build.version not in read_releases(books, build):
        return f"nobody read {torch}"
    return ""


def machine_for(build: TorchBuild) -> str:
    """`x86_64` or `aarch64`, as wheels spell it; the platform itself where it is no Linux."""
    return LINUX_MACHINES.get(build.platform, build.platform)


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
    if wheel.loads(build.version) or build.version not in read_releases(books, build):
        return ""
    minor, minors = query.minor_of(build.version), [release.minor for release in books.torch.releases]
    able = versions_text([each for each in wheel.torch if each in minors], minors[::-1])
    single = [each for each in wheel.torch if each not in minors]
    if wheel.torch:
        able = f"its symbols can load with torch {' and '.join(filter(None, (able, *single)))} only"
    else:
        able = f"its symbols can load with no torch from {minors[0]} to {minors[-1]}"
    lacking = [name for name in wheel.because if minor not in books.torch.minors(name)]
    return f"{declared(wheel)}, {able}{named(lacking or wheel.because)}"


def read_releases(books: Books, build: TorchBuild) -> tuple[str, ...]:
    """The releases of a build's minor that the almanac has."""
    minor = query.minor_of(build.version)
    return next(((each.version, *each.patches) for each in books.torch.releases if each.minor == minor), ())


def named(names: Sequence[str]) -> str:
    """The symbols for a reader, the first of them also as the file has it, which is what a search finds."""
    from stackfix.abi.mangled import function_of  # a parser, which most locks need not load

    readable = list(dict.fromkeys(function_of(name) or name for name in names))
    if readable and readable[0] != names[0]:
        readable[0] += f" ({names[0]})"
    return f": {', '.join(readable)}" if readable else ""


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

