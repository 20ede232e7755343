"""The world as a loader sees it with links that are not made yet, and without what is to be set aside."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping

from stackfix.inspect.records import FileAt, Files, Refused, Symbols
from stackfix.quick import replace

MOST_LINKS = 40             # the kernel's own limit for one path
LOOP = "too many levels of symbolic links"


class ChangedFiles:
    """Fills inspect.records.Files. `real` gives a folder without links, None where there is none yet."""

    def __init__(self, below: Files, *, links: Mapping[str, str], gone: Iterable[str],
                 real: Callable[[str], str | None]) -> None:
        self._below, self._real = below, real
        self._folders: dict[str, str] = {}
        self._links = {self._place(path): target for path, target in links.items()}
        self._gone = frozenset(map(self._place, gone))

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` would give."""
        return self._follow(path, 0)

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file that `at` gave: no file has another content than before."""
        return self._below.symbols(file)

    def _follow(self, path: str, links: int) -> FileAt | Refused | None:
        place = self._place(path)
        target = self._links.get(place)
        if target is None:
            return None if self._is_gone(place) else self._below.at(path)
        if links == MOST_LINKS:
            return Refused(path=path, reason=LOOP, ends_list=True)
        found = self._follow(posixpath.normpath(posixpath.join(posixpath.dirname(place), target)), links + 1)
        # the path that was asked for stays: it decides what $ORIGIN is
        return replace(found, path=path) if found is not None else None

    def _place(self, path: str) -> str:
        """A path with the links in its folder followed, its own name kept."""
        folder, _, name = path.rpartition("/")
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._real(folder or "/") or posixpath.normpath(folder or "/")
        return f"{known.rstrip('/')}/{name}"

    def _is_gone(self, place: str) -> bool:
        return bool(self._gone) and (place in self._gone or any(place.startswith(f"{each}/") for each in self._gone))
