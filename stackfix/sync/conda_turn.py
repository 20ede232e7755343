"""One sync at a time in a prefix: its conda-meta folder is locked, so that not even a full disk is in the way."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.sync.conda_prefix import META
from stackfix.sync.install import say

LOCK = ".stackfix-sync.lock"    # below conda-meta, where a folder cannot be locked (NFS)
TRIES = 100
PAUSE = 0.02                    # seconds between two tries


@contextmanager
def turn(prefix: Path, *, quiet: bool) -> Iterator[None]:
    """Holds the prefix for this process; waits for another. Makes it where there is none, for as long as it is empty.

    Raises Unreachable where it cannot be made or locked.
    """
    made: list[Path] = []
    try:
        held = take(prefix, made, quiet=quiet)
    except OSError as error:
        remove_empty(made)
        raise Unreachable(str(prefix / META), f"cannot be made or locked: {os.strerror(error.errno or 0)}",
                          "name an environment that you can write with --prefix DIR") from error
    try:
        yield
    finally:
        remove_empty(made)      # while it is held: who waits for it looks again
        for descriptor in held:
            os.close(descriptor)


def take(prefix: Path, made: list[Path], *, quiet: bool) -> list[int]:
    """Open descriptors that hold the lock. Raises OSError."""
    for _ in range(TRIES):
        held: list[int] = []
        try:
            make_folders(prefix / META, made)
            held.append(os.open(prefix / META, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            wait_for(held, prefix, quiet=quiet)
            there = (prefix / META).lstat()
            if os.path.samestat(there, os.fstat(held[0])):
                return held
        except FileNotFoundError:           # whoever had it before has removed it, empty
            time.sleep(PAUSE)
        except BaseException:               # Ctrl-C, too
            close(held)
            raise
        close(held)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def wait_for(held: list[int], prefix: Path, *, quiet: bool) -> None:
    """Locks the folder that `held` has open, or a file in it. Raises OSError."""
    try:
        fcntl.flock(held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"{prefix}: waiting for another sync that is at work there", quiet=quiet)
        fcntl.flock(held[0], fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.EISDIR}:
            raise
        held.append(os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=held[0]))
        fcntl.flock(held[-1], fcntl.LOCK_EX)


def make_folders(folder: Path, made: list[Path]) -> None:
    """Makes the folder and those above it, and adds those that were not there, topmost first. Raises OSError."""
    if folder.is_symlink() or folder.is_dir():
        return
    if not folder.parent.exists():
        make_folders(folder.parent, made)
    with suppress(FileExistsError):
        folder.mkdir()
        made.append(folder)


def remove_empty(made: list[Path]) -> None:
    """Removes folders that we made and nothing came into."""
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def close(held: list[int]) -> None:
    for descriptor in held:
        os.close(descriptor)
