"""Since when a function is there, and which versions have all of some functions: pure, over one library's masks."""

from __future__ import annotations

from collections.abc import Sequence

from stackfix.abi.nvidia_text import Exports
from stackfix.abi.nvidia_versions import runs
from stackfix.abi.records import Bounds, Since


def since_in(package: str, soname: str, name: str, exports: Exports) -> list[Since]:
    """One record for each run of versions with the function, among those that carry the library."""
    versions, newest = exports.versions, len(exports.versions) - 1
    return [Since(
        package=package, soname=soname, name=name,
        first=versions[first] if first else None,
        absent_before=versions[first - 1] if first else None,
        last=versions[last] if last < newest else None,
        absent_after=versions[last + 1] if last < newest else None,
    ) for first, last in runs(exports.masks.get(name, 0))]


def bounds_in(package: str, soname: str, names: Sequence[str], exports: Exports, read: Sequence[str]) -> Bounds:
    """Which of the `read` versions of the package export all names. One without the library exports none of them."""
    all_of_them = (1 << len(exports.versions)) - 1
    mask = all_of_them
    for name in names:
        mask &= exports.masks.get(name, 0)
    versions = tuple(version for place, version in enumerate(exports.versions) if mask >> place & 1)
    floor = read.index(versions[0]) if versions else 0
    ceiling = read.index(versions[-1]) if versions else len(read) - 1
    below = read[floor - 1] if floor else None
    above = read[ceiling + 1] if ceiling + 1 < len(read) else None
    return Bounds(
        package=package, soname=soname, versions=versions,
        floor=read[floor] if below else None, not_enough=below, low=absent(names, exports, below),
        ceiling=read[ceiling] if above else None, gone_in=above, high=absent(names, exports, above),
        unknown=tuple(name for name in names if not exports.masks.get(name)),
    )


def absent(names: Sequence[str], exports: Exports, version: str | None) -> tuple[str, ...]:
    """Those of the names that a version lacks: all where it has no such library; none where there is no version."""
    if version is None:
        return ()
    if version not in exports.versions:
        return tuple(names)
    bit = 1 << exports.versions.index(version)
    return tuple(name for name in names if not exports.masks.get(name, 0) & bit)
