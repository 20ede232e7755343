"""Repairs of what is not there any more: a package may have been uninstalled since, and stackfix is not told of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stackfix.apply.records import Transaction
from stackfix.apply.undo import transactions
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_planning import undo_command
from stackfix.cli.repair_telling import tell
from stackfix.errors import StackfixError
from stackfix.plan.purpose import gone
from stackfix.report.repair_ended import gone_words


class Disk:
    """Fills plan.purpose.Ground."""

    def __init__(self, prefix: str) -> None:
        self._prefix = Path(prefix)

    def exists(self, path: str) -> bool:
        return (self._prefix / path).exists()

    def names(self, folder: str) -> list[str]:
        try:
            return [path.name for path in (self._prefix / folder).iterdir()]
        except OSError:
            return []


def idle(prefix: str, found: tuple[Transaction, ...]) -> Mapping[int, tuple[str, ...]]:
    """Number of a repair -> what it was made for, where nothing of that is there any more."""
    disk = Disk(prefix)
    return {each.number: names for each in found if (names := gone(each.plan, disk))}


def tell_idle(prefix: str, common: CommonOptions) -> None:
    """A line on stderr for each of them; not what stands in the way of reading them, which is no matter of a check."""
    try:
        found = () if common.quiet else transactions(prefix)
    except StackfixError:
        return
    for number, names in idle(prefix, found).items():
        way = "takes it back" + " after the later ones" * (number != found[0].number)
        tell(f"repair {number} is of no use any more, for {gone_words(names)}; `{undo_command(prefix)}` {way}", common)
