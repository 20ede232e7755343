"""Which moves bring a staged tree into the environment: as few renames as possible, and nothing is replaced unkept."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from stackfix.apply.caches import caches_of
from stackfix.apply.journal_records import Move
from stackfix.apply.nodes import node_at
from stackfix.apply.tree import Tree, join
from stackfix.apply.work import aside_moves, place_move


def merge_moves(tree: Tree, home: str, stage: str, first: int) -> tuple[Move, ...]:
    """The moves, in order, for all that lies in `stage` (below `home`). `first`: number of moves before them."""
    found: list[Move] = []
    for store, path, taken in pairs(tree, home, stage, ""):
        away = ((path,) if taken else ()) + (() if taken else caches_of(tree, path))
        found += aside_moves(tree, away, first + len(found))
        found.append(place_move(tree, home, store, path))
    return tuple(found)


def pairs(tree: Tree, home: str, stage: str, target: str) -> Iterator[tuple[str, str, bool]]:
    """(where a staged name lies, where it goes, whether something else is there), folders that are there entered.

    What is there already, with the same bytes and mode, is left alone, such as an `__init__.py` that wheels share.
    """
    for name in tree.names(join(home, stage)):
        store, path = join(stage, name), join(target, name)
        new, old = tree.status(join(home, store)), tree.status(path)
        if new is None or old is None:
            yield store, path, False
            continue
        if stat.S_ISDIR(new.st_mode):
            inside = folder_behind(tree, path)
            if inside is not None:
                yield from pairs(tree, home, store, inside)
                continue
        if node_at(tree, join(home, store)) != node_at(tree, path):
            yield store, path, True


def folder_behind(tree: Tree, path: str) -> str | None:
    """The folder at `path`, also behind a link that stays inside (lib64 of a venv); None where there is none.

    Raises LeavesPrefix for a link that leads out.
    """
    real = tree.resolve(path, last=True)
    return real if tree.is_folder(real) else None
