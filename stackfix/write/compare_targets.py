"""What two pylocks would install on a target that both are for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import prod
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName

from stackfix.platforms import PLATFORMS
from stackfix.resolve.records import Target
from stackfix.resolve.target import TargetView

ENVIRONMENT = re.compile(r"python_version == '(?P<python>3\.\d{1,3})' and implementation_name == 'cpython'"
                         r" and sys_platform == '(?P<system>\w+)' and platform_machine == '(?P<machine>\w+)'")
LABEL = re.compile(r"Python (?P<python>\S+) on (?P<platform>\S+)")
SUBDIRS = {(each.sys_platform, each.machine): each.subdir for each in PLATFORMS.values()}
MOST_TARGETS = 60
MOST_LETTERS = 2_000_000        # of all markers that are asked, each for each target
MOST_TAGS = 200                 # that a file name may stand for
ANY_GLIBC, ANY_MACOS = "2.99", "99.0"       # what a file needs of them is no reason to pass over it here


def targets_of(document: Mapping[str, Any]) -> dict[str, str] | None:
    """`Python 3.11 on linux-64` with its marker for each of the environments; None where one is no target's."""
    markers = document.get("environments")
    if not isinstance(markers, list) or len(markers) > MOST_TARGETS:
        return None
    found = {}
    for text in markers:
        match = ENVIRONMENT.fullmatch(text) if isinstance(text, str) else None
        subdir = SUBDIRS.get((match["system"], match["machine"])) if match else None
        if match is None or subdir is None:
            return None
        found[f"Python {match['python']} on {subdir}"] = text
    return found


def locked_otherwise(
    found: Mapping[str, Any], expected: Mapping[str, Any], targets: Collection[str],
) -> set[str] | None:
    """The names whose version or files differ on any of the targets; None where it cannot be told: all do."""
    if (letters(found) + letters(expected)) * len(targets) > MOST_LETTERS:
        return None
    names = set[str]()
    for label in targets:
        match = LABEL.fullmatch(label)
        view = TargetView(Target(python=match["python"], platform=match["platform"], glibc=ANY_GLIBC,
                                 macos=ANY_MACOS)) if match else None
        mine, theirs = (None if view is None else installed(side, view) for side in (found, expected))
        if mine is None or theirs is None:
            return None
        names |= {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
    return names


def letters(document: Mapping[str, Any]) -> int:
    """How much there is to ask on each target."""
    packages = document.get("packages")
    return sum(len(str(package.get("marker", ""))) for package in (packages if isinstance(packages, list) else ())
               if isinstance(package, dict))


def installed(document: Mapping[str, Any], view: TargetView) -> dict[str, frozenset[str]] | None:
    """By name: versions, sources and the files that the target takes. None for an entry that cannot be read."""
    packages = document.get("packages")
    if not isinstance(packages, list):
        return None
    found: dict[str, frozenset[str]] = {}
    for package in packages:
        if not isinstance(package, dict) or not isinstance(name := package.get("name"), str):
            return None
        held = holds(package.get("marker"), view)
        if held is None:
            return None
        if held:
            found[name] = found.get(name, frozenset()) | told(package, view)
    return found


def holds(marker: object, view: TargetView) -> bool | None:
    """Whether the marker holds on the target; None where it is no marker, or one of no lock of ours."""
    if marker is None:
        return True
    if not isinstance(marker, str):
        return None
    try:
        return Marker(marker).evaluate(view.environment)
    except (ValueError, UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        return None


def told(package: Mapping[str, Any], view: TargetView) -> frozenset[str]:
    """All that is said of the package but what tells targets apart, and wheels that are another target's."""
    rest = {f"{key}={value!r}" for key, value in package.items()
            if key not in {"name", "marker", "wheels", "requires-python", "dependencies"}}
    wheels = package.get("wheels", [])
    return frozenset(rest | {repr(wheel) for wheel in (wheels if isinstance(wheels, list) else [wheels])
                             if could_take(view, wheel)})


def could_take(view: TargetView, wheel: object) -> bool:
    """Whether the target may install the wheel; so one may whose name says nothing."""
    if not isinstance(wheel, dict):
        return True
    name, url = wheel.get("name"), wheel.get("url")
    try:
        file = name if isinstance(name, str) else unquote(urlsplit(str(url)).path.rpartition("/")[2])
        several = prod(part.count(".") + 1 for part in file[:-4].split("-")[-3:])
        return not file.endswith(".whl") or several > MOST_TAGS or view.rank(file) is not None
    except ValueError:          # no address, or a number that int() refuses
        return True
