"""Where the cache is: apart from the cache itself, for commands that have no use for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


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
