"""`stackfix undo`: the last repair of an environment taken back, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.errors import BadInput, StackfixError

if TYPE_CHECKING:
    from stackfix.apply.records import Forgotten, Undone

UNREADABLE = UNFINISHED = 3     # exit status


@click.command("undo")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is not started.")
@click.option("--all", "whole", is_flag=True, help="All repairs, from the last to the first.")
@click.option("--list", "listing", is_flag=True, help="Only say which repairs can be taken back.")
@click.option("--force", is_flag=True, help="Also where something was changed since; that is then kept aside.")
@click.option("--forget", is_flag=True, help="Take nothing back: end the record of the repair, and delete its copies.")
@common_options
def command(prefix: str | None, python: str | None, **values: Any) -> int:
    """Give back the environment as it was before the last repair: the same bytes, modes and links.

    A repair that was stopped in the middle is taken back first. Needs no network.
    """
    from stackfix.cli.repair_planning import asked_of, prefix_of

    common = take_common(values)
    whole, force, forget = (bool(values[name]) for name in ("whole", "force", "forget"))
    if values["listing"] and (whole or force or forget):
        raise BadInput("--list", "only says which repairs there are", "leave --all, --force and --forget out")
    if forget and force:
        raise BadInput("--forget and --force", "one takes nothing back, the other all", "give one of them")
    place = prefix_of(asked_of(prefix, python))
    if values["listing"]:
        return show_list(place, common)
    if forget:
        show_forgotten(place, common, whole=whole)
        return 0
    return show_undone(place, common, whole=whole, force=force)


def show_list(prefix: str, common: CommonOptions) -> int:
    """The repairs, on stdout, and the exit status: 3 where one cannot be read."""
    from stackfix.apply.errors import JournalDamaged
    from stackfix.apply.undo import remains, transactions, unreadable
    from stackfix.cli.repair_idle import idle
    from stackfix.cli.repair_telling import print_lines, tell_manner
    from stackfix.cli.repair_unfinished import tell_pending, unfinished
    from stackfix.report.repair_ended import transaction_lines
    from stackfix.report.repair_json import transactions_document

    found, lost, over = transactions(prefix), unreadable(prefix), remains(prefix)
    unused = idle(prefix, found)
    try:
        stopped = unfinished(prefix)
    except JournalDamaged:              # it is among the lost
        stopped = None
    if common.as_json:
        show_json(transactions_document(prefix, found, stopped, lost, unused, over))
    else:
        if stopped is not None:
            tell_pending(stopped, verbose=bool(common.verbose))
        print_lines(transaction_lines(prefix, found, tell_manner(common), lost, unused, over))
    return UNREADABLE if lost else 0


def show_undone(prefix: str, common: CommonOptions, *, whole: bool, force: bool) -> int:
    """Takes back, and tells it, also what was taken back before an error.

    The exit status: 3 where nothing but remains was left to be deleted, and they stay.
    """
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
    elif not common.quiet or any(each.kept or each.remains for each in done):
        print_lines(undone_lines(done, tell_manner(common)))
    return UNFINISHED if any(each.number is None and each.remains for each in done) else 0


def show_forgotten(prefix: str, common: CommonOptions, *, whole: bool) -> None:
    """Ends the record of the last repair, or of all, and tells it. Raises as apply.undo.forget does."""
    from stackfix.apply.errors import NothingToUndo
    from stackfix.apply.undo import forget
    from stackfix.cli.repair_telling import print_lines, tell_manner
    from stackfix.cli.repair_unfinished import unfinished
    from stackfix.report.repair_ended import forgotten_lines
    from stackfix.report.repair_json import forgotten_document

    done: list[Forgotten] = []
    try:
        while whole or not done:
            unfinished(prefix)          # raises Busy for one that is being made right now
            done.append(forget(prefix))
    except NothingToUndo:
        pass
    except StackfixError:
        if done and not common.as_json:
            print_lines(forgotten_lines(prefix, done, tell_manner(common)))
        raise
    if common.as_json:
        show_json(forgotten_document(prefix, done))
    elif not common.quiet or any(each.remains for each in done):
        print_lines(forgotten_lines(prefix, done, tell_manner(common)))


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
