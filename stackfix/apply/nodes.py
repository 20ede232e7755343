"""What is at a path, as records that can be kept and compared."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator

from stackfix.apply.journal_records import Entry
from stackfix.apply.tree import Tree, join, split
from stackfix.plan.records import Node

CHUNK = 1 << 20
ABSENT = Node(kind="absent")


def node_at(tree: Tree, path: str) -> Node:
    """What is at `path`, links not followed. Raises OSError where a file cannot be read."""
    found = tree.status(path)
    if found is None:
        return ABSENT
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return Node(kind="link", target=tree.link_target(path))
    if stat.S_ISDIR(found.st_mode):
        return Node(kind="folder", mode=mode)
    if stat.S_ISREG(found.st_mode):
        return Node(kind="file", sha256=sha256_of(tree, path), mode=mode)
    return Node(kind="other", mode=mode)


def sha256_of(tree: Tree, path: str) -> str:
    """Hash of a plain file. Raises OSError."""
    parent, name = split(path)
    digest = hashlib.sha256()
    with tree.folder(parent) as folder:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        while part := stream.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()


def entries_at(tree: Tree, path: str) -> tuple[Entry, ...]:
    """All that is at and below `path`, sorted; the path itself is ""."""
    return tuple(Entry(path=below, node=node_at(tree, join(path, below))) for below in walk(tree, path))


def walk(tree: Tree, path: str, below: str = "") -> Iterator[str]:
    """`below` and all names under it, relative to `path`, a folder before what is in it; links are not entered."""
    yield below
    if tree.is_folder(join(path, below)):
        for name in tree.names(join(path, below)):
            yield from walk(tree, path, join(below, name))


def difference(expected: Node, actual: Node) -> str | None:
    """How `actual` is not what was expected, in words; None where it is. What `expected` does not say is not asked."""
    if expected.kind != actual.kind:
        if actual.kind == "absent":
            return "is gone"
        return f"is a {actual.kind} now" + ("" if expected.kind == "absent" else f", not a {expected.kind}")
    if expected.sha256 not in {None, actual.sha256}:
        return "has other content"
    if expected.target not in {None, actual.target}:
        return f"is a link to {actual.target} now, not to {expected.target}"
    if expected.mode not in {None, actual.mode}:
        return f"has mode {actual.mode or 0:o}, not {expected.mode or 0:o}"
    return None
