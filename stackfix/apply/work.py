"""One transaction while it is worked on: its moves, made and taken back. Each may be asked for again after a kill.

Whether a move is made is read off the transaction's own folder, where nobody else writes: what was set aside is there,
what was brought in is not there any more.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from stackfix.apply.caches import CACHE, added_to, caches_of, is_cache, is_derived, remove_caches_of
from stackfix.apply.journal import Journal
from stackfix.apply.journal_records import Doing, Expanded, Move
from stackfix.apply.lock import STORE
from stackfix.apply.moves import like, make_folders, move, remove, remove_if_empty, sync_folders
from stackfix.apply.nodes import entries_at, node_at
from stackfix.apply.store import Recorded
from stackfix.apply.tree import Tree, is_below, join, split, suffix_of
from stackfix.errors import BadInput
from stackfix.plan.records import Node

OVER = "over"                   # in a transaction's folder: what an undo took out name by name


class Work:
    """The moves of one transaction, and its journal."""

    def __init__(self, tree: Tree, found: Recorded, journal: Journal) -> None:
        self.tree, self.home, self.journal = tree, found.home, journal
        self.number = found.number
        self.moves = list(found.moves)
        self._expanded = set(found.expanded)

    def intend(self, step: int, part: str, moves: tuple[Move, ...]) -> None:
        """Writes down the moves of a step; from here on they may be made."""
        self.journal.append(Doing(step=step, part=part, moves=moves))
        self.moves += moves

    def make(self, moves: Iterable[Move]) -> None:
        """Makes those of the moves that are not made. Raises OSError."""
        touched = set[str]()
        for each in moves:
            store, path = self.store_of(each), each.path
            if each.kind == "aside" and (not self.tree.exists(store) or self._is_partial(each)):
                make_folders(self.tree, split(store)[0], mode=0o700)
                self._move(each, path, store)
            elif each.kind == "place" and self.tree.exists(store):
                self._move(each, store, path)
            touched |= {split(store)[0], split(path)[0]}
        sync_folders(self.tree, touched)

    def take_back(self) -> None:
        """Takes all moves back, the last one first. Raises OSError; what was not yet taken back stays as it is."""
        touched = set[str]()
        for each in reversed(self.moves):
            if each.kind == "place":
                self._bring_out(each)
            elif self.tree.exists(self.store_of(each)):
                self._put_back(each, self.store_of(each), each.path)
            touched |= {split(self.store_of(each))[0], split(each.path)[0]}
        sync_folders(self.tree, touched)

    def is_made(self, each: Move) -> bool:
        """Whether a move is made, be it in part."""
        there = self.tree.exists(self.store_of(each))
        return there if each.kind == "aside" else not there or self._is_partial(each)

    def store_of(self, each: Move) -> str:
        return join(self.home, each.store)

    def _is_partial(self, each: Move) -> bool:
        return each.store in self._expanded and self.tree.exists(each.path)

    def _move(self, each: Move, source: str, destination: str) -> None:
        def expand() -> None:
            self.journal.append(Expanded(path=each.path, store=each.store))
            self._expanded.add(each.store)

        move(self.tree, source, destination, merge=each.store in self._expanded, expand=expand)

    def _bring_out(self, each: Move) -> None:
        """Takes what we brought in out again; what others put into a folder of ours stays in it."""
        if not self.is_made(each):
            return
        remove_caches_of(self.tree, each.path, folder_too=not each.cached)
        if not self.tree.exists(each.path):     # somebody removed it, or it was set apart as changed
            make_folders(self.tree, self.store_of(each), mode=0o700)    # tells that this move is taken back
            return
        ours = {join(each.path, entry.path): entry.node for entry in each.entries}
        if any(self._has_others(path, node, ours) for path, node in ours.items()):
            for path in reversed(ours):
                self._bring_out_one(path)
            make_folders(self.tree, self.store_of(each), mode=0o700)    # tells that this move is taken back
            return
        make_folders(self.tree, split(self.store_of(each))[0], mode=0o700)
        self._move(each, each.path, self.store_of(each))

    def _has_others(self, path: str, node: Node, ours: dict[str, Node]) -> bool:
        """Whether a path is a folder that has not ours alone in it, or one that came back in place of a file."""
        return self.tree.is_folder(path) and (node.kind != "folder" or bool(added_to(self.tree, path, ours)))

    def _bring_out_one(self, path: str) -> None:
        """One name of a folder that others use, too; a folder goes where nothing is left in it."""
        if not self.tree.is_folder(path):
            remove_caches_of(self.tree, path, folder_too=True)
            self._take_out(path)
            return
        if self.tree.names(path) == [CACHE] and is_derived(self.tree, join(path, CACHE)):
            remove(self.tree, join(path, CACHE))
        remove_if_empty(self.tree, path)

    def _take_out(self, path: str) -> None:
        if self.tree.exists(path):
            place = free_name(self.tree, join(self.home, OVER, path))
            make_folders(self.tree, split(place)[0], mode=0o700)
            move(self.tree, path, place, merge=False, expand=lambda: None)

    def _put_back(self, each: Move, store: str, path: str) -> None:
        """Moves what was set aside to its place; what is there again as it was goes, a folder takes it in."""
        if self.tree.is_folder(store) and self.tree.is_folder(path):
            for name in self.tree.names(store):
                self._put_back(each, join(store, name), join(path, name))
            like(self.tree, store, path)
            remove_if_empty(self.tree, store)
            return
        if is_cache(path) and self.tree.exists(path):
            remove(self.tree, path)
        elif self.tree.exists(path):
            if node_at(self.tree, path) != node_at(self.tree, store):       # put there after we had looked
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._take_out(path)
        make_folders(self.tree, split(path)[0])
        self._move(each, store, path)


def free_name(tree: Tree, path: str) -> str:
    """`path`, or with a number where something lies there already."""
    names = (path, *(f"{path}.{number}" for number in range(1, 1000)))
    return next((name for name in names if not tree.exists(name)), path)


def place_move(tree: Tree, home: str, store: str, path: str) -> Move:
    """The move that brings in what lies at `store`, with all that is known of it."""
    check_free_of_store(path)
    cached = suffix_of(path) == ".py" and tree.exists(join(split(path)[0], CACHE))
    return Move(kind="place", path=path, store=store, entries=entries_at(tree, join(home, store)), cached=cached)


def aside_moves(tree: Tree, paths: Iterable[str], first: int) -> tuple[Move, ...]:
    """The moves that set these paths aside, each with the compiled form of a module. `first`: number of moves before.

    Each goes into a folder of its own, under its own path, so that it can be found and put back by hand.
    """
    away = dict.fromkeys(each for path in paths for each in (path, *caches_of(tree, path)))
    for path in away:
        check_free_of_store(path)
    whole = [path for path in away if not any(above in away for above in folders_above(path))]
    return tuple(Move(kind="aside", path=path, store=f"kept/{first + count}/{path}")
                 for count, path in enumerate(whole, start=1))


def folders_above(path: str) -> Iterator[str]:
    """The folders that a path lies in, without the prefix."""
    while path := split(path)[0]:
        yield path


def check_free_of_store(path: str) -> None:
    """Raises BadInput for our own folder: nothing is brought there or set aside, whatever a wheel has."""
    if is_below(path, STORE):
        raise BadInput(path, "is where transactions are kept: nothing may change it")
