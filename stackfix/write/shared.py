"""Packages of several targets as the entries of one pylock file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.quick import dataclass
from stackfix.resolve.records import LockedPackage, Target, TargetLock
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile
from stackfix.write.markers import marker_of, order_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One package as the targets have it that hold it alike."""

    package: LockedPackage          # of the first of them
    targets: tuple[Target, ...]
    files: tuple[IndexFile, ...]    # of all of them, each once
    requires: frozenset[str]        # what it pulls in on any of them
    marker: str | None              # None: on all targets of the file


def shared_packages(locks: Sequence[TargetLock]) -> tuple[Shared, ...]:
    """The packages of the first step, by name; of one name in the order of their targets."""
    locks = sorted(locks, key=lambda lock: order_of(lock.target))
    every = [lock.target for lock in locks]
    views = {target: TargetView(target) for target in every} if len(every) > 1 else {}
    found: dict[str, list[list[tuple[Target, LockedPackage]]]] = {}
    for lock in locks:
        for package in lock.packages:
            if package.step == 1:
                groups = found.setdefault(package.name, [])
                place_in(groups, lock.target, package, views)
    return tuple(shared(group, every) for name in sorted(found) for group in found[name])


def place_in(
    groups: list[list[tuple[Target, LockedPackage]]], target: Target, package: LockedPackage,
    views: dict[Target, TargetView],
) -> None:
    """Adds the package to the first group that holds it alike, else to one of its own."""
    for group in groups:
        if is_alike(group[0][1], package) and all_take_their_own([*group, (target, package)], views):
            group.append((target, package))
            return
    groups.append([(target, package)])


def is_alike(one: LockedPackage, other: LockedPackage) -> bool:
    """Whether one entry can say both."""
    if (one.version, one.direct, one.requires_python) != (other.version, other.direct, other.requires_python):
        return False
    return not one.direct or one.files[0] == other.files[0]


def all_take_their_own(group: Sequence[tuple[Target, LockedPackage]], views: dict[Target, TargetView]) -> bool:
    """Whether an installer of each target, given the files of all, still picks the file that was locked for it."""
    if group[0][1].direct:
        return True
    files = distinct_files(package for _, package in group)
    if len({file.filename for file in files}) < len(files):
        return False                # one name, two addresses: who reads the entry could take either
    for target, package in group:
        ranked = [(rank, file.filename) for file in files
                  if file.is_wheel and (rank := views[target].rank(file.filename)) is not None]
        best = min(ranked)[1] if ranked else None
        if package.files[0].is_wheel and best != package.files[0].filename:
            return False
        if not package.files[0].is_wheel and best is not None:
            return False
    sdists = {file.filename for file in files if not file.is_wheel}
    return len(sdists) <= 1         # an entry has one


def distinct_files(packages: Iterable[LockedPackage]) -> tuple[IndexFile, ...]:
    """The files of all, each once."""
    found = {(file.filename, file.url): file for package in packages for file in package.files}
    return tuple(found.values())


def shared(group: Sequence[tuple[Target, LockedPackage]], every: Sequence[Target]) -> Shared:
    """The entry of a group."""
    targets = tuple(target for target, _ in group)
    packages = [package for _, package in group]
    return Shared(
        package=packages[0], targets=targets, files=distinct_files(packages), marker=marker_of(targets, every),
        requires=frozenset(name for package in packages for name in package.requires))


def by_name(packages: Iterable[Shared]) -> dict[str, tuple[Shared, ...]]:
    """The entries of each name."""
    found: dict[str, tuple[Shared, ...]] = {}
    for one in packages:
        found[one.package.name] = (*found.get(one.package.name, ()), one)
    return found


def dependencies(one: Shared, every: Mapping[str, tuple[Shared, ...]]) -> Iterator[dict[str, str]]:
    """What names each entry that `one` pulls in: its name, and more where others have that name too."""
    for name in sorted(one.requires & every.keys() - {one.package.name}):
        same = every[name]
        versions = {None if each.package.direct else each.package.version for each in same}
        for other in same:
            if len(same) == 1:
                yield {"name": name}
            elif other.marker is not None and set(one.targets) & set(other.targets):
                tell = None not in versions and len(versions) == len(same)
                yield {"name": name, **({"version": other.package.version} if tell else {"marker": other.marker})}
