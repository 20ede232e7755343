"""What the moves of a transaction left in the environment, and what somebody has made of it since, path by path.

A path may be as we left it, gone, or as it was before us: to take it back loses nothing. Anything else is a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stackfix.apply.caches import added_to, is_cache
from stackfix.apply.journal_records import Move
from stackfix.apply.nodes import difference, node_at
from stackfix.apply.tree import Tree, is_below, join
from stackfix.plan.records import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """What became of a transaction's paths."""

    differences: tuple[tuple[str, str], ...]    # (path, how): somebody's work, which an undo would lose
    gone: tuple[str, ...]           # what we brought in and is not there any more, or is as it was before us


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


class Before:
    """What was in the environment before a transaction: what it set aside is still kept.

    resumed: an undo was stopped in the middle, so a folder may be put back in part, and get its mode last
    """

    def __init__(self, tree: Tree, home: str, moves: Iterable[Move], *, resumed: bool) -> None:
        self._tree, self._home, self._moves, self._resumed = tree, home, tuple(moves), resumed

    def copy_of(self, path: str) -> str | None:
        """Where what was at `path` lies; None where nothing was there."""
        first = next((each for each in self._moves if is_below(path, each.path)), None)
        if first is None or first.kind != "aside":
            return None         # what is brought in only ever goes to a free name
        copy = join(self._home, first.store, path[len(first.path) + 1:])
        return copy if self._tree.exists(copy) else None

    def is_there_again(self, path: str) -> bool:
        """Whether all that is at `path` is what was there, or new beside that."""
        if is_cache(path):
            return True
        copy = self.copy_of(path)
        if copy is None or not self._is_like(copy, path):
            return False
        return not self._tree.is_folder(path) or all(
            self.copy_of(inner) is None or self.is_there_again(inner)
            for inner in (join(path, name) for name in self._tree.names(path)))

    def _is_like(self, copy: str, path: str) -> bool:
        before, now = node_at(self._tree, copy), node_at(self._tree, path)
        return before == now or (self._resumed and before.kind == now.kind == "folder")


def since(tree: Tree, before: Before, moves: Iterable[Move]) -> Since:
    """What somebody has made of what these moves left. Compiled modules come and go; what others added is theirs."""
    placed, emptied = placed_by(moves)
    found, gone = dict[str, str](), list[str]()
    for path, node in placed.items():
        actual = node_at(tree, path)
        how = difference(node, actual)
        if how is None:
            for inner in added_to(tree, path, placed) if node.kind == "folder" else ():
                if before.copy_of(inner) is not None and not before.is_there_again(inner):
                    found[inner] = "is there again"
        elif actual.kind == "absent" or before.is_there_again(path):
            gone.append(path)
        else:
            found[path] = how
    for path in emptied:
        if tree.exists(path) and not before.is_there_again(path):
            found[path] = "is there again"
    return Since(differences=tuple(sorted(found.items())), gone=tuple(topmost(gone)))


def topmost(paths: Iterable[str]) -> list[str]:
    """The paths, sorted, without those below another one."""
    found: list[str] = []
    for path in sorted(paths, key=lambda each: each.split("/")):
        if not found or not is_below(path, found[-1]):
            found.append(path)
    return found

