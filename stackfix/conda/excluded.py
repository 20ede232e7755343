"""Why packages of channels are not at a version that pip has, by their records: bounds that exclude it, or absence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.bounds import lines_for
from stackfix.conda.builds import PYTORCH, torch_builds
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.names import Shelf, project_version
from stackfix.conda.records import CondaRecord, CondaTarget

Reason = tuple[str, str]            # plain words, source
CUDNN = ("libcudnn", "cudnn")       # one at the same version as the other: a bound on either is one on both


def why_not(conda: CondaTarget, name: str, version: str, shelf: Shelf | None) -> Reason:
    """Why package `name` is not at `version`: the first bound that excludes it, else that channels have none such.

    `shelf` has every record of a name; without it absence cannot be told.
    """
    found = next(_excluding(conda, name, version), None)
    if found is not None:
        return found
    places = _records_of(conda, name)
    if shelf is None:
        return f"none of these packages excludes {version}; whether the channels have it was not asked", places
    there = [record for record in shelf(name) if _is_version(record, version)]
    if not there:
        return f"{_channels(conda)} no {name} {version} for {conda.target.platform}", places
    found = next(_beside(conda.records, there), None)
    return found or (f"none of these packages excludes {version}, and the channels' solver took another", places)


def _is_version(record: CondaRecord, version: str) -> bool:
    """conda's 2.20.5.1 is the project's 2.20.5 where a package has a part more."""
    return version in {project_version(record.version), project_version(record.version, longer=True)}


def _excluding(conda: CondaTarget, name: str, version: str) -> Iterator[Reason]:
    names = CUDNN if name in CUDNN else (name,)
    for record in conda.records:
        for kind, lines in (("needs", record.depends), ("allows only", record.constrains)):
            for line in lines_for(lines, *names):
                if line.version != "*" and admits_version(line.text, version) is False:
                    text = f"{record.name} {record.version} {kind} {line.text}, which excludes {version}"
                    yield text, record.file_name
    for spec in conda.specs:
        for line in lines_for((spec.text,), *names):
            if line.version != "*" and admits_version(line.text, version) is False:
                yield f"{line.text} is asked for ({spec.origin}), which excludes {version}", spec.origin


def _beside(records: Iterable[CondaRecord], candidates: Iterable[CondaRecord]) -> Iterator[Reason]:
    """What the candidates themselves need that is not what is there."""
    there = {record.name: record for record in records}
    for candidate in candidates:
        for text in candidate.depends:
            for line in lines_for((text,), *there):
                other = there[line.name]
                if admits(line.text, other) is False:
                    needs = f"{candidate.name} {candidate.version} needs {line.text}"
                    yield f"{needs}, and here it is {other.name} {other.version}", candidate.file_name


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
    return f"{have} {what} for {_words(kinds)} only, and not for {_words([cuda])}", source


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
