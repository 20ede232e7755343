"""The last transactions of a prefix: told, and taken back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from stackfix.apply.errors import JournalDamaged, NothingToUndo
from stackfix.apply.lock import locked
from stackfix.apply.managed import must_be_ours
from stackfix.apply.records import Forgotten, Transaction, Undone, Unreadable
from stackfix.apply.store import Recorded, clear_trash, discard, home_of, last, load, numbers, trash
from stackfix.apply.taking_back import taken_back
from stackfix.apply.transaction import must_be_finished, readable
from stackfix.apply.tree import Tree

Prefix = str | os.PathLike[str]


def undo(prefix: Prefix, *, forced: bool = False) -> Undone:
    """The last transaction, taken back: the same bytes, modes, links and link counts as before it.

    Raises NothingToUndo, Unfinished, Busy, ChangedSince (not with `forced`: what was changed since is then kept apart,
    and told; ReplacedSince where that cannot be), NotTakenBack where it could not finish; the copies are kept.
    """
    with newest(prefix) as (tree, found):
        return taken_back(tree, found, forced=forced)


def undo_all(prefix: Prefix, *, forced: bool = False) -> tuple[Undone, ...]:
    """All transactions, taken back from the last to the first. Raises as `undo` does."""
    done = [undo(prefix, forced=forced)]
    while transactions(prefix) or unreadable(prefix):
        done.append(undo(prefix, forced=forced))
    return tuple(done)


def forget(prefix: Prefix) -> Forgotten:
    """The last transaction, whose record is ended: nothing in the environment changes, its copies are deleted.

    Raises NothingToUndo, Unfinished, Busy.
    """
    with newest(prefix) as (tree, found):
        return Forgotten(prefix=tree.prefix, number=found.number, actions=found.actions,
                         dropped=tuple(each.path for each in found.kept), remains=discard(tree, found))


@contextmanager
def newest(prefix: Prefix) -> Iterator[tuple[Tree, Recorded]]:
    """The tree, locked, with its last transaction, which is finished. Raises NothingToUndo, Unfinished, Busy."""
    with Tree(prefix) as tree:
        if not numbers(tree):
            raise NothingToUndo(tree.prefix)
        must_be_ours(tree, break_system=True)
        with readable(tree), locked(tree):
            clear_trash(tree)
            must_be_finished(tree)
            found = last(tree)
            if found is None:
                raise NothingToUndo(tree.prefix)
            yield tree, found


def remains(prefix: Prefix) -> tuple[str, ...]:
    """Folders of transactions that are over and could not be deleted, relative to the prefix. Changes nothing."""
    with Tree(prefix) as tree, readable(tree):
        return tuple(trash(tree))


def transactions(prefix: Prefix) -> tuple[Transaction, ...]:
    """The finished transactions, the last one first, without those that cannot be read. Changes nothing."""
    with Tree(prefix) as tree, readable(tree):
        return tuple(
            Transaction(number=each.number, folder=each.home, started=each.begin.started, plan=each.begin.plan,
                        actions=each.actions, kept=each.kept, made=each.made)
            for each in loaded(tree) if isinstance(each, Recorded) and each.begin and each.state == "committed")


def unreadable(prefix: Prefix) -> tuple[Unreadable, ...]:
    """What of the transactions cannot be told, the last one first; one that `pending` tells is not among them."""
    with Tree(prefix) as tree, readable(tree):
        found = loaded(tree)
        unfinished = next(iter(found), None)
        return tuple(unreadable_of(each) for each in found if isinstance(each, Unreadable)
                     or (each.state != "committed" and each is not unfinished))


def loaded(tree: Tree) -> list[Recorded | Unreadable]:
    """All transactions, the last one first."""
    found: list[Recorded | Unreadable] = []
    for number in reversed(numbers(tree)):
        try:
            found.append(load(tree, number))
        except JournalDamaged as error:
            found.append(Unreadable(number=number, folder=home_of(number), reason=error.what(), hint=error.next_step()))
    return found


def unreadable_of(each: Recorded | Unreadable) -> Unreadable:
    """Also one that was stopped, though later ones are there: stackfix leaves none such."""
    if isinstance(each, Unreadable):
        return each
    reason = f"was stopped while {each.state}" if each.lines else "has no journal"
    return Unreadable(number=each.number, folder=each.home, reason=f"{each.home} {reason}, and later ones are there",
                      hint="undo the later ones first")
