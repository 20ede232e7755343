"""Where the cache is: apart from the cache itself, for commands that have no use for it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def default_cache_dir(environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """STACKFIX_CACHE_DIR, else the platform's cache folder."""
    given = environ.get("STACKFIX_CACHE_DIR")
    if given:
        return Path(given)
    if platform == "darwin":
        return home / "Library" / "Caches" / "stackfix"
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "stackfix" / "Cache"
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home / ".cache") / "stackfix"


def make_private(folder: Path) -> bool:
    """Whether the folder is there, and nobody but its owner sees what is in it; one that was open is closed."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_to_others(folder)
    except OSError:
        return False
    return True


def close_to_others(folder: Path) -> None:
    """Take all rights of other users from the folder and from what is in it. Raises OSError where it is not ours."""
    _close(folder.resolve())
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):         # another process has just moved it
                _close(Path(above, name))


def _close(path: Path) -> None:
    mode = path.lstat().st_mode
    if mode & _OTHERS and not stat.S_ISLNK(mode):
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
