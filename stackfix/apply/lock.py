"""One run at a time in a prefix: a lock file that also holds on NFS, and is taken over from the dead safely.

A lock is a hard link to a file that names its owner, so it is whole the moment that it is there, on NFS too (link(2)
may report a failure after it has worked: the link count tells). A dead owner of this host is succeeded, not removed:
whoever makes the link `<lock>.<token of the dead>` is the only heir. It looks once more whether the lock is still that
of the dead one, and only then moves its own over it; so two heirs, or an heir and a new owner, cannot both have it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stackfix.apply import syscalls
from stackfix.apply.errors import Busy, CannotWrite
from stackfix.apply.lock_owner import Owner, is_dead, parse_owner, this_process, to_bytes
from stackfix.apply.tree import Tree

STORE = ".stackfix"             # in the prefix; nothing else of ours is there
LOCK = "lock"
TRIES = 50
PAUSE = 0.02                    # seconds between two tries
NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Again(Exception):
    """The state has changed while we looked."""


@contextmanager
def locked(tree: Tree) -> Iterator[None]:
    """The prefix for this process alone. Makes `.stackfix`, and removes it where nothing is left in it.

    Raises Busy where somebody else who may be alive has it.
    """
    me = this_process()
    try:
        acquire(tree, me)       # Ctrl-C may come in the middle of it
        yield
    finally:
        release(tree, me)


def acquire(tree: Tree, me: Owner) -> None:
    """Takes the lock. Raises Busy, or OSError, and then leaves nothing behind."""
    for _ in range(TRIES):
        try:
            make_store(tree)
            with tree.folder(STORE) as folder:
                take(tree, folder, me)
                clear_remains(folder, me)
                return
        except (Again, FileNotFoundError):      # the last owner removed the folder, or a file, meanwhile
            time.sleep(PAUSE)
        except OSError:
            with contextlib.suppress(OSError):
                syscalls.remove_folder(STORE, folder=tree.descriptor)
            raise
    raise Busy(tree.prefix, "its lock changes hands all the time", "try again when the other runs are done")


def take(tree: Tree, folder: int, me: Owner) -> None:
    """One try to have the lock. Raises Again, Busy or OSError."""
    own = f"{LOCK}.own.{me.token}"
    try:
        write_owner(folder, own, me)
        succeed(tree, folder, me, LOCK)
    finally:
        with contextlib.suppress(OSError):
            syscalls.unlink(own, folder=folder)


def succeed(tree: Tree, folder: int, me: Owner, place: str) -> None:
    """Makes `place` ours: it is free, or its owner is dead and we are the heir. Raises Again, Busy or OSError."""
    if claim(folder, me, place):
        return
    owner = owner_of(folder, place)
    if owner is None or not is_dead(owner):
        where = f"{tree.prefix}/{STORE}/{place}"
        raise Busy(tree.prefix, f"{owner or 'somebody'} is at work there",
                   f"wait for it; if that process is surely gone, remove {where}")
    heir = f"{LOCK}.heir.{owner.token}"
    succeed(tree, folder, me, heir)
    now = owner_of(folder, place)
    if now is None or now.token != owner.token:
        syscalls.unlink(heir, folder=folder)
        raise Again
    syscalls.replace(heir, place, folder=folder)


def claim(folder: int, me: Owner, place: str) -> bool:
    """Whether `place` was free and is ours now. Raises OSError."""
    own = f"{LOCK}.own.{me.token}"
    try:
        syscalls.link(own, place, folder=folder)
    except FileExistsError:
        return os.stat(own, dir_fd=folder).st_nlink > 1 and owner_of(folder, place) == me
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return claim_without_links(folder, me, place)
    return True


def claim_without_links(folder: int, me: Owner, place: str) -> bool:
    """The same where the file system has no hard links: O_EXCL. The file is not whole at once; readers wait for it."""
    try:
        write_owner(folder, place, me)
    except FileExistsError:
        return False
    except OSError:
        with contextlib.suppress(OSError):
            syscalls.unlink(place, folder=folder)
        raise
    return True


def owner_of(folder: int, place: str) -> Owner | None:
    """Who a lock file names; None where it never becomes whole. Raises Again where it is gone."""
    for _ in range(5):
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError as error:
            raise Again from error
        with os.fdopen(descriptor, "rb") as stream:
            owner = parse_owner(stream.read(4096))
        if owner is not None:
            return owner
        time.sleep(PAUSE)
    return None


def write_owner(folder: int, name: str, me: Owner) -> None:
    descriptor = syscalls.create(name, folder=folder)
    try:
        syscalls.write(descriptor, to_bytes(me))
        syscalls.sync(descriptor)
    finally:
        os.close(descriptor)


def clear_remains(folder: int, me: Owner) -> None:
    """Removes what runs left that were killed while they took the lock."""
    for name in os.listdir(folder):
        if not name.startswith((f"{LOCK}.own.", f"{LOCK}.heir.")):
            continue
        with contextlib.suppress(Again, OSError):
            owner = owner_of(folder, name)
            if owner is None or owner.token == me.token or is_dead(owner):
                syscalls.unlink(name, folder=folder)


def release(tree: Tree, me: Owner) -> None:
    """Gives the lock back; what cannot be removed is left to the next run, which finds its owner dead."""
    if not is_store(tree):
        return
    with contextlib.suppress(OSError, Again), tree.folder(STORE) as folder:
        give_back(folder, me)
    with contextlib.suppress(OSError):
        syscalls.remove_folder(STORE, folder=tree.descriptor)


def give_back(folder: int, me: Owner) -> None:
    """Removes the lock where it is ours. Raises Again, OSError."""
    own = f"{LOCK}.own.{me.token}"
    if own in os.listdir(folder):       # taking the lock was interrupted
        syscalls.unlink(own, folder=folder)
    owner = owner_of(folder, LOCK)
    if owner is not None and owner.token == me.token:
        syscalls.unlink(LOCK, folder=folder)


def holder(tree: Tree) -> Owner | None:
    """Who holds the lock and may be alive; None where nobody does."""
    with contextlib.suppress(OSError, Again), tree.folder(STORE) as folder:
        owner = owner_of(folder, LOCK)
        return owner if owner is not None and not is_dead(owner) else None
    return None


def is_store(tree: Tree) -> bool:
    """Whether `.stackfix` is a folder that only we can write."""
    found = tree.status(STORE)
    return found is not None and is_ours_alone(found)


def is_ours_alone(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def make_store(tree: Tree) -> None:
    """Makes `.stackfix`. Raises CannotWrite where something else has that name, Again where it went meanwhile."""
    with contextlib.suppress(FileExistsError):
        syscalls.make_folder(STORE, folder=tree.descriptor, mode=0o700)
    found = tree.status(STORE)          # once: the last owner may remove it at any moment
    if found is None:
        raise Again
    if not is_ours_alone(found):
        raise CannotWrite(f"{tree.prefix}/{STORE}", "is not a folder that only we can write",
                          "look at what it is, and move it away")
