"""Markers (PEP 508) of targets: of one alone, and what tells some of a file's targets from its others."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import combinations
from operator import attrgetter

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS, Platform
from stackfix.resolve.records import Target

Point = tuple[str, str]                 # what a marker sees of a target: ("3.11", "linux-64")
Named = Callable[[Platform], str]
COMPARISON = re.compile(r"[=!]=|[<>]=?")
NAMES: tuple[tuple[str, Named], ...] = (    # in the order in which they are preferred
    ("sys_platform", attrgetter("sys_platform")), ("platform_machine", attrgetter("machine")),
)


def environment_marker(target: Target) -> str:
    """The marker of the target's environments. A marker has no word for glibc: the wheel tags say it."""
    platform = platform_of(target.platform)
    return (f"python_version == '{target.python}' and implementation_name == 'cpython'"
            f" and sys_platform == '{platform.sys_platform}' and platform_machine == '{platform.machine}'")


def platform_of(subdir: str) -> Platform:
    """The platform's names. Raises BadInput for one that no marker is known for."""
    if subdir not in PLATFORMS:
        raise BadInput(f"--platform {subdir}", "pylock.toml has no marker for it", f"known: {', '.join(PLATFORMS)}")
    return PLATFORMS[subdir]


def point_of(target: Target) -> Point:
    """What a marker sees of the target."""
    return target.python, target.platform


def order_of(target: Target) -> tuple[int, int, str]:
    """The place of a target among those of a file, whatever order they were asked in."""
    return minor_of(target.python), list(PLATFORMS).index(target.platform), target.variant


def minor_of(python: str) -> int:
    """11 of "3.11"."""
    return int(python.partition(".")[2])


def marker_of(some: Iterable[Target], every: Iterable[Target]) -> str | None:
    """The simplest marker that holds for `some` of `every` target alone; None where these are all."""
    chosen, points = {point_of(target) for target in some}, {point_of(target) for target in every}
    if chosen == points:
        return None
    return min(forms(chosen, points), key=simplicity)


def simplicity(text: str) -> tuple[int, int, int, str]:
    """The key of the simplest marker: fewest comparisons; of as many one that names what it is for."""
    return len(COMPARISON.findall(text)), text.count("!="), -text.count("=="), text


def forms(chosen: Collection[Point], points: Collection[Point]) -> Iterator[str]:
    """Markers that hold for `chosen` alone among `points`: by one side where that is enough, else by both."""
    express = (pythons_marker, platforms_marker)
    for side in (0, 1):
        every = {point[side] for point in points}
        under = {value: frozenset(point[1 - side] for point in chosen if point[side] == value) for value in every}
        if all((point in chosen) == bool(under[point[side]]) for point in points):
            yield express[side]([value for value in every if under[value]], every)
        terms = []
        for others in sorted({frozenset(one) for one in under.values() if one}, key=sorted):
            values = [value for value in every if under[value] >= others]
            beside = {point[1 - side] for point in points if point[side] in values}
            terms.append(all_of(text for text in (express[side](values, every), express[1 - side](others, beside))
                                if text))
        yield any_of(sorted(terms))


def pythons_marker(some: Collection[str], every: Collection[str]) -> str:
    """What tells these Pythons from the others; "" for all of them."""
    ordered = sorted(every, key=minor_of)
    inside = [python in some for python in ordered]
    if all(inside):
        return ""
    edges = [index for index in range(1, len(ordered)) if inside[index] != inside[index - 1]]
    found = [any_of(f"python_version == '{python}'" for python in ordered if python in some)]
    if inside.count(False) == 1:
        found.append(f"python_version != '{ordered[inside.index(False)]}'")
    if len(edges) == 1:
        found.append(f"python_version {'<' if inside[0] else '>='} '{ordered[edges[0]]}'")
    elif len(edges) == 2 and inside[edges[0]]:
        found.append(f"python_version >= '{ordered[edges[0]]}' and python_version < '{ordered[edges[1]]}'")
    return min(found, key=simplicity)


def platforms_marker(some: Collection[str], every: Collection[str]) -> str:
    """What tells these platforms from the others; "" for all of them."""
    if set(some) == set(every):
        return ""
    atoms: dict[str, frozenset[str]] = {}
    for sign in ("==", "!="):
        for name, named in NAMES:
            for value in dict.fromkeys(named(platform_of(subdir)) for subdir in PLATFORMS if subdir in every):
                same = frozenset(subdir for subdir in every if named(platform_of(subdir)) == value)
                atoms[f"{name} {sign} '{value}'"] = same if sign == "==" else frozenset(every) - same
    for count in range(1, len(PLATFORMS) + 1):
        for texts in combinations(atoms, count):
            if frozenset[str]().union(*(atoms[text] for text in texts)) == set(some):
                return any_of(texts)
    raise AssertionError(f"{sorted(some)} among {sorted(every)}")      # each has a machine of its own


def any_of(texts: Iterable[str]) -> str:
    """The texts with `or` between them; `and` binds closer."""
    return " or ".join(texts)


def all_of(texts: Iterable[str]) -> str:
    """The texts with `and` between them."""
    terms = list(texts)
    return " and ".join(f"({text})" if " or " in text and len(terms) > 1 else text for text in terms)
