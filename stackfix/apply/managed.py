"""Whether an environment is ours to change at all."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import stat

from stackfix.apply.errors import CannotWrite, ExternallyManaged, NotOurs
from stackfix.apply.tree import Tree, is_below, join, split

LIBRARIES = ("lib", "lib64")
# Without these an environment is none any more, whatever a package's RECORD lists
OWN = re.compile(r"pyvenv\.cfg|bin/(?:python[0-9.t]*|pypy[0-9.]*|activate(?:[._].*)?|Activate\.ps1)")
MARK = "EXTERNALLY-MANAGED"     # PEP 668, in the standard library of the Python itself


def must_be_ours(tree: Tree, *, break_system: bool) -> None:
    """Raises ExternallyManaged, NotOurs or CannotWrite where this environment is not to be changed by us."""
    owner = os.fstat(tree.descriptor).st_uid
    if owner != os.geteuid():
        raise NotOurs(tree.prefix, f"belongs to {name_of(owner)}", f"run as {name_of(owner)}; {without_rights(tree)}")
    mark = find_mark(tree)
    if mark is not None and not break_system:
        raise ExternallyManaged(tree.prefix, f"is an externally managed Python ({mark}): its packages belong to the "
                                "system", "make an environment of your own, or say --break-system")
    must_be_writable(tree, "")


def is_own(path: str, site: str) -> bool:
    """Whether a path is the environment's own: its Python, its configuration, what lies beside the site folder."""
    return OWN.fullmatch(path) is not None or (is_below(path, split(site)[0]) and not is_below(path, site))


def find_mark(tree: Tree) -> str | None:
    """The EXTERNALLY-MANAGED of this Python; None where there is none, and in a venv, which has its own packages."""
    if tree.exists("pyvenv.cfg"):
        return None
    for library in LIBRARIES:
        for name in tree.names(library) if tree.is_folder(library) else ():
            if name.startswith("python3") and tree.exists(join(library, name, MARK)):
                return join(library, name, MARK)
    return None


def must_be_writable(tree: Tree, path: str) -> None:
    """Raises NotOurs or CannotWrite where names cannot be made and removed in the folder `path`."""
    shown = join(tree.prefix, path)
    with tree.folder(path) as folder:
        if os.fstatvfs(folder).f_flag & os.ST_RDONLY:
            raise CannotWrite(shown, "is on a file system that is mounted read-only", without_rights(tree))
        found = os.fstat(folder)
        if found.st_uid != os.geteuid():
            raise NotOurs(shown, f"belongs to {name_of(found.st_uid)}", without_rights(tree))
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
            raise CannotWrite(shown, f"cannot be written: its mode is {stat.S_IMODE(found.st_mode):o}",
                              without_rights(tree))
        if found.st_dev != os.fstat(tree.descriptor).st_dev:
            raise CannotWrite(shown, "is on another file system than the environment: nothing can be moved aside there",
                              without_rights(tree))


def must_be_movable(tree: Tree, path: str) -> None:
    """Raises NotOurs or CannotWrite where what is at `path` cannot be moved aside."""
    found = tree.status(path)
    if found is None:
        return
    if found.st_uid != os.geteuid():
        raise NotOurs(join(tree.prefix, path), f"belongs to {name_of(found.st_uid)}", without_rights(tree))
    if stat.S_ISDIR(found.st_mode):
        must_be_writable(tree, path)        # a folder that moves gets another "..", which is a write


def name_of(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def without_rights(tree: Tree) -> str:
    """What can be done by who may change nothing."""
    return f"`stackfix run --prefix {shlex.quote(tree.prefix)} -- CMD` needs no write access"
