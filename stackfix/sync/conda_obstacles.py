"""What lies where a sync would place a file, and belongs to no package: looked for before anything is changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stackfix.errors import BadInput
from stackfix.sync.conda_archive import placed_at, placed_paths
from stackfix.sync.conda_bytes import is_from
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaPin

SHOWN = 5
Packages = Iterable[tuple[CondaPin, Unpacked]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One file or folder in the way."""

    path: str                       # below the prefix
    package: str                    # that would take its place


def obstacles(
    prefix: Path, packages: Packages, *, python: str | None, free: Collection[str],
) -> tuple[Obstacle, ...]:
    """What is in the way. `free`: paths that go, or are the sync's to replace.

    A file that has the package's own bytes is in nobody's way; nor is what Python compiled by itself.
    """
    found: dict[str, Obstacle] = {}
    above = Above(prefix, free)
    for pin, package in packages:
        for path in in_the_way(prefix, package, python, free, above):
            found.setdefault(path, Obstacle(path=path, package=pin.name))
    return tuple(found.values())


def in_the_way(
    prefix: Path, package: Unpacked, python: str | None, free: Collection[str], above: Above,
) -> Iterator[str]:
    """Paths that are in the way of one package."""
    stated = {placed_at(path, package, python): path for path in package.paths}
    for path in placed_paths(package, python):
        blocking = above.file(path)
        if blocking is not None:
            yield blocking
            continue
        place = prefix / path
        if path in free or (path.endswith(".pyc") and "__pycache__/" in path) or not os.path.lexists(place):
            continue
        source = stated.get(path)
        if source is not None and (is_from(place, package.folder, source, prefix)
                                   or (place.is_dir() and is_folder(package.folder / source))):
            continue
        yield path


def is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


class Above:
    """Which folders of paths are files."""

    def __init__(self, prefix: Path, free: Collection[str]) -> None:
        self._prefix, self._free = prefix, free
        self._known: dict[str, str | None] = {".": None, "": None}

    def file(self, path: str) -> str | None:
        """The topmost file where a folder above `path` is to be; None for none."""
        folder = str(PurePosixPath(path).parent)
        if folder not in self._known:
            upper = self.file(folder)
            self._known[folder] = upper if upper is not None else folder if self._is_file(folder) else None
        return self._known[folder]

    def _is_file(self, folder: str) -> bool:
        if folder in self._free:
            return False
        try:
            return not stat.S_ISDIR((self._prefix / folder).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return os.path.lexists(self._prefix / folder)       # a link that leads nowhere


def refuse(prefix: Path, found: tuple[Obstacle, ...], pips: Mapping[str, str]) -> None:
    """Raises BadInput, with the first few named. `pips`: path -> the project of pip that it belongs to."""
    if not found:
        return
    named = [f"{one.path} ({f'of {pips[one.path]} of pip' if one.path in pips else 'of no package'}; {one.package} "
             "brings another)" for one in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise BadInput(str(prefix), f"has files that the sync would overwrite: {', '.join(named)}{more}",
                   "nothing was changed; move them away, or let --set-aside move them to .stackfix-sync-kept there")


def doubles(packages: Packages, owners: Mapping[str, str], python: str | None) -> tuple[str, ...]:
    """What is told of paths that two packages have. `owners`: path -> the package that keeps it."""
    seen, told = dict(owners), list[str]()
    for pin, package in packages:
        for path in dict.fromkeys(placed_paths(package, python)):
            other = seen.setdefault(path, pin.name)
            if other != pin.name and not is_folder(package.folder / path):
                told.append(f"{path} is in {other} and in {pin.name}: one of them is put below __clobbers__")
    return (*told[:SHOWN], *((f"{len(told) - SHOWN} more files are in two packages",) if len(told) > SHOWN else ()))
