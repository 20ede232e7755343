"""Where py-rattler keeps what channels answered: in the user's own folder, closed to all others.

It notes whole addresses there, with their logins and tokens.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from stackfix.sources.cache_place import close_to_others, make_private

KEPT = "conda-repodata-v1"          # below the cache folder


class Kept:
    """One folder, made when it is first needed; a temporary one where it cannot be had or cannot be closed."""

    def __init__(self, place: Path, *, offline: bool) -> None:
        self._place, self._offline = place, offline
        self._spare: Path | None = None
        self._used = False

    def folder(self) -> Path:
        """The folder. Another user's is read where nothing is asked, and so nothing written."""
        if make_private(self._place):
            self._used = True
            return self._place
        if self._offline and self._place.is_dir():
            return self._place
        if self._spare is None:
            self._spare = Path(tempfile.mkdtemp(prefix="stackfix-"))
            atexit.register(self.close)
        return self._spare

    def close(self) -> None:
        """Close to others what has come since, and remove what could not be kept."""
        spare, self._spare = self._spare, None
        if spare is not None:
            shutil.rmtree(spare, ignore_errors=True)
        if self._used:
            with suppress(OSError):
                close_to_others(self._place)
