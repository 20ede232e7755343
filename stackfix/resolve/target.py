"""One target: its marker environment, and which wheel files it takes in which order.

Files are told apart by splitting their name and looking the tag triple up: parsing every wheel name of a large
project page with packaging costs more than all the rest of a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.tags import compatible_tags, cpython_tags, mac_platforms
from packaging.version import InvalidVersion

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS, Platform
from stackfix.resolve.pep508 import needs_other_extra, parse_requirement, parse_specifier, parse_version
from stackfix.resolve.records import Target

OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}         # PEP 600: manylinux starts here on each architecture
OLDEST_MACOS = 11                                   # of Apple silicon
LEGACY_MANYLINUX = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # PEP 600, legacy aliases
_BUILD = re.compile(r"(\d+)(.*)")

FileRank = tuple[int, int, str]         # lower is what an installer prefers


class TargetView:
    """What a target takes. Pure look-ups with a memory; made once per target and decision."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.environment = marker_environment(target)
        self.python_full_version = self.environment["python_full_version"]
        self._ranks: dict[str, int] = {}
        self._triples: dict[str, int | None] = {}
        self._pythons: dict[str, bool] = {}
        self._applies: dict[tuple[str, str | None], bool] = {}

    def rank(self, filename: str) -> FileRank | None:
        """Sort key of a wheel file for this target, or None where it does not fit: tags first, then build number."""
        stem = filename[:-4]
        head, dash, tags = _split_tags(stem)
        if not dash:
            return None
        try:
            best = self._triples[tags]
        except KeyError:
            best = self._triples[tags] = self._best_rank(tags)
        if best is None:
            return None
        build = _BUILD.match(head.split("-", 2)[2]) if head.count("-") == 2 else None
        return (best, -int(build.group(1)), build.group(2)) if build else (best, 0, "")

    def _best_rank(self, tags: str) -> int | None:
        if not self._ranks:     # late: many targets are only asked for their markers
            self._ranks = {tag: rank for rank, tag in enumerate(supported_tags(self.target))}
        interpreters, abis, platforms = (part.split(".") for part in tags.lower().split("-"))
        ranks = (
            self._ranks.get(f"{interpreter}-{abi}-{platform}")
            for interpreter in interpreters for abi in abis for platform in platforms
        )
        return min((rank for rank in ranks if rank is not None), default=None)

    def takes_python(self, requires_python: str | None) -> bool:
        """Whether `requires_python` takes the target's Python; one that cannot be read limits nothing, as in pip."""
        if not requires_python:
            return True
        try:
            return self._pythons[requires_python]
        except KeyError:
            specifier = parse_specifier(requires_python)
            taken = specifier is None or specifier.contains(self.python_full_version, prereleases=True)
            self._pythons[requires_python] = taken
            return taken

    def applies(self, line: str, extra: str | None) -> bool:
        """Whether a requirement line holds here under `extra` (None: no extra). An unreadable line does."""
        key = (line, extra)
        try:
            return self._applies[key]
        except KeyError:
            holds = self._applies[key] = not needs_other_extra(line, extra) and self._marker_holds(line, extra)
            return holds

    def _marker_holds(self, line: str, extra: str | None) -> bool:
        requirement = parse_requirement(line)
        if requirement is None or requirement.marker is None:
            return True
        try:
            return requirement.marker.evaluate({**self.environment, "extra": extra or ""})
        except (UndefinedComparison, UndefinedEnvironmentName):
            return True         # a marker nobody can evaluate limits nothing
        except InvalidVersion:  # packaging before 26: a version compared with our empty platform_release is false
            return False


def _split_tags(stem: str) -> tuple[str, str, str]:
    """`name-version[-build]`, "-", `python-abi-platform`; the second is empty where the name is no wheel's."""
    parts = stem.rsplit("-", 3)
    if len(parts) != 4 or parts[0].count("-") not in {1, 2}:
        return "", "", ""
    return parts[0], "-", "-".join(parts[1:])


def platform_of(target: Target) -> Platform:
    """The names of the target's platform. Raises BadInput for one that is not known."""
    try:
        return PLATFORMS[target.platform]
    except KeyError:
        raise BadInput(
            f"--platform {target.platform}", "is not a platform that stackfix can lock for",
            f"known: {', '.join(PLATFORMS)}",
        ) from None


def python_minor(python: str) -> tuple[int, int]:
    """(3, 11) of "3.11". Raises BadInput for anything but a minor."""
    major, dot, minor = python.partition(".")
    if not dot or not major.isdigit() or not minor.isdigit():
        raise BadInput(f"--python {python}", "is not a Python minor", "write it as 3.11")
    return int(major), int(minor)


def marker_environment(target: Target) -> dict[str, str]:
    """PEP 508 environment of the target. A bare minor stands for its first patch release, as in uv.

    What only a running machine knows (kernel release) is empty: it steers no lock.
    """
    platform, full = platform_of(target), f"{target.python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": platform.os_name,
        "platform_machine": platform.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": platform.system,
        "platform_version": "",
        "python_full_version": full,
        "python_version": target.python,
        "sys_platform": platform.sys_platform,
        "extra": "",
    }


def platform_tags(target: Target) -> Iterator[str]:
    """Platform tags, most preferred first, in the order of packaging.tags on such a machine."""
    platform = platform_of(target)
    if platform.system == "Windows":
        return iter((f"win_{platform.wheel}",))
    if platform.system == "Darwin":
        return mac_platforms(macos_version(target.macos), platform.wheel)
    return linux_tags(target.glibc, platform.wheel)


def macos_version(macos: str) -> tuple[int, int]:
    """(14, 0) of "14.0". Raises BadInput for what is none that runs on Apple silicon."""
    version = parse_version(macos)
    if version is None or version.major < OLDEST_MACOS or version.base_version != macos or len(version.release) != 2:
        raise BadInput(f"--macos {macos}", "is not a version of macOS for Apple silicon", "write it as 14.0")
    return version.major, version.minor


def linux_tags(glibc: str, machine: str) -> Iterator[str]:
    """manylinux tags, each with its older alias, and the plain one."""
    version = parse_version(glibc)
    if version is None or version.major != 2 or len(version.release) < 2:
        raise BadInput(f"--glibc {glibc}", "is not a version of glibc 2", "write it as 2.28")
    for minor in range(version.minor, OLDEST_GLIBC[machine] - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in LEGACY_MANYLINUX:
            yield f"{LEGACY_MANYLINUX[minor]}_{machine}"
    yield f"linux_{machine}"


def supported_tags(target: Target) -> Iterator[str]:
    """All wheel tags of the target as strings, most preferred first. Free-threaded builds are not among them."""
    python = python_minor(target.python)
    digits = f"{python[0]}{python[1]}"
    abi = f"cp{digits}m" if python < (3, 8) else f"cp{digits}"      # PEP 3149 flag, gone with Python 3.8
    platforms = list(platform_tags(target))
    tags = chain(
        cpython_tags(python, abis=[abi], platforms=platforms),
        compatible_tags(python, interpreter=f"cp{digits}", platforms=platforms),
    )
    return (str(tag) for tag in tags)
