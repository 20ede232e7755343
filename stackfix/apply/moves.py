"""Moves within one environment that never replace anything, and can be taken up again after a kill."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable

from stackfix.apply import syscalls
from stackfix.apply.tree import FOLDER, Tree, join, split

Tell = Callable[[], None]


def move(tree: Tree, source: str, destination: str, *, merge: bool, expand: Tell) -> None:
    """Moves a name, which keeps its inode, mode and links. Raises OSError, FileExistsError where the place is taken.

    A folder that its file system cannot rename (overlayfs, of a lower layer) is moved name by name; `expand` is told
    before. `merge`: such a move was begun, so the folder may be in both places.
    """
    with tree.folder(split(source)[0]) as old, tree.folder(split(destination)[0]) as new:
        names = split(source)[1], split(destination)[1]
        if not (merge and tree.is_folder(source) and tree.is_folder(destination)):
            try:
                syscalls.rename(*names, old_folder=old, new_folder=new)
            except OSError as error:
                if error.errno != errno.EXDEV or not tree.is_folder(source):
                    raise
            else:
                return
            expand()
            mode = os.stat(names[0], dir_fd=old, follow_symlinks=False).st_mode & 0o777
            syscalls.make_folder_as(names[1], folder=new, mode=mode)    # at once: a kill leaves it in both places
    move_names(tree, source, destination)


def move_names(tree: Tree, source: str, destination: str) -> None:
    """Moves all that is in a folder into another one, which gets its mode, owner and times; then the folder goes."""
    for name in tree.names(source):
        move(tree, join(source, name), join(destination, name), merge=True, expand=lambda: None)
    like(tree, source, destination)
    parent, name = split(source)
    with tree.folder(parent) as folder:
        syscalls.remove_folder(name, folder=folder)


def like(tree: Tree, source: str, destination: str) -> None:
    """Gives a folder the mode, owner and times of another one. Raises OSError."""
    with tree.folder(source) as old, tree.folder(destination) as new:
        found = os.fstat(old)
        with contextlib.suppress(PermissionError):      # only root can give a folder away
            os.chown(new, found.st_uid, found.st_gid)
        syscalls.set_mode(new, stat.S_IMODE(found.st_mode))
        syscalls.set_times(new, accessed=found.st_atime_ns, modified=found.st_mtime_ns)


def make_folders(tree: Tree, path: str, *, mode: int = 0o777) -> None:
    """Makes a folder and its missing parents. Raises OSError."""
    if not path or tree.is_folder(path):
        return
    parent, name = split(path)
    make_folders(tree, parent, mode=mode)
    with tree.folder(parent) as folder, contextlib.suppress(FileExistsError):
        syscalls.make_folder(name, folder=folder, mode=mode)


def sync_folders(tree: Tree, paths: Iterable[str]) -> None:
    """Makes the moves into and out of these folders last through a power cut; one that is gone needs none."""
    for path in sorted(set(paths)):
        if tree.is_folder(path):
            with tree.folder(path) as folder:
                syscalls.sync(folder)


def remove(tree: Tree, path: str) -> None:
    """Deletes a name and all that is below it. Only for what is ours: files in `.stackfix`. Raises OSError."""
    parent, name = split(path)
    with tree.folder(parent) as folder:
        remove_at(folder, name)


def remove_if_empty(tree: Tree, path: str) -> None:
    """Deletes a folder where nothing is in it. Raises OSError."""
    parent, name = split(path)
    with tree.folder(parent) as folder:
        try:
            syscalls.remove_folder(name, folder=folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise


def remove_at(folder: int, name: str) -> None:
    """The same by descriptor; a folder that lacks the permission is given it first."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        syscalls.unlink(name, folder=folder)
        return
    inner = os.open(name, FOLDER, dir_fd=folder)
    try:
        if stat.S_IMODE(found.st_mode) & 0o700 != 0o700:
            syscalls.set_mode(inner, 0o700)
        for each in os.listdir(inner):      # noqa: PTH208 - by descriptor
            remove_at(inner, each)
    finally:
        os.close(inner)
    syscalls.remove_folder(name, folder=folder)
