"""What the moves of a transaction left in the environment, and what of it is not so any more."""

from __future__ import annotations

from collections.abc import Iterable

from stackfix.apply.journal_records import Move
from stackfix.apply.nodes import difference, node_at
from stackfix.apply.tree import Tree, is_below, join, split
from stackfix.apply.work import CACHE, is_cache
from stackfix.plan.records import Node


def placed_by(moves: Iterable[Move]) -> tuple[dict[str, Node], set[str]]:
    """Path -> what was brought in and is still meant to be there; and the paths that were emptied."""
    placed, emptied = dict[str, Node](), set[str]()
    for each in moves:
        if each.kind == "aside":
            placed = {path: node for path, node in placed.items() if not is_below(path, each.path)}
            emptied.add(each.path)
        else:
            placed.update({join(each.path, entry.path): entry.node for entry in each.entries})
            emptied.discard(each.path)
    return placed, {path for path in emptied if path not in placed}


def differences(tree: Tree, moves: Iterable[Move]) -> tuple[tuple[str, str], ...]:
    """What somebody has changed of what these moves left: (path, how). Compiled modules come and go."""
    placed, emptied = placed_by(moves)
    found = dict[str, str]()
    for path, node in placed.items():
        how = difference(node, node_at(tree, path))
        if how is not None:
            found[path] = how
        elif node.kind == "folder":
            found.update(dict.fromkeys(added_to(tree, path, placed), "was added"))
    for path in emptied:
        if not is_cache(path) and tree.exists(path):
            found[path] = "is there again"
    return tuple(sorted(found.items()))


def added_to(tree: Tree, folder: str, placed: dict[str, Node]) -> tuple[str, ...]:
    """Names in a folder that we brought in which we did not, and which no Python makes by itself."""
    return tuple(path for path in (join(folder, name) for name in tree.names(folder))
                 if path not in placed and not is_derived(tree, path))


def is_derived(tree: Tree, path: str) -> bool:
    """A __pycache__ with nothing but files, or one of these: compiled modules, numba's caches."""
    parent, name = split(path)
    if parent.rpartition("/")[2] == CACHE:
        return not tree.is_folder(path)
    return name == CACHE and tree.is_folder(path) and not any(
        tree.is_folder(join(path, each)) for each in tree.names(path))
