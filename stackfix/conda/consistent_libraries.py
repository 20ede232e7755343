"""The rules about CUDA's libraries: cuDNN, nvJitLink, and the others, whose versions are only told."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.conda.bounds import lines_for
from stackfix.conda.matching import admits
from stackfix.conda.pair import Pair
from stackfix.conda.records import Departure
from stackfix.conda.sides import Side
from stackfix.matrix import query
from stackfix.resolve.limits import limits_of
from stackfix.resolve.pep508 import normalise, parse_version

CUDNN, NVJITLINK = "nvidia-cudnn", "nvidia-nvjitlink"


def cudnn(pair: Pair) -> Iterator[Departure]:
    """The same major on both sides, and on the channels' what their torch asks for."""
    if pair.conda.cuda in {None, query.CPU}:
        return
    outside = next(_outside(pair), None)
    if outside is not None:
        yield outside
    pip, conda = pair.pip.cudnn if pair.pip else None, pair.conda.cudnn
    if conda is None and pair.target.torch is not None:
        yield pair.breaks("cudnn", pip, None, "no package brings cuDNN, and it is not linked into this torch")
        return
    same = _same_linked if pair.conda.cudnn_linked else _same_version
    if pip is None or conda is None or outside is not None or same(pip, conda):
        return
    if _major(pip) != _major(conda):
        yield pair.breaks("cudnn", pip, conda, "the majors differ, whose libraries are not the same", pair.conda.source)
        return
    project = pair.conda.library(CUDNN)
    reason, source = (
        ("it is linked into this torch", pair.conda.source) if pair.conda.cudnn_linked
        else pair.why_not(project, pip) if project is not None else ("", "")
    )
    yield pair.told("cudnn", pip, conda, reason, source)


def _outside(pair: Pair) -> Iterator[Departure]:
    """A cuDNN that the channel's torch does not ask for."""
    torch = pair.target.torch
    if torch is None or torch.cudnn_linked:
        return
    there = {record.name: record for record in pair.target.records if record.name in {"cudnn", "libcudnn"}}
    for line in lines_for(torch.record.depends, *there):
        record = there[line.name]
        if admits(line.text, record) is False:
            yield pair.breaks(
                "cudnn", pair.pip.cudnn if pair.pip else None, record.version,
                f"torch {torch.record.version} needs {line.text}", torch.record.file_name)


def nvjitlink(pair: Pair) -> Iterator[Departure]:
    """On each side new enough for what uses it; where the two differ, that is told."""
    broken = [*_floors(pair, pair.conda, conda=True)]
    if pair.pip is not None:
        broken += _floors(pair, pair.pip, conda=False)
    yield from broken
    if pair.pip is None:
        return
    project = pair.pip.library(NVJITLINK)
    pip = pair.pip.versions.get(project) if project is not None else None
    conda = pair.conda.versions.get(project) if project is not None else None
    if project is not None and pip is not None and conda is not None and not _same_version(pip, conda):
        yield pair.told("nvjitlink", pip, conda, *pair.why_not(project, pip))


def _floors(pair: Pair, side: Side, *, conda: bool) -> Iterator[Departure]:
    book = pair.books.nvidia if pair.books is not None else None
    for package, version in sorted(side.versions.items()):
        if not package.startswith("nvidia-") or parse_version(version) is None:
            continue
        for limit in limits_of(pair.matrix, book, package, version):
            if not normalise(limit.name).startswith(NVJITLINK):
                continue
            found = side.versions.get(limit.name)
            there = parse_version(found) if found is not None else None
            if there is not None and limit.admits(there):
                continue
            record = side.records.get(package)
            name = f"{record.name} {record.version}" if record is not None else f"{package} {version}"
            reason = f"{name} needs {limit.rule.needs}: {limit.rule.why}"
            yield pair.breaks("nvjitlink", None if conda else found, found if conda else None, reason,
                              limit.rule.source)


def libraries(pair: Pair) -> Iterator[Departure]:
    """CUDA's other libraries, each with the reason why the versions differ."""
    if pair.pip is None:
        return
    for project, version in sorted(pair.pip.versions.items()):
        record = pair.conda.records.get(project)
        if not project.startswith("nvidia-") or project.startswith((CUDNN, NVJITLINK)) or record is None:
            continue
        found = pair.conda.versions.get(project)
        if found is not None and not _same_version(version, found):
            yield pair.told(record.name, version, found, *pair.why_not(project, version))


def _same_version(one: str, other: str) -> bool:
    first, second = parse_version(one), parse_version(other)
    return first is not None and first == second


def _same_linked(one: str, linked: str) -> bool:
    """Equal as far as both are told: a build string has 8.9.2 where the package is 8.9.2.26."""
    return f"{one}.".startswith(f"{linked}.") or _same_version(one, linked)


def _major(version: str) -> int | None:
    parsed = parse_version(version)
    return parsed.major if parsed is not None else None
