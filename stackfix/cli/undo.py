"""`stackfix undo`: the last repair of an environment taken back, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.errors import BadInput, StackfixError

if TYPE_CHECKING:
    from stackfix.apply.records import Undone

UNREADABLE = 3          # exit status


@click.command("undo")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is not started.")
@click.option("--all", "whole", is_flag=True, help="All repairs, from the last to the first.")
@click.option("--list", "listing", is_flag=True, help="Only say which repairs can be taken back.")
@click.option("--force", is_flag=True, help="Also where something was changed since; that is then kept aside.")
@common_options
def command(prefix: str | None, python: str | None, whole: bool, listing: bool, force: bool, **values: Any) -> int:
    """Give back the environment as it was before the last repair: the same bytes, modes and links.

    A repair that was stopped in the middle is taken back first. Needs no network.
    """
    from stackfix.cli.repair_planning import asked_of, prefix_of

    common = take_common(values)
    if listing and (whole or force):
        raise BadInput("--list", "only says which repairs there are", "leave --all and --force out")
    place = prefix_of(asked_of(prefix, python))
    if listing:
        return show_list(place, common)
    show_undone(place, common, whole=whole, force=force)
    return 0


def show_list(prefix: str, common: CommonOptions) -> int:
    """The repairs, on stdout, and the exit status: 3 where one cannot be read."""
    from stackfix.apply.errors import JournalDamaged
    from stackfix.apply.undo import transactions, unreadable
    from stackfix.cli.repair_idle import idle
    from stackfix.cli.repair_telling import print_lines, tell_manner
    from stackfix.cli.repair_unfinished import tell_pending, unfinished
    from stackfix.report.repair_ended import transaction_lines
    from stackfix.report.repair_json import transactions_document

    found, lost = transactions(prefix), unreadable(prefix)
    unused = idle(prefix, found)
    try:
        stopped = unfinished(prefix)
    except JournalDamaged:              # it is among the lost
        stopped = None
    if common.as_json:
        show_json(transactions_document(prefix, found, stopped, lost, unused))
    else:
        if stopped is not None:
            tell_pending(stopped, verbose=bool(common.verbose))
        print_lines(transaction_lines(prefix, found, tell_manner(common), lost, unused))
    return UNREADABLE if lost else 0


def show_undone(prefix: str, common: CommonOptions, *, whole: bool, force: bool) -> None:
    """Takes back, and tells it. What was taken back before an error is told, too."""
    from stackfix.apply.errors import ChangedSince
    from stackfix.cli.repair_planning import undo_command
    from stackfix.cli.repair_telling import print_lines, tell_manner
    from stackfix.report.printable import printable
    from stackfix.report.repair_ended import undone_lines
    from stackfix.report.repair_json import undone_document

    done: list[Undone] = []
    try:
        take_back_into(done, prefix, whole=whole, force=force)
    except StackfixError as error:
        if isinstance(error, ChangedSince):
            error.command = undo_command(prefix) + " --all" * whole
        if not common.as_json:
            print_lines(undone_lines(done, tell_manner(common)))
        raise
    if common.as_json:
        show_json(undone_document(prefix, done))
    elif not done:
        print_lines(() if common.quiet else (printable(f"nothing to undo: no repair is recorded in {prefix}"),))
    elif not common.quiet or any(each.kept for each in done):
        print_lines(undone_lines(done, tell_manner(common)))


def take_back_into(done: list[Undone], prefix: str, *, whole: bool, force: bool) -> None:
    """The last repair, or all of them, into `done`; nothing where there is none. Raises as apply.undo does."""
    one = take_back_one(prefix, force=force)
    while one is not None:
        done.append(one)
        one = take_back_one(prefix, force=force) if whole and one.number is not None else None


def take_back_one(prefix: str, *, force: bool) -> Undone | None:
    """The unfinished repair, else the last one, else remains of a killed run; None where there is nothing."""
    from stackfix.apply.errors import NothingToUndo
    from stackfix.apply.pending import pending, take_back
    from stackfix.apply.undo import undo
    from stackfix.cli.repair_unfinished import unfinished

    take = undo if unfinished(prefix) is None else take_back
    try:
        return take(prefix, forced=force)
    except NothingToUndo:
        return take_back(prefix, forced=force) if pending(prefix) is not None else None


def show_json(document: dict[str, Any]) -> None:
    from stackfix.report.json import render_json
    from stackfix.report.printable import printable_json

    click.echo(printable_json(render_json(document)))
