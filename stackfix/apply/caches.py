"""Compiled forms of modules: any Python makes them anew, so they are nobody's work, and come and go with the module."""

from __future__ import annotations

from collections.abc import Container

from stackfix.apply.moves import remove, remove_if_empty
from stackfix.apply.tree import Tree, join, split, suffix_of

CACHE = "__pycache__"


def is_cache(path: str) -> bool:
    """Whether this is the compiled form of a module."""
    return split(path)[0].rpartition("/")[2] == CACHE and suffix_of(path) == ".pyc"


def is_derived(tree: Tree, path: str) -> bool:
    """A __pycache__ with nothing but files, or one of these: compiled modules, numba's caches."""
    parent, name = split(path)
    if parent.rpartition("/")[2] == CACHE:
        return not tree.is_folder(path)
    return name == CACHE and tree.is_folder(path) and not any(
        tree.is_folder(join(path, each)) for each in tree.names(path))


def caches_of(tree: Tree, path: str) -> tuple[str, ...]:
    """The compiled forms of the module at `path` that lie beside it."""
    parent, name = split(path)
    folder = join(parent, CACHE)
    if suffix_of(name) != ".py" or not tree.is_folder(folder):
        return ()
    start = f"{name.removesuffix('.py')}."
    return tuple(join(folder, each) for each in tree.names(folder)
                 if each.startswith(start) and each.endswith(".pyc") and each[len(start):].count(".") <= 2)


def remove_caches_of(tree: Tree, path: str, *, folder_too: bool) -> None:
    """Deletes the compiled forms of a module; with `folder_too` also the folder that they were alone in."""
    if suffix_of(path) != ".py":
        return
    for each in caches_of(tree, path):
        remove(tree, each)
    folder = join(split(path)[0], CACHE)
    if folder_too and tree.is_folder(folder):
        remove_if_empty(tree, folder)


def added_to(tree: Tree, folder: str, ours: Container[str]) -> tuple[str, ...]:
    """Paths in a folder that are not among `ours`, and that no Python makes by itself."""
    return tuple(path for path in (join(folder, name) for name in tree.names(folder))
                 if path not in ours and not is_derived(tree, path))
