"""What a release has files for, where none fits the target: words for a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from stackfix.platforms import PLATFORMS, platform_of_wheel
from stackfix.quick import replace
from stackfix.resolve.records import Target
from stackfix.resolve.target import LEGACY_MANYLINUX, TargetView
from stackfix.sources.records import IndexFile

NEWEST = {"glibc": "2.99", "macos": "99.0"}     # newer than any that a wheel names
_GLIBC = re.compile(r"(?:manylinux_2_(\d+)|(manylinux(?:1|2010|2014)))_(\w+)", re.ASCII)
_MACOS = re.compile(r"macosx_(\d+)_(\d+)_(?:arm64|universal2)", re.ASCII)
_ALIASES = {alias: minor for minor, alias in LEGACY_MANYLINUX.items()}


def offered_words(view: TargetView, files: Sequence[IndexFile]) -> str:
    """` (its wheels are for 3.8, 3.9)`, or for other platforms, or for newer systems, as far as wheel names tell."""
    wheels = [file for file in files if file.is_wheel]
    required = {file.requires_python for file in files if not view.takes_python(file.requires_python)}
    stated = f" (it requires Python {', '.join(sorted(filter(None, required)))})" if required else ""
    newer = newer_system_words(view, wheels)
    if newer:
        return newer
    ours = [file for file in wheels if not _platforms(file) or view.target.platform in _platforms(file)]
    if wheels and not ours:
        return f" (its wheels are for {', '.join(sorted(set().union(*map(_platforms, wheels))))})"
    tags = {_tags(file)[:2] for file in ours}
    by_tags = all(_on_the_newest(view.target).rank(file.filename) is None for file in ours)
    if by_tags and {tag for tag, _ in tags} - {"py3", ""}:
        ordered = sorted(tags, key=lambda each: (len(each[0]), each))
        return f" (its wheels are for {', '.join(dict.fromkeys(_python_words(*each) for each in ordered))})"
    return stated


def newer_system_words(view: TargetView, files: Sequence[IndexFile]) -> str:
    """` (its wheels need glibc 2.31 or newer: --glibc 2.31)`, where nothing else stands in the way of some of them."""
    floors = {
        floor for file in files
        if file.is_wheel and view.rank(file.filename) is None and view.takes_python(file.requires_python)
        for floor in _floors(view.target, file)
    }
    if not floors:
        return ""
    text = ".".join(map(str, min(floors)))
    system, option = ("macOS", "macos") if PLATFORMS[view.target.platform].system == "Darwin" else ("glibc", "glibc")
    return f" (its wheels need {system} {text} or newer: --{option} {text})"


@lru_cache(maxsize=16)
def _on_the_newest(target: Target) -> TargetView:
    return TargetView(replace(target, **NEWEST))


def _floors(target: Target, file: IndexFile) -> Iterator[tuple[int, int]]:
    """The glibc or macOS of each tag by which a wheel fits the target on a newer system."""
    interpreter, abi, platforms = _tags(file)
    for tag in platforms.split("."):
        glibc, macos = _GLIBC.fullmatch(tag), _MACOS.fullmatch(tag)
        if _on_the_newest(target).rank(f"any-0-{interpreter}-{abi}-{tag}.whl") is None:
            continue
        if glibc is not None:
            yield 2, int(glibc[1]) if glibc[1] else _ALIASES[glibc[2]]
        elif macos is not None:
            yield int(macos[1]), int(macos[2])


def _tags(file: IndexFile) -> tuple[str, str, str]:
    """Interpreter, ABI and platform as a wheel's name has them; empty where it is no wheel's name."""
    parts = file.filename[:-4].lower().rsplit("-", 3)
    return (parts[1], parts[2], parts[3]) if len(parts) == 4 else ("", "", "")


def _platforms(file: IndexFile) -> set[str]:
    """`linux-64`, or the last tag where nothing is locked for any: musllinux_1_2_x86_64; nothing for `any`."""
    tags = _tags(file)[2].split(".")
    known = {platform_of_wheel(f"{tag}.whl") for tag in tags if not tag.startswith("musllinux")}
    return set(filter(None, known)) or {tags[-1]} - {"any", ""}


def _python_words(tag: str, abi: str) -> str:
    """`3.8` for cp38, `3.8 and newer` with abi3, `3.13 free-threaded` for cp313t; other tags as they are."""
    digits = tag.removeprefix("cp")
    if not tag.startswith("cp") or not digits.isdigit() or len(digits) < 2:
        return tag
    more = " and newer" if "abi3" in abi.split(".") else " free-threaded" if abi == f"{tag}t" else ""
    return f"{digits[0]}.{digits[1:]}{more}"
