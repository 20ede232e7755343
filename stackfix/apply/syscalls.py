"""Every call that changes the disk, in one place: a test stops the process before each of them in turn."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any

# Told the name of a call before it is made. Only tests set it: the faults of docs/transactions.md are made here.
before_call: Callable[[str], None] | None = None

NOREPLACE = 1                   # renameat2(2): RENAME_NOREPLACE
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What file systems say that cannot sync a folder (some network and FUSE ones): nothing more can be done there
NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def tell(name: str) -> None:
    if before_call is not None:
        before_call(name)


def create(name: str, *, folder: int, mode: int = 0o600) -> int:
    """Descriptor of a new file for writing. Raises FileExistsError where the name is taken."""
    tell("create")
    return os.open(name, NEW_FILE, mode, dir_fd=folder)


def write(descriptor: int, content: bytes) -> None:
    """Writes all bytes: one call of the system may take only a part."""
    left = memoryview(content)
    while left:
        tell("write")
        left = left[os.write(descriptor, left):]


def set_mode(descriptor: int, mode: int) -> None:
    tell("chmod")
    os.fchmod(descriptor, mode)


def set_times(descriptor: int, *, accessed: int, modified: int) -> None:
    tell("utime")
    os.utime(descriptor, ns=(accessed, modified))


def cut(descriptor: int, length: int) -> None:
    tell("truncate")
    os.ftruncate(descriptor, length)


def sync(descriptor: int) -> None:
    """Brings a file or a folder to the disk. Raises OSError where that fails, not where it cannot be asked for."""
    tell("sync")
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def sync_file_system(descriptor: int) -> None:
    """Brings all of one file system to the disk: one call for the thousands of files of a wheel."""
    tell("sync")
    call = found("syncfs")
    if call is None:
        os.sync()
    elif call(descriptor) != 0:
        raise last_error("syncfs")


def rename(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
    """Moves a name to one that is free. Raises FileExistsError where it is taken: nothing is ever replaced.

    The kernel looks and moves in one step where it and the file system can (not on NFS: there, one after the other).
    """
    tell("rename")
    call = found("renameat2")
    if call is not None:
        if call(old_folder, os.fsencode(old), new_folder, os.fsencode(new), NOREPLACE) == 0:
            return
        error = last_error(new)
        if error.errno not in {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}:
            raise error
    try:
        os.stat(new, dir_fd=new_folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def replace(old: str, new: str, *, folder: int) -> None:
    """Moves a name over another one of the same folder: for the lock alone."""
    tell("rename")
    os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)


def link(old: str, new: str, *, folder: int) -> None:
    tell("link")
    os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def symlink(target: str, name: str, *, folder: int) -> None:
    tell("symlink")
    os.symlink(target, name, dir_fd=folder)


def unlink(name: str, *, folder: int) -> None:
    tell("unlink")
    os.unlink(name, dir_fd=folder)


def make_folder(name: str, *, folder: int, mode: int = 0o777) -> None:
    tell("mkdir")
    os.mkdir(name, mode, dir_fd=folder)


def make_folder_as(name: str, *, folder: int, mode: int) -> None:
    """A folder with this very mode, from its first moment on: the umask is that of the whole process, for as long."""
    before = os.umask(0)
    try:
        make_folder(name, folder=folder, mode=mode)
    finally:
        os.umask(before)


def remove_folder(name: str, *, folder: int) -> None:
    tell("rmdir")
    os.rmdir(name, dir_fd=folder)


def last_error(name: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), name)


@cache
def found(name: str) -> Any:
    """A function of the C library, or None where it has none of that name (an old glibc)."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)
