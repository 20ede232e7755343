"""The last transactions of a prefix: told, and taken back."""

from __future__ import annotations

import os

from stackfix.apply.errors import NothingToUndo
from stackfix.apply.lock import locked
from stackfix.apply.managed import must_be_ours
from stackfix.apply.records import Transaction, Undone
from stackfix.apply.store import clear_trash, last, load, numbers
from stackfix.apply.taking_back import taken_back
from stackfix.apply.transaction import must_be_finished, readable
from stackfix.apply.tree import Tree

Prefix = str | os.PathLike[str]


def undo(prefix: Prefix, *, forced: bool = False) -> Undone:
    """The last transaction, taken back: the same bytes, modes, links and link counts as before it.

    Raises NothingToUndo, Unfinished, Busy, ChangedSince (not with `forced`: what was changed since is then kept apart,
    and told), NotTakenBack where it could not finish; the copies are kept.
    """
    with Tree(prefix) as tree:
        must_be_ours(tree, break_system=True)
        if not numbers(tree):
            raise NothingToUndo(tree.prefix)
        with readable(tree), locked(tree):
            clear_trash(tree)
            must_be_finished(tree)
            found = last(tree)
            if found is None:
                raise NothingToUndo(tree.prefix)
            return taken_back(tree, found, forced=forced)


def undo_all(prefix: Prefix, *, forced: bool = False) -> tuple[Undone, ...]:
    """All transactions, taken back from the last to the first. Raises as `undo` does."""
    done = [undo(prefix, forced=forced)]
    while transactions(prefix):
        done.append(undo(prefix, forced=forced))
    return tuple(done)


def transactions(prefix: Prefix) -> tuple[Transaction, ...]:
    """The finished transactions, the last one first. Changes nothing."""
    with Tree(prefix) as tree, readable(tree):
        found = [load(tree, number) for number in reversed(numbers(tree))]
        return tuple(
            Transaction(number=each.number, folder=each.home, started=each.begin.started, actions=each.actions,
                        kept=each.kept, made=each.made)
            for each in found if each.begin is not None and each.state == "committed")
