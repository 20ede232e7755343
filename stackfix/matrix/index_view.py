"""What reading the package index again needs of it, and what its files say, as the matrix would write it.

The protocols are filled by the index of `resolve.records`: the matrix comes before it and imports none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackfix.errors import StackfixError, Unreachable
from stackfix.platforms import LINUX_SUBDIRS, PLATFORMS

LEGACY_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}  # PEP 600

ABOUT_ONE_FILE = frozenset({"bad-metadata", "hash-mismatch", "too-large"})  # the index itself answers

_MANYLINUX = re.compile(rf"(manylinux1|manylinux2010|manylinux2014|manylinux_(\d+)_(\d+))_({'|'.join(LINUX_SUBDIRS)})")
_MACOS = re.compile(r"macosx_(\d+)_(\d+)_(?:arm64|universal2)")
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
    """Platforms of the matrix that a wheel is for; all for a pure one; none for a name that is no wheel's."""
    found = {_platform_of(tag) for _, tag, _ in _tags(filename)}
    return frozenset(PLATFORMS) if "any" in found else frozenset(each for each in found if each is not None)


def _platform_of(tag: str) -> str | None:
    manylinux = _MANYLINUX.fullmatch(tag)
    if manylinux:
        return LINUX_SUBDIRS[manylinux[4]]
    return "osx-arm64" if _MACOS.fullmatch(tag) else {"win_amd64": "win-64", "any": "any"}.get(tag)


def glibc_of(filename: str) -> str | None:
    """The oldest glibc that a wheel's platform tags admit: "2.28"."""
    found = []
    for _, tag, _ in _tags(filename):
        match = _MANYLINUX.fullmatch(tag)
        if match:
            found.append(LEGACY_GLIBC.get(match[1]) or (int(match[2]), int(match[3])))
    return "{}.{}".format(*min(found)) if found else None


def macos_of(filenames: Iterable[str]) -> str | None:
    """The oldest macOS on arm64 that the platform tags of any of the wheels admit: "11.0"."""
    found = [(int(match[1]), int(match[2])) for filename in filenames for _, tag, _ in _tags(filename)
             for match in [_MACOS.fullmatch(tag)] if match]
    return "{}.{}".format(*min(found)) if found else None


def pythons_of(filenames: Iterable[str]) -> tuple[str, ...]:
    """Python minors of version-specific wheels, free-threaded builds left out."""
    minors = set()
    for filename in filenames:
        for interpreter, _, abi in _tags(filename):
            match = _CPYTHON.fullmatch(interpreter)
            if match and abi.removesuffix("m") in {interpreter, "none"}:   # none: torch for macOS, cp311-none-…
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
