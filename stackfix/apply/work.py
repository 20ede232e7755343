"""One transaction while it is worked on: its moves, made and taken back. Each may be asked for again after a kill.

Whether a move is made is read off the transaction's own folder, where nobody else writes: what was set aside is there,
what was brought in is not there any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from stackfix.apply.journal import Journal
from stackfix.apply.journal_records import Doing, Expanded, Move
from stackfix.apply.lock import STORE
from stackfix.apply.moves import make_folders, move, remove, sync_folders
from stackfix.apply.nodes import entries_at
from stackfix.apply.store import Recorded
from stackfix.apply.tree import Tree, is_below, join, split, suffix_of

CACHE = "__pycache__"


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

    def take_back(self, *, forced: bool) -> None:
        """Takes all moves back, the last one first. Raises OSError; what was not yet taken back stays as it is."""
        touched = set[str]()
        for each in reversed(self.moves):
            if each.kind == "place":
                self._bring_out(each, forced=forced)
            elif self.tree.exists(self.store_of(each)):
                self._remove_cache_in_the_way(each.path)
                self._move(each, self.store_of(each), each.path)
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

    def _bring_out(self, each: Move, *, forced: bool) -> None:
        if not self.is_made(each):
            return
        self._remove_caches_of(each)
        if not forced or self.tree.exists(each.path):   # else somebody removed it, or it was set apart as changed
            make_folders(self.tree, split(self.store_of(each))[0], mode=0o700)
            self._move(each, each.path, self.store_of(each))

    def _remove_caches_of(self, each: Move) -> None:
        """Deletes the compiled form, beside it, of a module that we had brought in."""
        if suffix_of(each.path) != ".py":
            return
        for path in caches_of(self.tree, each.path):
            remove(self.tree, path)
        folder = join(split(each.path)[0], CACHE)
        if not each.cached and self.tree.is_folder(folder):
            with contextlib.suppress(OSError):      # not empty: somebody else's
                if not self.tree.names(folder):
                    remove(self.tree, folder)

    def _remove_cache_in_the_way(self, path: str) -> None:
        if is_cache(path) and self.tree.exists(path):
            remove(self.tree, path)


def is_cache(path: str) -> bool:
    """Whether this is the compiled form of a module: made anew by any Python, so nobody's work."""
    return split(path)[0].rpartition("/")[2] == CACHE and suffix_of(path) == ".pyc"


def caches_of(tree: Tree, path: str) -> tuple[str, ...]:
    """The compiled forms of the module at `path` that lie beside it."""
    parent, name = split(path)
    folder = join(parent, CACHE)
    if suffix_of(name) != ".py" or not tree.is_folder(folder):
        return ()
    start = f"{name.removesuffix('.py')}."
    return tuple(join(folder, each) for each in tree.names(folder)
                 if each.startswith(start) and each.endswith(".pyc") and each[len(start):].count(".") <= 2)


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
    """Raises ValueError for our own folder: no plan may reach it, and what made this one is at fault."""
    if is_below(path, STORE):
        raise ValueError(path)
