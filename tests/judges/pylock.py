"""Judge: packaging.pylock reads the file and selects for the target what the lock says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import Environment
from packaging.pylock import PackageArchive, PackageSdist, PackageWheel, Pylock
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms

from tests.judges.lockfile import Entry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
SYSTEMS = {     # os_name, sys_platform, platform_system, platform_machine
    "linux-64": ("posix", "linux", "Linux", "x86_64"), "linux-aarch64": ("posix", "linux", "Linux", "aarch64"),
    "win-64": ("nt", "win32", "Windows", "AMD64"), "osx-arm64": ("posix", "darwin", "Darwin", "arm64"),
}


def complaints(pylock: Path, entries: tuple[Entry, ...], *, python: str, platform: str, glibc: str) -> list[str]:
    """What is wrong with the file for the target, compared with the pins of requirements.txt."""
    lock = Pylock.from_dict(tomllib.loads(pylock.read_text(encoding="utf-8")))
    tags = tags_of(python, platform, glibc)
    chosen = {}
    said = []
    for package, file in lock.select(environment=environment_of(python, platform), tags=tags):
        chosen[package.name] = package
        pins = [entry for entry in entries if entry.name == package.name]
        digest = file.hashes["sha256"] if isinstance(file, PackageWheel | PackageSdist | PackageArchive) else ""
        if len(pins) != 1 or digest not in pins[0].hashes:
            said.append(f"{package.name}: selects {digest}, which requirements.txt does not state")
        elif pins[0].version and str(package.version) != pins[0].version:
            said.append(f"{package.name}: {package.version} here, {pins[0].version} in requirements.txt")
        elif pins[0].url and (package.version is not None or isinstance(file, PackageWheel)):
            said.append(f"{package.name}: by URL, so it must be an archive without version")
    missing = {entry.name for entry in entries} - chosen.keys()
    return said + [f"{name}: not selected" for name in sorted(missing)]


def target_environment(python: str, machine: str) -> Environment:
    """Marker values of CPython on Linux."""
    return _environment(python, ("posix", "linux", "Linux", machine))


def environment_of(python: str, platform: str) -> Environment:
    """Marker values of CPython on the platform."""
    return _environment(python, SYSTEMS[platform])


def _environment(python: str, system: tuple[str, str, str, str]) -> Environment:
    return Environment(
        implementation_name="cpython", implementation_version=f"{python}.0", os_name=system[0],
        platform_machine=system[3], platform_release="", platform_system=system[2], platform_version="",
        python_full_version=f"{python}.0", platform_python_implementation="CPython", python_version=python,
        sys_platform=system[1],
    )


def tags_of(python: str, platform: str, glibc: str = "2.28", macos: str = "14.0") -> list[Tag]:
    """Tags of CPython on the platform, most specific first."""
    major, _, minor = python.partition(".")
    if platform in MACHINES:
        return list(target_tags((int(major), int(minor)), MACHINES[platform], glibc))
    newest, _, more = macos.partition(".")
    platforms = ["win_amd64"] if platform == "win-64" else list(mac_platforms((int(newest), int(more)), "arm64"))
    version = (int(major), int(minor))
    return [*cpython_tags(version, platforms=platforms),
            *compatible_tags(version, f"cp{major}{minor}", platforms)]


def target_tags(python: tuple[int, int], machine: str, glibc: str) -> Iterator[Tag]:
    """Tags of CPython on manylinux, most specific first."""
    newest = int(glibc.split(".")[1])
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    platforms = []
    for minor in range(newest, 4 if machine == "x86_64" else 16, -1):
        platforms.append(f"manylinux_2_{minor}_{machine}")
        if minor in legacy:
            platforms.append(f"{legacy[minor]}_{machine}")
    platforms.append(f"linux_{machine}")
    yield from cpython_tags(python, platforms=platforms)
    yield from compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)
