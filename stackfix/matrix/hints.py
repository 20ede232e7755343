"""What to fetch first: hints, never decisions. Imports next to nothing: it runs before everything else is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.matrix.records import Matrix, TorchBuild

_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[([^]]*)\])?")
_LINUX_ALONE = ("nvidia-", "cuda-", "triton")    # a CPU build's markers keep these to other platforms
_EXTRAS = {"cudart": "runtime"}     # of cuda-toolkit, where it is called otherwise than the package


def follow(closures: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> tuple[str, ...]:
    """The names and what their closures usually hold, each once: a hint, never a decision."""
    hinted: dict[str, None] = {}
    waiting = list(reversed(names))
    while waiting:
        name = waiting.pop()
        if name not in hinted:
            hinted[name] = None
            waiting.extend(reversed(closures.get(name, ())))
    return tuple(hinted)


def expected_projects(matrix: Matrix, names: Iterable[str], *, torch: str | None, cuda: str | None,
                      platforms: Iterable[str]) -> tuple[str, ...]:
    """Projects that a lock of torch and `names` will likely hold; a wrong guess costs one request."""
    hinted = follow(dict(matrix.closures), ("torch", *names))
    needed = torch_needs(matrix, torch=torch, cuda=cuda, platforms=dict.fromkeys(platforms))
    return tuple(dict.fromkeys((*hinted, *needed)))


def torch_needs(matrix: Matrix, *, torch: str | None, cuda: str | None, platforms: Iterable[str]) -> tuple[str, ...]:
    """Projects that the likely torch requires: the newest build of the default index that looks like what is asked.

    `torch` is a specifier; of those with several clauses nothing is understood.
    """
    found: dict[str, None] = {}
    for platform in platforms:
        build = next((build for build in matrix.torch if build.index == "default" and build.platform == platform
                      and cuda in (None, build.cuda) and _looks_like(build.version, torch)), None)
        found.update(dict.fromkeys(_needs_of(build, matrix) if build is not None else ()))
    return tuple(found)


def _looks_like(version: str, specifier: str | None) -> bool:
    if specifier is None:
        return True
    exact = specifier.removeprefix("==")
    return f"{version}.".startswith(exact[:-1]) if exact.endswith(".*") else exact == version


def _needs_of(build: TorchBuild, matrix: Matrix) -> Iterable[str]:
    packages = {component.package for component in matrix.components}
    for line in build.requires:
        match = _LINE.match(line)
        if match is None or ("Windows" in line and build.platform != "win-64"):
            continue
        if build.cuda == "cpu" and match[1].lower().startswith(_LINUX_ALONE):
            continue
        yield match[1].lower()
        for extra in (match[2] or "").split(","):
            name = _EXTRAS.get(extra, extra)
            yield from (package for package in (f"nvidia-{name}", f"nvidia-cuda-{name}") if package in packages)
