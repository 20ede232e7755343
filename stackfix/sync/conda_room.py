"""Whether the disk has room for what is to be linked: asked before anything is changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.sync.conda_bytes import placeholders
from stackfix.sync.conda_prefix import META
from stackfix.sync.conda_records import CondaSync
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaPin


def refuse_full_disk(
    prefix: Path, store: Path, packages: Iterable[tuple[CondaPin, Unpacked]], asked: CondaSync,
) -> None:
    """Raises Unreachable where there is not enough room. Files are shared with the store on the same disk."""
    try:
        shared = is_shared(prefix, store)
        free = os.statvfs(prefix)
    except OSError as error:
        raise Unreachable(str(prefix), f"cannot be looked at: {error.strerror}") from error
    needed = sum(size_of(package.folder / path) for _, package in packages
                 for path in (placeholders(package.folder) if shared else package.paths))
    going = {path for change in asked.changes if change.action != "keep" and change.name in asked.installed
             for path in asked.installed[change.name].files}
    left = asked.interrupted.paths.keys() if asked.interrupted is not None else set[str]()
    needed -= sum(size_of(prefix / path, alone=True) for path in going | left)
    room = free.f_bavail * free.f_frsize
    if needed > room and free.f_blocks:
        raise Unreachable(str(prefix), f"has room for {room / 1e6:.1f} MB, and {needed / 1e6:.1f} MB are needed",
                          "nothing was changed; make room, or name an environment on another disk with --prefix")


def is_shared(prefix: Path, store: Path) -> bool:
    """Whether files of the store can be linked into the prefix. Raises OSError."""
    return prefix.stat().st_dev == store.stat().st_dev


def refuse_closed_folders(prefix: Path, paths: Iterable[str]) -> None:
    """Raises Unreachable where a folder that files are placed into, or removed from, cannot be written."""
    seen = {prefix}
    folders = [prefix, prefix / META]
    for path in paths:
        folder = (prefix / path).parent
        while folder not in seen:
            seen.add(folder)
            folders.append(folder)
            folder = folder.parent
    for folder in folders:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise Unreachable(str(folder), "cannot be written", "nothing was changed; sync as the user whose it is")


def size_of(path: Path, *, alone: bool = False) -> int:
    """Bytes of a file; 0 for what is none, and where it is to be `alone` for one that another name keeps."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) and not (alone and found.st_nlink > 1) else 0
