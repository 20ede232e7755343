"""`stackfix repair`: check, plan, apply, verify. `--dry-run` prints the plan and changes nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.check import rare_collections, stack_projects, tell_of_waiting
from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars
from stackfix.cli.repair_ask import ask, must_be_answered
from stackfix.cli.repair_telling import print_lines, tell, tell_manner
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.apply.records import Applied
    from stackfix.cli.inspecting import Asked
    from stackfix.cli.repair_planning import Planned
    from stackfix.report.repair_records import Verified

METHODS = ("auto", "activate", "preload", "symlink", "reinstall")
LONGEST = 86_400.0      # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the options say of the repair itself."""

    dry_run: bool
    yes: bool
    method: str
    kernels: bool
    break_system: bool
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of a plan. All None: nothing was changed."""

    applied: Applied | None = None
    verified: Verified | None = None
    taken_back: bool = False
    declined: bool = False


@click.command("repair")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True,
              help="A variable of the process to repair for, above those of the shell. May be repeated.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing; exit 1 where there is one.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the change.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, help="Limits the means.")
@click.option("--lock", metavar="FILE", help="Repair toward this lockfile (not supported yet).")
@click.option("--jupyter", "kernels", is_flag=True,
              help="Write variables of activation into the kernel.json files of the environment, too.")
@click.option("--break-system", is_flag=True, help="Also change a Python that a package manager of the system owns.")
@click.option("--timeout", metavar="S", type=float, default=120.0, show_default=True,
              help="Seconds for each child process that proves the repair.")
@common_options
def command(**options: Any) -> int:
    """Cure what `check` finds by the smallest change inside of the environment, and prove it.

    The plan is simulated before it is offered, made as one transaction that `stackfix undo` takes back, and then
    proven: by the simulation made anew, a real load, and with a GPU by real kernels.
    """
    with rare_collections():
        return repair(options)


def repair(options: dict[str, Any]) -> int:
    """The exit status."""
    from stackfix.cli.repair_planning import asked_of
    from stackfix.cli.repair_unfinished import end_unfinished

    common = take_common(options)
    wish = wish_of(options)
    asked = asked_of(options["prefix"], options["python"], options["variables"])
    end_unfinished(asked, common, dry_run=wish.dry_run, yes=wish.yes)
    with Bars(shown=not (common.quiet or common.as_json)) as bars:
        return planned_and_ended(asked, wish, common, bars)


def wish_of(options: dict[str, Any]) -> Wish:
    """Raises BadInput for what cannot be done, and where a change could be asked of nobody."""
    if options["lock"] is not None:
        raise BadInput(f"--lock {options['lock']}", "is not supported by repair yet",
                       f"`stackfix sync {options['lock']}` brings the whole environment to a lockfile")
    timeout: float = options["timeout"]
    if not (math.isfinite(timeout) and 0 < timeout <= LONGEST):
        raise BadInput(f"--timeout {timeout:g}", "is no time to wait", "give seconds, more than 0: --timeout 300")
    wish = Wish(dry_run=options["dry_run"], yes=options["yes"], method=options["method"],
                kernels=options["kernels"], break_system=options["break_system"], timeout=timeout)
    if not wish.dry_run and not wish.yes:
        must_be_answered("repair")
    return wish


def planned_and_ended(asked: Asked, wish: Wish, common: CommonOptions, bars: Bars) -> int:
    """Plans, shows, asks, applies, verifies. The exit status."""
    from stackfix.cli.repair_planning import planned

    waiting = None if common.quiet else tell_of_waiting
    with planned(asked, common, bars, waiting, method=wish.method, kernels=wish.kernels) as found:
        bars.close()
        if not common.as_json:
            show_plan(found, wish, common)
        ended = Ended()
        if found.has_steps and not wish.dry_run:
            ended = changed(found, wish, common)
        if common.as_json:
            show_document(found, ended, dry_run=wish.dry_run)
        return status_of(found, ended)


def changed(found: Planned, wish: Wish, common: CommonOptions) -> Ended:
    """The plan made and proven; taken back where it does not prove as it was simulated."""
    from stackfix.cli.repair_apply import applied, must_be_changeable
    from stackfix.cli.repair_verify import verified

    for each in must_be_changeable(found, break_system=wish.break_system):
        tell(f"process {each.pid} ({each.command}) has files mapped that will change: it goes on with the old ones "
             "until it is started anew", common)
    if not wish.yes and not ask(f"change {found.prefix}?"):
        tell("nothing was changed", common)
        return Ended(declined=True)
    done = applied(found, common, break_system=wish.break_system)
    show_applied(done, common)
    proof = verified(found, timeout=wish.timeout)
    if not proof.is_as_promised:
        from stackfix.apply.undo import undo

        undo(found.prefix, forced=True)
    show_proof(found.prefix, proof, common)
    return Ended(applied=done, verified=proof, taken_back=not proof.is_as_promised)


def show_plan(found: Planned, wish: Wish, common: CommonOptions) -> None:
    """The plan for people, on stdout; with -q only one that is asked for, and what no plan cures."""
    from stackfix.report.repair import plan_lines

    asked = wish.dry_run or not wish.yes
    if not common.quiet or (asked if found.has_steps else found.has_errors):
        print_lines(plan_lines(found.plan, found.diagnosis, found.text, tell_manner(common)))


def show_applied(done: Applied, common: CommonOptions) -> None:
    """What was changed, on stdout: told before the proofs, which may take long."""
    from stackfix.report.repair_ended import applied_lines

    if not (common.as_json or common.quiet):
        print_lines(("", *applied_lines(done, tell_manner(common))))


def show_proof(prefix: str, proof: Verified, common: CommonOptions) -> None:
    """The proofs and the way back, or what was not foretold, on stdout."""
    from stackfix.cli.repair_planning import undo_command
    from stackfix.report.repair_ended import surprise_lines, verified_lines

    if common.as_json or (common.quiet and proof.works):
        return
    manner = tell_manner(common)
    print_lines(verified_lines(proof, undo_command(prefix), manner) if proof.is_as_promised
                else surprise_lines(proof, manner))


def show_document(found: Planned, ended: Ended, *, dry_run: bool) -> None:
    """The document that check has, with the plan and what became of it."""
    from stackfix.report.check_json import check_document
    from stackfix.report.json import render_json
    from stackfix.report.printable import printable_json
    from stackfix.report.repair_json import applied_document, plan_document, verified_document

    why = "a dry run changes nothing and loads nothing" if dry_run else "nothing was changed, so nothing was loaded"
    view = found.view
    document = check_document(found.diagnosis, view.environment, view.machine, projects=stack_projects(view), root=None,
                              reason=why)
    document["plan"] = plan_document(found.plan)
    if ended.applied is not None:
        document["applied"] = applied_document(ended.applied, taken_back=ended.taken_back)
    proven = verified_document(ended.verified) if ended.verified is not None else {
        **document["verified"], "findings": None, "surprises": [], "steps": []}
    click.echo(printable_json(render_json({**document, "verified": proven})))


def status_of(found: Planned, ended: Ended) -> int:
    """0 nothing to do, or done; 1 a plan that was not made, a proof that failed, an error that is left."""
    if ended.verified is not None:
        return 0 if ended.verified.works and not any(
            each.severity == "error" for each in ended.verified.findings) else 1
    return 1 if found.has_steps or found.has_errors else 0
