"""What is in the way is moved aside within the prefix, never deleted."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from stackfix.errors import Unreachable

KEPT = ".stackfix-sync-kept"


def set_aside(prefix: Path, path: str) -> Path:
    """Where the file or folder `path` of the prefix was moved to. Raises Unreachable."""
    place = prefix / path
    try:
        folder = prefix / KEPT
        for name in ("", *Path(path).parts[:-1]):
            folder /= name
            while os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                if folder == prefix / KEPT:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
                folder = folder.with_name(f"{folder.name}~")
            folder.mkdir(exist_ok=True)
        target = folder / place.name
        while os.path.lexists(target):
            target = target.with_name(f"{target.name}~")
        place.rename(target)
    except OSError as error:
        raise Unreachable(str(place), f"cannot be moved to {KEPT}: {os.strerror(error.errno or 0)}",
                          "move it away, and sync again") from error
    return target
