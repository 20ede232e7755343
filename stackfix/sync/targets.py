"""Targets as a lockfile tells them apart: their markers, and the wheels that can be theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import product

from stackfix.platforms import PLATFORMS, platform_of_wheel
from stackfix.sync.records import Interpreter

PYTHONS = tuple(f"3.{minor}" for minor in range(8, 18))
SUBDIRS = {(each.sys_platform, each.machine): each.subdir for each in PLATFORMS.values()}
INTERPRETER = re.compile(r"(?P<kind>cp|py)3(?P<minor>\d{1,3})?")
HoldsFor = Callable[[str, Interpreter], bool]
SHOWN = 200                     # characters of markers that are nobody's target here


def stand_in(python: str, platform: str) -> Interpreter:
    """An interpreter of the target, for markers. A bare minor stands for its first patch release."""
    named = PLATFORMS[platform]
    markers = {
        "implementation_name": "cpython", "implementation_version": f"{python}.0", "os_name": named.os_name,
        "platform_machine": named.machine, "platform_release": "", "platform_system": named.system,
        "platform_version": "", "python_full_version": f"{python}.0", "platform_python_implementation": "CPython",
        "python_version": python, "sys_platform": named.sys_platform}
    return Interpreter(executable="", prefix="", python=python, implementation="cpython", platform=platform,
                       externally_managed=False, has_pip=False, markers=tuple(sorted(markers.items())))


def told_environments(texts: Iterable[str], holds: HoldsFor) -> str:
    """`CPython 3.11 on linux-64 or osx-arm64; …` of a file's markers; the markers where none is of a known target."""
    texts = list(texts)
    found = [(python, each) for python in PYTHONS for each in PLATFORMS
             if any(holds(text, stand_in(python, each)) for text in texts)]
    if not found or any(not any(holds(text, stand_in(*point)) for point in product(PYTHONS, PLATFORMS))
                        for text in texts):
        markers = " or ".join(texts)
        return markers if len(markers) <= SHOWN else f"{markers[:SHOWN]}…"
    return told_targets(found)


def told_targets(points: Iterable[tuple[str, str]]) -> str:
    """`CPython 3.11 or 3.12 on linux-64; CPython 3.13 on linux-64 or osx-arm64`, Pythons of like platforms together."""
    platforms: dict[str, tuple[str, ...]] = {}
    for python, platform in points:
        platforms[python] = (*platforms.get(python, ()), platform)
    found: dict[tuple[str, ...], list[str]] = {}
    for python, several in platforms.items():
        found.setdefault(several, []).append(python)
    return "; ".join(f"CPython {' or '.join(pythons)} on {' or '.join(several)}"
                     for several, pythons in found.items())


def could_fit(filename: str, interpreter: Interpreter) -> bool:
    """Whether a wheel may be one of the interpreter's, by its name; what the name does not tell is no reason against.

    Only an installer knows all tags of a machine. This leaves out what is of another Python or another platform.
    """
    parts = filename.removesuffix(".whl").split("-")
    if not filename.endswith(".whl") or len(parts) not in {5, 6} or interpreter.implementation != "cpython":
        return True
    platform = platform_of_wheel(filename)
    if interpreter.platform in PLATFORMS and platform not in {None, interpreter.platform}:
        return False
    minor = int(interpreter.python.partition(".")[2])
    pairs = list(product(parts[-3].lower().split("."), parts[-2].lower().split(".")))
    return any(is_of_python(python, abi, minor) for python, abi in pairs)


def is_of_python(python: str, abi: str, minor: int) -> bool:
    """Whether an interpreter's and an ABI's tag can be CPython 3.`minor`'s."""
    match = INTERPRETER.fullmatch(python)
    if match is None:
        return False
    if match["minor"] is None:
        return match["kind"] == "py" or abi == "abi3"
    own = int(match["minor"])
    return own <= minor if match["kind"] == "py" or abi == "abi3" else own == minor
