"""What reading the package index again needs of it, and what its files say, as the matrix would write it.

The protocols are filled by the index of `resolve.records`: the matrix comes before it and imports none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackfix.errors import StackfixError, Unreachable

PLATFORM_TAGS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
LEGACY_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}  # PEP 600

ABOUT_ONE_FILE = frozenset({"bad-metadata", "hash-mismatch", "too-large"})  # the index itself answers

ALL_PYTHONS = tuple(f"3.{minor}" for minor in range(6, 30))

_ONLY_PYTHON = re.compile(r'python_version [<>=!]+ "[\d.]+"')
_MANYLINUX = re.compile(r"(manylinux1|manylinux2010|manylinux2014|manylinux_(\d+)_(\d+))_(x86_64|aarch64)")
_CPYTHON = re.compile(r"cp3(\d+)")


class SeenFile(Protocol):
    """A file of a project page."""

    @property
    def filename(self) -> str: ...
    @property
    def yanked(self) -> str | None: ...
    @property
    def is_wheel(self) -> bool: ...


class SeenMetadata(Protocol):
    """Metadata of a file."""

    @property
    def requires_dist(self) -> tuple[str, ...]: ...


F = TypeVar("F", bound=SeenFile)
F_co = TypeVar("F_co", bound=SeenFile, covariant=True)


class SeenPage(Protocol[F_co]):
    """A project page."""

    def version_strings(self) -> tuple[str, ...]: ...
    def files(self, version: str) -> tuple[F_co, ...]: ...


class SeenIndex(Protocol[F]):
    """A package index."""

    def prefetch_pages(self, names: tuple[str, ...]) -> None: ...
    def prefetch_metadata(self, files: tuple[F, ...]) -> None: ...
    def page(self, name: str) -> SeenPage[F]: ...
    def metadata(self, file: F) -> SeenMetadata: ...


@dataclass(frozen=True, slots=True)
class Release(Generic[F]):
    """One final release of a project on the index."""

    version: Version
    files: tuple[F, ...]

    @property
    def yanked(self) -> bool:
        return all(file.yanked is not None for file in self.files)

    @property
    def sdist(self) -> bool:
        return any(not file.is_wheel for file in self.files)

    def wheels(self, platform: str | None = None) -> tuple[F, ...]:
        """Wheels, by file name; with a platform, those that run there (pure ones too)."""
        found = [file for file in self.files if file.is_wheel]
        return tuple(
            sorted(
                (file for file in found if platform is None or platform in platforms_of(file.filename)),
                key=lambda file: file.filename,
            )
        )


def releases_of(page: SeenPage[F]) -> dict[Version, Release[F]]:
    """Releases of a page by version, without pre-releases and what is no version."""
    files: dict[Version, list[F]] = {}
    for text in page.version_strings():
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            files.setdefault(version, []).extend(page.files(text))
    return {version: Release(version, tuple(found)) for version, found in files.items() if found}


def platforms_of(filename: str) -> frozenset[str]:
    """Platforms of the matrix that a wheel is for; both for a pure one; none for a name that is no wheel's."""
    tags = [tag for _, tag, _ in _tags(filename)]
    found = {PLATFORM_TAGS[match[4]] for tag in tags for match in [_MANYLINUX.fullmatch(tag)] if match}
    return frozenset(PLATFORM_TAGS.values()) if "any" in tags else frozenset(found)


def glibc_of(filename: str) -> str | None:
    """The oldest glibc that a wheel's platform tags admit: "2.28"."""
    found = []
    for _, tag, _ in _tags(filename):
        match = _MANYLINUX.fullmatch(tag)
        if match:
            found.append(LEGACY_GLIBC.get(match[1]) or (int(match[2]), int(match[3])))
    return "{}.{}".format(*min(found)) if found else None


def pythons_of(filenames: Iterable[str]) -> tuple[str, ...]:
    """Python minors of version-specific wheels, free-threaded builds left out."""
    minors = set()
    for filename in filenames:
        for interpreter, _, abi in _tags(filename):
            match = _CPYTHON.fullmatch(interpreter)
            if match and abi.removesuffix("m") == interpreter:
                minors.add(int(match[1]))
    return tuple(f"3.{minor}" for minor in sorted(minors))


@lru_cache(maxsize=4096)
def _tags(filename: str) -> list[tuple[str, str, str]]:
    """(interpreter, platform, ABI) of each tag."""
    try:
        return [(tag.interpreter, tag.platform, tag.abi) for tag in parse_wheel_filename(filename)[3]]
    except InvalidWheelFilename:
        return []


def requires_dist_of(index: SeenIndex[F], file: F) -> tuple[str, ...] | None:
    """Requirements that a file states; None where this file's metadata cannot be had. Raises Unreachable."""
    try:
        return index.metadata(file).requires_dist
    except Unreachable as error:
        if error.reference in ABOUT_ONE_FILE:
            return None
        raise
    except StackfixError:
        return None


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
    if _holds(requirement, python, platform):
        if _ONLY_PYTHON.fullmatch(str(requirement.marker)):
            requirement.marker = None
        return str(requirement)
    return None if any(_holds(requirement, other, platform) for other in ALL_PYTHONS) else line


def _holds(requirement: Requirement, python: str, platform: str) -> bool:
    machine = next(name for name, subdir in PLATFORM_TAGS.items() if subdir == platform)
    environment = {
        "python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine,
        "platform_system": "Linux", "sys_platform": "linux", "os_name": "posix",
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
