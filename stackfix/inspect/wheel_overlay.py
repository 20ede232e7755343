"""A world with a wheel's files laid over an environment's: what a loader would find after the wheel's installation."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable

from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt, Files, Refused, Symbols


class Ground:
    """The folders of a root, with those that a wheel adds. Links are followed where the disk has them."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.added: set[str] = set()
        self._found: dict[str, tuple[str, bool] | None] = {"": ("", False), "/": ("", False)}

    def add(self, folder: str) -> str:
        """`folder` without links; what the disk lacks is added."""
        here = ""
        for part in posixpath.normpath(folder).strip("/").split("/"):
            path = f"{here}/{part}"
            here = self.root.find(path) or path
            if here == path and not self.root.is_folder(path):
                self.added.add(path)
        self._found = {"": ("", False), "/": ("", False)}
        return here

    def find(self, folder: str) -> tuple[str, bool] | None:
        """(`folder` without links, whether it goes through an added one), or None where it is nowhere."""
        ahead, here = list[str](), folder
        while here not in self._found:
            ahead.append(here)
            here = here.rpartition("/")[0]
        for each in reversed(ahead):        # not by recursion: a wheel may have a thousand folders in one another
            self._found[each] = self._look(each)
        return self._found[folder]

    def _look(self, folder: str) -> tuple[str, bool] | None:
        """The answer for a folder whose parent's is known."""
        parent, _, part = folder.rpartition("/")
        above = self._found[parent]
        if above is None or part in ("", "."):
            return above
        here, crossed = above
        if part == "..":
            return here.rpartition("/")[0], crossed
        path = f"{here}/{part}"
        if path in self.added:
            return path, True
        real = self.root.find(path)
        return None if real is None else (real, crossed)

    def place(self, path: str) -> tuple[str, bool] | None:
        """As `find`, for a file: links in its folder followed, its own name kept."""
        folder, _, name = path.rpartition("/")
        found = self.find(folder)
        return None if found is None else (f"{found[0]}/{name}", found[1])


class OverlayFiles:
    """Fills records.Files: a wheel's unpacked files first, then those below, but for what the wheel replaces.

    `upper` is a root of its own in which the files have the places that the installation would give them.
    """

    def __init__(self, upper: Root, ground: Ground, *, over: Iterable[str], hidden: Iterable[str],
                 below: Files) -> None:
        self._upper, self._below, self._ground = DiskFiles(upper), below, ground
        self._over, self._hidden = frozenset(over), frozenset(hidden)
        self._ours: set[str] = set()            # identities of the wheel's files

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` would give."""
        found = self._ground.place(path)
        if found is None:
            return self._below.at(path)
        place, crossed = found
        if place in self._over:
            file = self._upper.at(place)
            if isinstance(file, FileAt):
                self._ours.add(file.identity)
        elif place in self._hidden:
            return None
        else:
            # `new/../nvidia` leads somewhere only once the wheel has made `new`
            file = self._below.at(place if crossed else path)
        return dataclasses.replace(file, path=path) if file is not None and file.path != path else file

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file that `at` gave."""
        return (self._upper if file.identity in self._ours else self._below).symbols(file)
