"""An earlier repair that was stopped in the middle: told first, and ended before anything else is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import click

from stackfix.apply.errors import Busy
from stackfix.apply.pending import complete, pending, take_back
from stackfix.apply.records import Pending
from stackfix.cli.command_shown import command_for
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_ask import ask
from stackfix.cli.repair_planning import prefix_of
from stackfix.cli.repair_telling import talk_manner, tell
from stackfix.errors import AnswerIsNo
from stackfix.report.repair_ended import pending_lines

if TYPE_CHECKING:
    from stackfix.cli.inspecting import Asked


class LeftUnfinished(AnswerIsNo):
    """A repair that was stopped in the middle, and that was not to be ended now."""

    reference: ClassVar[str] = "unfinished-repair"

    def what(self) -> str:
        return f"{self.args[0]}: an earlier repair was stopped in the middle"

    def next_step(self) -> str | None:
        repair, undo = (command_for(self.args[0], word) for word in ("repair", "undo"))
        return f"`{repair}` completes it, `{undo}` takes it back"


def end_unfinished(asked: Asked, common: CommonOptions, *, dry_run: bool, yes: bool) -> None:
    """Completes an earlier repair, or takes it back where it cannot be completed, once that was agreed to.

    Raises LeftUnfinished where it was not, and Busy where another process is at it.
    """
    prefix = prefix_of(asked)
    found = unfinished(prefix)
    if found is None:
        from stackfix.cli.repair_idle import tell_idle

        tell_idle(prefix, common)
        return
    tell_pending(found, verbose=bool(common.verbose))
    how = "complete it" if found.can_complete else "take it back"
    if dry_run or not (yes or ask(f"{how}?")):
        raise LeftUnfinished(prefix)
    if found.can_complete:
        complete(prefix)
        tell("it was completed", common)
    else:
        take_back(prefix, forced=True)
        tell("it was taken back: the environment is as it was before it", common)


def unfinished(prefix: str) -> Pending | None:
    """A repair that nobody ends. Raises Busy for one that is being made right now."""
    found = pending(prefix)
    while found is not None and found.running is None and (again := pending(prefix)) != found:
        found = again           # somebody ended it between two looks
    if found is not None and found.running is not None:
        raise Busy(prefix, f"{found.running} is changing it right now", "wait for it, and try again")
    return found if found is not None and found.number is not None else None


def tell_pending(found: Pending, *, verbose: bool) -> None:
    """On stderr."""
    for line in pending_lines(found, talk_manner(verbose=verbose)):
        click.echo(line, err=True)
