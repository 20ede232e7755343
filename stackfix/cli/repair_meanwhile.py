"""Other repairs of the same environment: waited for, and noticed where they came between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from stackfix.apply.errors import Busy, PathsDiffer, Unfinished
from stackfix.apply.lock import holder
from stackfix.apply.lock_owner import Owner, started_at, this_process
from stackfix.apply.store import home_of, numbers
from stackfix.apply.tree import Tree
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_telling import tell

PAUSE = 0.1                     # seconds between two looks
PATIENCE = 600.0                # seconds that a repair of this machine is waited for
Stamp: TypeAlias = tuple[tuple[int, int | None], ...]


class LookAgain(Exception):
    """Another process changed the environment since it was looked at."""


class Meanwhile:
    """Tells whether other processes changed a prefix since `begin`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._stamp = stamp_of(prefix)

    def begin(self) -> None:
        """From here on."""
        self._stamp = stamp_of(self._prefix)

    def is_changed(self) -> bool:
        """Whether one did, or is about to."""
        return worker(self._prefix) is not None or stamp_of(self._prefix) != self._stamp

    def check(self) -> None:
        """Raises LookAgain where one did."""
        if self.is_changed():
            raise LookAgain


@contextmanager
def quiet_prefix(prefix: str, common: CommonOptions) -> Iterator[Meanwhile]:
    """The prefix while nobody else is at work there, at least when it begins.

    What stops us within because somebody came between is raised as LookAgain.
    """
    wait_for_others(prefix, common)
    meanwhile = Meanwhile(prefix)
    try:
        yield meanwhile
    except (Busy, PathsDiffer, Unfinished) as error:
        if meanwhile.is_changed():
            raise LookAgain from error
        raise


def wait_for_others(prefix: str, common: CommonOptions) -> None:
    """Returns when nobody is at work in the prefix. Raises Busy for one that nobody here can see end."""
    end, told = time.monotonic() + PATIENCE, False
    while (owner := worker(prefix)) is not None:
        if not runs_here(owner) or time.monotonic() > end:
            raise Busy(prefix, f"{owner} is changing it right now", "wait for it, and try again")
        if not told:
            tell(f"waiting for {owner}, which is changing {prefix}", common)
            told = True
        time.sleep(PAUSE)


def worker(prefix: str) -> Owner | None:
    """Who holds the lock, and may be alive."""
    with Tree(prefix) as tree:
        return holder(tree)


def runs_here(owner: Owner) -> bool:
    """Whether it is a process of this machine that is seen to run: its end will be seen, too."""
    here = this_process()
    return (owner.machine, owner.boot, owner.space) == (here.machine, here.boot, here.space) \
        and started_at(owner.pid) == owner.started


def stamp_of(prefix: str) -> Stamp:
    """Which repairs there are, and how much each has written down: what changes with every change of the prefix."""
    with Tree(prefix) as tree:
        return tuple((number, journal_size(tree, number)) for number in numbers(tree))


def journal_size(tree: Tree, number: int) -> int | None:
    found = tree.status(f"{home_of(number)}/journal")
    return found.st_size if found is not None else None
