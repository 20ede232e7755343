"""What an environment.yml asks, as a record; and what it asks of several platforms, put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS
from stackfix.request.requirements_in import IndexOptions
from stackfix.resolve.records import CondaLine, Requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One value, and the line that says it."""

    value: str
    origin: str                     # "environment.yml line 7: pytorch-cuda=12.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentInput:
    """What one environment.yml asks."""

    requirements: tuple[Requirement, ...] = ()      # of both sides
    conda_lines: tuple[CondaLine, ...] = ()         # of channels alone
    channels: tuple[str, ...] = ()                  # in order of priority; empty: it names none
    platforms: tuple[Said, ...] = ()
    pythons: tuple[Said, ...] = ()                  # PEP 440 specifiers that must all hold: "==3.11.*"
    cudas: tuple[Said, ...] = ()                    # "12.1", "12" or "cpu"
    index: IndexOptions = field(default_factory=IndexOptions)
    files: tuple[Path, ...] = ()                    # every file that was read


def merged(each: Mapping[str, EnvironmentInput]) -> EnvironmentInput:
    """What all platforms ask, and what some do, held to them."""
    first = next(iter(each.values()))
    with_cuda = [one for platform, one in each.items() if has_cuda(platform)]
    cudas = (with_cuda or [first])[0].cudas
    for platform, one in each.items():
        # macOS has no CUDA: what it says or leaves out of it is no contradiction
        own = one.cudas if has_cuda(platform) or not with_cuda else cudas
        for mine, theirs, what in ((one.pythons, first.pythons, "python"), (own, cudas, "CUDA"),
                                   (one.channels, first.channels, "channels")):
            if mine != theirs:
                raise BadInput(f"the selectors of {what}", f"say another one for {platform}",
                               "lock the platforms one by one with --platform")
    requirements: dict[Requirement, list[str]] = {}
    lines: dict[CondaLine, list[str]] = {}
    for platform, one in each.items():
        for requirement in one.requirements:
            requirements.setdefault(requirement, []).append(platform)
        for line in one.conda_lines:
            lines.setdefault(line, []).append(platform)
    return replace(
        first, cudas=cudas,
        requirements=tuple(held for requirement, where in requirements.items()
                           for held in held_requirements(requirement, where, len(each))),
        conda_lines=tuple(line if len(where) == len(each) else replace(line, platform=platform)
                          for line, where in lines.items() for platform in (where[:1] if len(where) == len(each)
                                                                            else where)))


def has_cuda(platform: str) -> bool:
    """Whether anything is built for CUDA on a platform; one that is not known may have it."""
    return platform not in PLATFORMS or PLATFORMS[platform].has_cuda


def held_requirements(requirement: Requirement, where: list[str], count: int) -> Iterator[Requirement]:
    """The requirement, by a marker on the machine where not all platforms have it."""
    if len(where) == count:
        yield requirement
        return
    known = (PLATFORMS[platform].machine if platform in PLATFORMS else platform for platform in where)
    machines = " or ".join(f"platform_machine == '{machine}'" for machine in known)
    head, semicolon, marker = requirement.text.partition(";")
    text = f"{head.rstrip()} ; ({marker.strip()}) and ({machines})" if semicolon else f"{head.rstrip()} ; {machines}"
    yield replace(requirement, text=text)
