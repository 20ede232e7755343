"""Requirement lines in one spelling, so that a file's and a row's can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stackfix.platforms import PLATFORMS

ALL_PYTHONS = tuple(f"3.{minor}" for minor in range(6, 30))

_ONLY_PYTHON = re.compile(r'python_version [<>=!]+ "[\d.]+"')


def requirements_without_extras(lines: Iterable[str]) -> frozenset[str]:
    """Requirements that no extra asks for, in one spelling, so that two files' can be compared."""
    return frozenset(spelled for line in lines if (spelled := _spelled(line)) is not None)


def requirements_for_python(lines: Iterable[str], python: str, platform: str) -> frozenset[str]:
    """`requirements_without_extras` but for those that only another Python would need.

    A release's wheels may say different things for different Pythons; a row says all of it, with markers.
    """
    plain = requirements_without_extras(lines)
    return frozenset(kept for line in plain if (kept := _needed_by(line, python, platform)) is not None)


def requirements_on(lines: Iterable[str], names: frozenset[str]) -> frozenset[str]:
    """Those of `requirements_without_extras` that are on one of `names`."""
    return frozenset(line for line in requirements_without_extras(lines) if Requirement(line).name in names)


@lru_cache(maxsize=4096)
def _spelled(line: str) -> str | None:
    """None for what an extra asks for, and for what is no requirement."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    if requirement.marker is not None and "extra" in str(requirement.marker):
        return None
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


@lru_cache(maxsize=16384)
def _needed_by(line: str, python: str, platform: str) -> str | None:
    requirement = Requirement(line)
    if requirement.marker is None:
        return line
    if holds(requirement, python, platform):
        if _ONLY_PYTHON.fullmatch(str(requirement.marker)):
            requirement.marker = None
        return str(requirement)
    return None if any(holds(requirement, other, platform) for other in ALL_PYTHONS) else line


def holds(requirement: Requirement, python: str, platform: str) -> bool:
    """Whether a requirement's marker lets it through on a platform."""
    there = PLATFORMS[platform]
    environment = {
        "python_version": python, "python_full_version": f"{python}.0", "platform_machine": there.machine,
        "platform_system": there.system, "sys_platform": there.sys_platform, "os_name": there.os_name,
    }
    return requirement.marker is None or requirement.marker.evaluate(environment)


def component_pins(lines: Iterable[str]) -> dict[str, str]:
    """Component -> version of a cuda-toolkit release's requirements; a range stands for its lower bound."""
    pins: dict[str, str] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        for clause in requirement.specifier:
            if clause.operator in {"==", ">="} and requirement.name.startswith("nvidia-"):
                pins[canonicalize_name(requirement.name)] = clause.version.removesuffix(".*")
    return pins
