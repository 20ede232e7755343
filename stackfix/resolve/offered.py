"""What a release has files for, where none fits the target: words for a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from stackfix.platforms import PLATFORMS, platform_of_wheel
from stackfix.resolve.records import Target
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile

NEWEST = {"glibc": "2.99", "macos": "99.0"}     # newer than any that a wheel names
_GLIBC, _MACOS = re.compile(r"manylinux_2_(\d+)_(\w+)"), re.compile(r"macosx_(\d+)_(\d+)_(?:arm64|universal2)")


def offered_words(target: Target, files: Sequence[IndexFile]) -> str:
    """` (its wheels are for 3.8, 3.9)`, or for other platforms, or for newer systems, as far as wheel names tell."""
    wheels = [file.filename for file in files if file.is_wheel]
    platforms = {platform_of_wheel(name) for name in wheels}
    if wheels and not {target.platform, None} & platforms:
        return f" (its wheels are for {', '.join(sorted(filter(None, platforms)))})"
    newer = newer_system_words(target, wheels)
    if newer:
        return newer
    tags = {tuple(name[:-4].split("-")[-3:-1]) for name in wheels if name.count("-") >= 4}
    required = {file.requires_python for file in files if file.requires_python}
    if tags and {tag for tag, _ in tags} != {"py3"}:
        ordered = sorted(tags, key=lambda each: (len(each[0]), each))
        return f" (its wheels are for {', '.join(dict.fromkeys(_python_words(*each) for each in ordered))})"
    if required:
        return f" (it requires Python {', '.join(sorted(required))})"
    return ""


def newer_system_words(target: Target, wheels: Sequence[str]) -> str:
    """` (its wheels need glibc 2.31 or newer: --glibc 2.31)`, where nothing else stands in the way of some of them."""
    view = _on_the_newest(target)
    floors = [floor for name in wheels if view.rank(name) is not None and (floor := _floor(target, name)) is not None]
    if not floors:
        return ""
    text = ".".join(map(str, min(floors)))
    system, option = ("macOS", "macos") if PLATFORMS[target.platform].system == "Darwin" else ("glibc", "glibc")
    return f" (its wheels need {system} {text} or newer: --{option} {text})"


@lru_cache(maxsize=16)
def _on_the_newest(target: Target) -> TargetView:
    return TargetView(replace(target, **NEWEST))


def _floor(target: Target, filename: str) -> tuple[int, int] | None:
    """The oldest glibc or macOS that a wheel is for on the target's platform."""
    machine = PLATFORMS[target.platform].wheel
    found: list[tuple[int, int]] = []
    for tag in filename[:-4].rpartition("-")[2].split("."):
        glibc, macos = _GLIBC.fullmatch(tag), _MACOS.fullmatch(tag)
        if glibc is not None and glibc[2] == machine:
            found.append((2, int(glibc[1])))
        elif macos is not None:
            found.append((int(macos[1]), int(macos[2])))
    return min(found, default=None)


def _python_words(tag: str, abi: str) -> str:
    """`3.8` for cp38, `3.8 and newer` with abi3; other tags as they are."""
    digits = tag.removeprefix("cp")
    if not tag.startswith("cp") or not digits.isdigit() or len(digits) < 2:
        return tag
    return f"{digits[0]}.{digits[1:]}{' and newer' if 'abi3' in abi.split('.') else ''}"
