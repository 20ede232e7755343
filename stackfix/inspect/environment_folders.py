"""Listings of an environment's folders, each read once."""

from __future__ import annotations

import os

from stackfix.inspect.places import Root, reason_of

COMPILED = (".pyc", ".pyo")


class Folders:
    """Listings by real folder; links are resolved in the folder's path, not in the names it holds."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._real: dict[str, str | None] = {}
        self._listed: dict[str, dict[str, os.DirEntry[str]]] = {}
        self.unreadable: dict[str, str] = {}     # real folder: why it could not be listed

    def real(self, folder: str) -> str | None:
        """The folder without links, or None. A child of a known folder costs one lstat."""
        ahead, here = list[str](), folder
        while here and here not in self._real:
            ahead.append(here)
            here = here.rpartition("/")[0]
        for each in reversed(ahead):        # not by recursion: a RECORD may have a thousand folders in one another
            self._real[each] = self._resolve(each)
        return self._real[folder] if folder else self._resolve(folder)

    def _resolve(self, folder: str) -> str | None:
        parent, _, name = folder.rpartition("/")
        above = self._real[parent] if parent and name not in ("", ".", "..") else None
        if above is None:
            return self.root.find(folder) if not parent or name in ("", ".", "..") else None
        entry = self.listing(above).get(name)
        if entry is not None and entry.is_dir(follow_symlinks=False):
            return f"{above.rstrip('/')}/{name}"
        return self.root.find(f"{above}/{name}") if entry is None or entry.is_symlink() else None

    def sizes(self, folder: str, real: str) -> dict[str, int]:
        """Sizes of the plain files of a folder, by their paths below `folder`; compiled ones are not asked: 0.

        Asked below the open folder: the kernel need not find the way to it again for each of 15,000 files.
        """
        names = [name for name, entry in self.listing(real).items() if entry.is_file(follow_symlinks=False)]
        found, start, stat = dict[str, int](), f"{folder}/", os.stat
        try:
            descriptor = os.open(self.root.host(real), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return found
        try:
            for name in names:
                try:
                    found[start + name] = 0 if name.endswith(COMPILED) else stat(name, dir_fd=descriptor,
                                                                                 follow_symlinks=False).st_size
                except OSError:     # gone since
                    continue
        finally:
            os.close(descriptor)
        return found

    def listing(self, real: str) -> dict[str, os.DirEntry[str]]:
        """Names in a folder without links in its path; none where it cannot be read."""
        if real not in self._listed:
            try:
                with os.scandir(self.root.host(real)) as found:
                    self._listed[real] = {each.name: each for each in found}
            except OSError as error:
                self._listed[real] = {}
                self.unreadable[real] = reason_of(error)
        return self._listed[real]
