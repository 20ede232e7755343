"""Nothing outside of the prefix is written or removed: links on the way to a path are followed before anything is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from stackfix.errors import BadInput


class Inside:
    """A prefix, and which folders below it lead out of it."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self._real = os.path.realpath(prefix)
        self._known: dict[str, str | None] = {".": None, "": None}

    def way_out(self, path: str) -> str | None:
        """The link above `path` that leads out of the prefix; None where the path stays inside."""
        return self._folder(str(PurePosixPath(path).parent))

    def _folder(self, folder: str) -> str | None:
        if folder not in self._known:
            above = self._folder(str(PurePosixPath(folder).parent))
            place = self.prefix / folder
            leads = above is None and place.is_symlink() and not self._holds(os.path.realpath(place))
            self._known[folder] = folder if leads else above
        return self._known[folder]

    def _holds(self, real: str) -> bool:
        return real == self._real or real.startswith(f"{self._real.rstrip('/')}/")


def refuse_ways_out(inside: Inside, paths: Iterable[tuple[str, str]]) -> None:
    """Raises BadInput for a path that passes through a link out of the prefix. `paths`: (package, path)."""
    for package, path in paths:
        link = inside.way_out(path)
        if link is not None:
            where = inside.prefix / link
            raise BadInput(str(where), f"is a link out of the environment (to {os.path.realpath(where)}), and "
                           f"{package} has {path[:120]}", "nothing was changed; put a folder in the link's place, or "
                           "choose another --prefix")
