"""What a repair shows: the plan, what became of it, the document; and on stderr what was out of reach."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import click

from stackfix.apply.records import Applied
from stackfix.cli.check import stack_projects
from stackfix.cli.command_shown import command_for
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_planning import Planned
from stackfix.cli.repair_telling import print_lines, tell, tell_manner
from stackfix.cli.repairing_pins import Pins, Rest
from stackfix.cli.terminal import stderr_style
from stackfix.errors import Unreachable
from stackfix.plan.install_choice import HASH_MISMATCH
from stackfix.plan.records import Plan
from stackfix.report.check_json import check_document
from stackfix.report.console import error_lines
from stackfix.report.json import render_json
from stackfix.report.printable import printable_json
from stackfix.report.repair import ends_with, plan_lines, what_is_left
from stackfix.report.repair_ended import applied_lines, surprise_lines, verified_lines
from stackfix.report.repair_json import applied_document, plan_document, refused_document, verified_document
from stackfix.report.repair_records import Verified

if TYPE_CHECKING:
    from stackfix.cli.repair import Ended

MOST = 5                        # releases that differ from a lock, named without --json


class OutOfReach(Unreachable):
    """Something that a cure would have needed."""

    reference: ClassVar[str] = "out-of-reach"

    def what(self) -> str:
        return self.thing


def show_plan(found: Planned, common: CommonOptions, *, dry_run: bool) -> None:
    """The plan for people; with -q only one that is asked for, and what no plan cures."""
    manner = tell_manner(common)
    if not common.quiet or (dry_run and found.has_steps) or (found.has_errors and not found.has_steps):
        refused = found.refusal
        if refused is not None and not dry_run:
            refused = replace(refused, hint=None)       # the error that ends the command has it
        print_lines(plan_lines(found.plan, found.diagnosis, found.text, manner, refused=refused, folder=found.folder))
    elif found.has_steps:
        print_lines(what_is_left(found.plan, found.diagnosis, manner))


def show_applied(done: Applied, common: CommonOptions) -> None:
    """What was changed: told before the proofs, which may take long."""
    if not (common.as_json or common.quiet):
        print_lines(("", *applied_lines(done, tell_manner(common))))


def show_proof(prefix: str, proof: Verified, common: CommonOptions) -> None:
    """The proofs and the way back, or what was not foretold."""
    if common.as_json or (common.quiet and proof.works):
        return
    manner = tell_manner(common)
    print_lines(verified_lines(proof, command_for(prefix, "undo"), manner) if proof.is_as_promised
                else surprise_lines(proof, manner))


def tell_unreached(plan: Plan) -> None:
    """What a cure of something that is left would have needed: an error for each next step, as it ends a command."""
    for each in ends_with(plan.left):
        for line in error_lines(OutOfReach(each.what, "", each.hint), stderr_style()):
            click.echo(line, err=True)


def tell_rest(found: Planned, common: CommonOptions) -> None:
    """On stderr: what of the lockfile differs and no finding is about, and what brings the rest to it."""
    if found.pins is None or any(far.code == HASH_MISMATCH for left in found.plan.left for far in left.unreached):
        return      # `stackfix sync` would not take that file either
    rest = found.pins.rest(found.view, found.plan)
    if rest:
        few = ", ".join(f"{each.name} {each.installed} (pinned {each.locked})" for each in rest[:MOST])
        more = f" and {len(rest) - MOST} more" if len(rest) > MOST else ""
        tell(f"not as {found.pins.name} pins it, and left: {few}{more}; `{found.pins.sync}` brings the whole "
             "environment to the lock", common)


def lock_document(pins: Pins, rest: tuple[Rest, ...]) -> dict[str, Any]:
    """The lockfile, and what the plan leaves that differs from it."""
    return {"file": pins.file, "differs": [asdict(each) for each in rest], "sync": pins.sync}


def show_document(found: Planned, ended: Ended, *, dry_run: bool) -> None:
    """The document that check has, with the plan and what became of it."""
    why = "a dry run changes nothing and loads nothing" if dry_run else "nothing was changed, so nothing was loaded"
    view = found.view
    document = check_document(found.diagnosis, view.environment, view.machine, projects=stack_projects(view), root=None,
                              reason=why)
    document["plan"] = plan_document(found.plan)
    if found.pins is not None:
        document["lock"] = lock_document(found.pins, found.pins.rest(view, found.plan))
    if found.refusal is not None:
        document["refused"] = refused_document(found.refusal)
    elif found.folder is not None:
        document["preload_folder"] = found.folder
    if ended.applied is not None:
        document["applied"] = applied_document(ended.applied, taken_back=ended.taken_back)
    proven = verified_document(ended.verified) if ended.verified is not None else {
        **document["verified"], "findings": None, "surprises": [], "steps": [], "libraries": []}
    click.echo(printable_json(render_json({**document, "verified": proven})))
