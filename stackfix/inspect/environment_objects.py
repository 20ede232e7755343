"""Shared objects on disk: extension modules and libraries, owned or not, and the folders they lie in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stackfix.inspect.environment_files import InstalledFiles
from stackfix.inspect.environment_records import Note, SharedObject
from stackfix.inspect.object_names import library_folders, module_of

SHARED_OBJECT = re.compile(r".+\.so(?:\.\d+[a-z]*)*")     # OpenSSL counts in letters: libssl.so.1.1.1k
MAX_DEPTH = 40
OTHER_ENVIRONMENT = frozenset({"pyvenv.cfg", "conda-meta"})
MAX_FOREIGN_FOLDERS = 20_000    # a .pth may add somebody's whole home, and a link may lead to /

Ahead = tuple[str, int, bool]       # folder, depth, whether it is foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A folder to search."""

    path: str
    importable: bool            # on sys.path
    source: bool                # the user's own tree, where other environments and version control may lie


def find_shared_objects(files: InstalledFiles, folders: Iterable[Searched],
                        notes: list[Note]) -> tuple[SharedObject, ...]:
    """Shared objects below the folders, by path."""
    found: dict[str, SharedObject] = {}
    for folder in folders:
        for here, entry in walk(files, folder, notes):
            path = f"{here}/{entry.name}"
            module, tag = module_of(path[len(folder.path) + 1:]) if folder.importable else (None, None)
            if path in found:
                continue
            try:
                size = entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue        # gone since
            link = files.root.link_target(path) if entry.is_symlink() else None
            found[path] = SharedObject(path=path, size=size, link=link, owners=files.owners(path), module=module,
                                       tag=tag)
    return tuple(found[path] for path in sorted(found))


def walk(files: InstalledFiles, folder: Searched, notes: list[Note]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(folder, entry) of each name below `folder` that is a shared object's.

    Linked folders come last and only from a site folder (`nvidia` may be a link to a shared installation), each real
    folder once. What is foreign, a user's tree or what a link leads to, is searched within limits.
    """
    ahead, linked = [(folder.path, 0, folder.source)], list[Ahead]()
    seen, foreign_folders, follows_links = set(), 0, folder.importable and not folder.source
    while ahead or linked:
        here, depth, foreign = ahead.pop() if ahead else pop_first(linked)
        real = files.folders.real(here)
        if real is None or real in seen:
            continue
        seen.add(real)
        names = files.folders.listing(real)
        foreign_folders += foreign
        if foreign_folders > MAX_FOREIGN_FOLDERS:
            reason = f"searched for shared objects in {MAX_FOREIGN_FOLDERS} folders only"
            notes.append(Note(path=folder.path, reason=reason))
            return
        if foreign and depth and OTHER_ENVIRONMENT & names.keys():
            continue
        names = dict(sorted(names.items())) if foreign else names
        if depth < MAX_DEPTH:
            ahead += [(f"{here}/{name}", depth + 1, foreign) for name, entry in names.items()
                      if entry.is_dir(follow_symlinks=False) and is_worth_entering(name, foreign=foreign)]
            linked += [(f"{here}/{name}", depth + 1, True) for name, entry in names.items()
                       if entry.is_symlink() and not is_shared_object(name)] if follows_links else ()
        for name in names:
            if is_shared_object(name):
                entry = names[name]
                if entry.is_symlink() or entry.is_file():
                    yield here, entry


def is_shared_object(name: str) -> bool:
    return ".so" in name and SHARED_OBJECT.fullmatch(name) is not None


def pop_first(linked: list[Ahead]) -> Ahead:
    linked.sort(reverse=True)       # the disk has no order of its own
    return linked.pop()


def is_worth_entering(name: str, *, foreign: bool) -> bool:
    """Version control and tools of a user's tree hide behind a dot; auditwheel once put libraries into `.libs`."""
    return name != "__pycache__" and not (foreign and name.startswith(".") and name != ".libs")


__all__ = ["SHARED_OBJECT", "Searched", "find_shared_objects", "is_shared_object", "library_folders", "module_of",
           "walk"]
