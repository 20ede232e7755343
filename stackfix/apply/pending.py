"""A transaction that was stopped in the middle: what it was, and its two ways out."""

from __future__ import annotations

import os

from stackfix.apply.errors import Unfinished
from stackfix.apply.journal import Journal
from stackfix.apply.lock import STORE, holder, locked
from stackfix.apply.managed import must_be_ours
from stackfix.apply.preflight import steps_of
from stackfix.apply.records import Applied, Pending, Undone
from stackfix.apply.steps import Progress, make_steps
from stackfix.apply.store import CHANGED, NUMBER, Recorded, clear_trash, last, names_in_store
from stackfix.apply.taking_back import taken_back
from stackfix.apply.transaction import applied, commit, made_before, readable
from stackfix.apply.tree import Tree
from stackfix.apply.work import Work

Prefix = str | os.PathLike[str]
NOT_STAGED = "it was stopped before all that it brings was there; nothing in the environment was changed"


def pending(prefix: Prefix) -> Pending | None:
    """The transaction that is not finished, or that another process is at; None where all is in order. Changes nothing.

    `complete` or `take_back` ends it. Raises JournalDamaged.
    """
    with Tree(prefix) as tree, readable(tree):
        found, owner = last(tree), holder(tree)
        running = None if owner is None else str(owner)
        if found is not None and found.state != "committed":
            return told(tree, found, running)
        remains = [name for name in names_in_store(tree) if not NUMBER.fullmatch(name) and not name.startswith(CHANGED)]
        empty = tree.exists(STORE) and not names_in_store(tree)
        if not remains and not empty:
            return None
        return Pending(prefix=tree.prefix, number=None, state="clearing", started=None, host=None, pid=None,
                       actions=(), touched=False, can_complete=True, why_not=None, running=running)


def told(tree: Tree, found: Recorded, running: str | None) -> Pending:
    begin = found.begin
    can_complete = found.staged or found.state == "undoing"
    return Pending(
        prefix=tree.prefix, number=found.number, state=found.state, started=begin.started if begin else None,
        host=begin.host if begin else None, pid=begin.pid if begin else None, actions=found.actions,
        touched=bool(found.moves), can_complete=can_complete, why_not=None if can_complete else NOT_STAGED,
        running=running)


def complete(prefix: Prefix, *, progress: Progress | None = None) -> Applied | Undone:
    """The unfinished transaction, made to its end; one that was being undone is undone to its end.

    Needs no network and no installer. Raises Unfinished where only `take_back` can end it.
    """
    with Tree(prefix) as tree:
        must_be_ours(tree, break_system=True)
        with readable(tree), locked(tree):
            clear_trash(tree)
            found = last(tree)
            if found is None or found.state in {"committed", "undoing"}:
                return end_of(tree, found, forced=False)
            if not found.staged or found.begin is None:
                raise Unfinished(tree.prefix, NOT_STAGED)
            return finish(tree, found, progress)


def finish(tree: Tree, found: Recorded, progress: Progress | None) -> Applied:
    """Makes the steps that are left. What goes wrong leaves the transaction unfinished."""
    if found.begin is None:
        raise Unfinished(tree.prefix, NOT_STAGED)
    plan = found.begin.plan
    journal = Journal(tree, found.home)
    try:
        ours = made_before(tree) - set(found.made)
        make_steps(Work(tree, found, journal), steps_of(plan), found.doings, ours, progress)
        commit(tree, plan, journal)
    finally:
        journal.close()
    done = last(tree)
    return applied(tree, done or found, ())


def take_back(prefix: Prefix, *, forced: bool = False) -> Undone:
    """The unfinished transaction, taken back, and what killed runs left cleared. Raises as `undo` does."""
    with Tree(prefix) as tree:
        must_be_ours(tree, break_system=True)
        with readable(tree), locked(tree):
            clear_trash(tree)
            return end_of(tree, last(tree), forced=forced)


def end_of(tree: Tree, found: Recorded | None, *, forced: bool) -> Undone:
    """Takes back what is not finished; where all is, there is nothing to do once the lock is given back."""
    if found is None or found.state == "committed":
        return Undone(prefix=tree.prefix, number=None, actions=(), removed=(), restored=(), kept=(),
                      remains=clear_trash(tree))
    return taken_back(tree, found, forced=forced)
