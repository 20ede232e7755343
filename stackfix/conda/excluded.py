"""Why packages of channels are not at a version that pip has, by their records: bounds that exclude it, or absence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stackfix.conda.bounds import lines_for, parse_line
from stackfix.conda.builds import PYTORCH, torch_builds
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.names import Shelf, project_version
from stackfix.conda.records import CondaRecord, CondaTarget

Reason = tuple[str, str]            # plain words, source
CUDNN = ("libcudnn", "cudnn")       # one at the same version as the other: a bound on either is one on both
FIRST = (PYTORCH, "libtorch", "pytorch-cuda", "python", "cuda-version")     # what all others follow


def why_not(
    conda: CondaTarget, name: str, version: str, shelf: Shelf | None, given_up: Mapping[str, str] | None = None,
) -> Reason:
    """Why package `name` is not at `version`, the shortest first.

    What torch or the request bounds; that channels have none such; what the version itself needs; what was learnt by a
    solve with it (`given_up`); what other packages bound, but for those that are there for this one alone, whose bounds
    follow it. `shelf` has every record of a name; without it absence cannot be told.
    """
    bounds = sorted(_excluding(conda, name, version), key=lambda found: found[0])
    if bounds and bounds[0][0] == 0:
        return bounds[0][1]
    there = [record for record in shelf(name) if _is_version(record, version)] if shelf is not None else []
    if shelf is not None and not there:
        return f"{_channels(conda)} no {name} {version} for {conda.target.platform}{_dated(conda)}", _records_of(
            conda, name)
    short = _beside(conda, there, shelf, FIRST)
    if short is not None:
        return short
    if given_up is not None and name in given_up:
        return given_up[name], _records_of(conda, name)
    if bounds:
        return bounds[0][1]
    return _beside(conda, there, shelf, ()) or _unexplained(conda, name, version, shelf)


def _unexplained(conda: CondaTarget, name: str, version: str, shelf: Shelf | None) -> Reason:
    places = _records_of(conda, name)
    if shelf is None:
        return f"none of these packages excludes {version}; whether the channels have it was not asked", places
    return f"none of these packages excludes {version}: the channels' solver took another, as it prefers newer", places


def _is_version(record: CondaRecord, version: str) -> bool:
    """conda's 2.20.5.1 is the project's 2.20.5 where a package has a part more."""
    return version in {project_version(record.version), project_version(record.version, longer=True)}


def _excluding(conda: CondaTarget, name: str, version: str) -> Iterator[tuple[int, Reason]]:
    """The bounds that exclude the version, each with how far its package is from what was asked."""
    names = CUDNN if name in CUDNN else (name,)
    away = _distances(conda, frozenset(names))
    for spec in conda.specs:
        for line in lines_for((spec.text,), *names):
            if line.version != "*" and admits_version(line.text, version) is False:
                yield 0, (f"{line.text} is asked for ({spec.origin}), which excludes {version}", spec.origin)
    for record in sorted(conda.records, key=lambda one: one.name != PYTORCH):
        if record.name not in away:
            continue
        for kind, lines in (("needs", record.depends), ("allows only", record.constrains)):
            for line in lines_for(lines, *names):
                if line.version != "*" and admits_version(line.text, version) is False:
                    text = f"{record.name} {record.version} {kind} {line.text}, which excludes {version}"
                    yield away[record.name], (text, record.file_name)


def _distances(conda: CondaTarget, without: frozenset[str]) -> dict[str, int]:
    """How many dependencies lead from what was asked to each package, by no way through `without`."""
    records = {record.name: record for record in conda.records if record.name not in without}
    asked = (parse_line(spec.text).name for spec in conda.specs)
    found = {name: 0 for name in (*FIRST, *asked) if name in records}
    ahead = list(found)
    for name in ahead:
        for line in map(parse_line, records[name].depends):
            if line.name in records and line.name not in found:
                found[line.name] = found[name] + 1
                ahead.append(line.name)
    return found


def _beside(
    conda: CondaTarget, candidates: list[CondaRecord], shelf: Shelf | None, of: tuple[str, ...], depth: int = 1,
) -> Reason | None:
    """What the candidates need that is not what is there; None where one of them lacks nothing.

    `of`: the packages that count; () for all. A part that has the candidate's own version is asked in its place.
    """
    there = {record.name: record for record in conda.records if not of or record.name in of}
    every: list[Reason] = []
    for candidate in candidates:
        found = _unmet(candidate, there)
        if found is None and depth and shelf is not None:
            parts = [line for line in map(parse_line, candidate.depends) if line.version == candidate.version]
            own = (_beside(conda, [one for one in shelf(line.name) if one.version == line.version
                                   and line.build in {None, one.build}], shelf, of, depth - 1) for line in parts)
            found = next((reason for reason in own if reason is not None), None)
        if found is None:
            return None
        every.append(found)
    # of builds for several Pythons the one for this Python says more than that the others are for others
    return next((one for one in every if " needs python" not in one[0]), every[0]) if every else None


def _unmet(candidate: CondaRecord, there: Mapping[str, CondaRecord]) -> Reason | None:
    for line in lines_for(candidate.depends, *there):
        other = there[line.name]
        if line.version != candidate.version and admits(line.text, other) is False:
            needs = f"{candidate.name} {candidate.version} needs {line.text}"
            return f"{needs}, and here it is {other.name} {other.version}", candidate.file_name
    return None


def _dated(conda: CondaTarget) -> str:
    return f" in the records bundled on {conda.snapshot.date}" if conda.snapshot is not None else ""


def builds_there(conda: CondaTarget, shelf: Shelf | None, cuda: str) -> Reason | None:
    """For which CUDA versions the channels have this torch, beside `cuda`; None where that is not known."""
    torch = conda.torch
    if torch is None or shelf is None:
        return None
    same = [
        build for build in torch_builds(shelf(PYTORCH))
        if build.record.version == torch.record.version and build.python == torch.python
    ]
    have, source = _channels(conda), _records_of(conda, PYTORCH)
    what = f"torch {torch.record.version} for Python {torch.python} on {conda.target.platform}"
    there = next((build for build in same if build.cuda == cuda), None)
    if there is not None:
        return f"{have} a build for {_words([cuda])} ({there.record.file_name}), which was not taken", source
    kinds = sorted({build.cuda for build in same}, key=_order)
    return f"{have} {what} for {_words(kinds)} only, and not for {_words([cuda])}{_dated(conda)}", source


def _channels(conda: CondaTarget) -> str:
    """`conda-forge has`, `pytorch, nvidia and conda-forge have`."""
    names = [channel.name for channel in conda.channels]
    return f"{_listed(names)} {'has' if len(names) == 1 else 'have'}"


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "nothing"


def _records_of(conda: CondaTarget, name: str) -> str:
    bundled = f", as bundled on {conda.snapshot.date}" if conda.snapshot is not None else ""
    return f"records of {name} in {_listed([channel.name for channel in conda.channels])}{bundled}"


def _order(cuda: str) -> tuple[int, ...]:
    return tuple(int(part) for part in cuda.split(".")) if cuda[:1].isdigit() else ()


def _words(kinds: list[str]) -> str:
    """`the CPU, CUDA 11.8 and CUDA 12.0`."""
    return _listed(["the CPU" if kind == "cpu" else f"CUDA {kind}" for kind in kinds])
