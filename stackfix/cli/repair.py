"""`stackfix repair`: check, plan, apply, verify. `--dry-run` prints the plan and changes nothing."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.check import rare_collections, tell_of_waiting
from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars
from stackfix.cli.repair_ask import ask, must_be_answered
from stackfix.cli.repair_telling import tell
from stackfix.errors import BadInput, StackfixError, Unreachable

if TYPE_CHECKING:
    from stackfix.apply.records import Applied
    from stackfix.cli.inspecting import Asked
    from stackfix.cli.repair_meanwhile import Meanwhile
    from stackfix.cli.repair_planning import Planned
    from stackfix.report.repair_records import Verified

METHODS = ("auto", "activate", "preload", "symlink", "reinstall")
LONGEST = 86_400.0      # seconds
TRIES = 20              # looks at an environment that others change


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the options say of the repair itself."""

    dry_run: bool
    yes: bool
    method: str
    kernels: bool
    break_system: bool
    timeout: float
    lock: str | None = None         # the lockfile that it goes toward


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
@click.option("--lock", metavar="FILE", help="Install what this lockfile pins: requirements.txt or pylock.toml.")
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
    from stackfix.cli.repair_meanwhile import LookAgain
    from stackfix.cli.repair_planning import asked_of, prefix_of

    common = take_common(options)
    wish = wish_of(options)
    asked = asked_of(options["prefix"], options["python"], options["variables"])
    prefix = prefix_of(asked)
    with Bars(shown=not (common.quiet or common.as_json)) as bars:
        for _ in range(TRIES):
            try:
                return planned_and_ended(asked, wish, common, bars)
            except LookAgain:
                tell(f"another repair of {prefix} came between: it is looked at anew", common)
    raise Unreachable(prefix, "is changed by others all the time", "try again when they are done")


def wish_of(options: dict[str, Any]) -> Wish:
    """Raises BadInput for what cannot be done, and where a change could be asked of nobody."""
    lock, timeout = options["lock"], float(options["timeout"])
    if lock is not None and not os.path.isfile(lock):  # noqa: PTH113 - Path's own raises for a folder that is closed
        raise BadInput(f"--lock {lock}", "no such file", "name a requirements.txt with hashes or a pylock.toml")
    if not (math.isfinite(timeout) and 0 < timeout <= LONGEST):
        raise BadInput(f"--timeout {timeout:g}", "is no time to wait", "give seconds, more than 0: --timeout 300")
    wish = Wish(dry_run=options["dry_run"], yes=options["yes"], method=options["method"],
                kernels=options["kernels"], break_system=options["break_system"], timeout=timeout,
                lock=lock)
    if not wish.dry_run and not wish.yes:
        must_be_answered("repair")
    return wish


def planned_and_ended(asked: Asked, wish: Wish, common: CommonOptions, bars: Bars) -> int:
    """Plans, shows, asks, applies, verifies. The exit status. Raises LookAgain where another repair came between."""
    from stackfix.cli.repair_meanwhile import quiet_prefix
    from stackfix.cli.repair_planning import planned, prefix_of
    from stackfix.cli.repair_shown import show_document, show_plan, tell_rest, tell_unreached
    from stackfix.cli.repair_unfinished import end_unfinished

    waiting = None if common.quiet else tell_of_waiting
    with quiet_prefix(prefix_of(asked), common) as meanwhile:
        end_unfinished(asked, common, dry_run=wish.dry_run, yes=wish.yes)
        meanwhile.begin()
        with planned(asked, common, bars, waiting, method=wish.method, kernels=wish.kernels,
                     break_system=wish.break_system, lock=wish.lock) as found:
            bars.close()
            meanwhile.check()
            if not common.as_json:
                show_plan(found, common, dry_run=wish.dry_run)
                tell_rest(found, common)
            ended = Ended()
            if found.has_steps and not wish.dry_run:
                ended = changed(found, wish, common, meanwhile)
            if common.as_json:
                show_document(found, ended, dry_run=wish.dry_run)
            else:
                tell_unreached(found.plan)
            return status_of(found, ended)


def changed(found: Planned, wish: Wish, common: CommonOptions, meanwhile: Meanwhile | None = None) -> Ended:
    """The plan made and proven; taken back where it does not prove as it was simulated."""
    from stackfix.cli.repair_apply import applied, must_be_changeable
    from stackfix.cli.repair_shown import show_applied, show_proof
    from stackfix.cli.repair_verify import verified

    for each in must_be_changeable(found, break_system=wish.break_system):
        tell(f"process {each.pid} ({each.command}) has files mapped that will change: it goes on with the old ones "
             "until it is started anew", common)
    if not wish.yes and not ask(question(found, common)):
        tell("nothing was changed", common)
        return Ended(declined=True)
    done = applied(found, common, break_system=wish.break_system)
    if meanwhile is not None:
        meanwhile.begin()
    show_applied(done, common)
    proof = verified(found, timeout=wish.timeout)
    if meanwhile is not None and not proof.works:
        meanwhile.check()       # what another repair did is no fault of this one
    if not proof.is_as_promised:
        from stackfix.apply.undo import undo

        undo(found.prefix, forced=True)
    show_proof(found.prefix, proof, common)
    return Ended(applied=done, verified=proof, taken_back=not proof.is_as_promised)


def question(found: Planned, common: CommonOptions) -> str:
    """What is asked; with -q the plan was not shown, and its means are named."""
    means = f" ({', '.join(each.kind for each in found.plan.actions if each.steps)})" if common.quiet else ""
    return f"change {found.prefix}{means}?"


def status_of(found: Planned, ended: Ended) -> int:
    """0 nothing to do, or done; 1 a plan that was not made, a proof that failed, an error that is left.

    3 where something was out of reach that a cure of what is left would have needed; what refuses every change of this
    environment has the status of its error, but for what is only read-only: a dry run is for that, too.
    """
    if ended.verified is not None and not ended.verified.works:
        return 1
    if found.refused is not None and found.has_steps and not ended.applied and not is_read_only(found.refused):
        return found.refused.exit_status
    if not ended.declined and any(each.unreached for each in found.plan.left):
        return Unreachable.exit_status
    if ended.verified is not None:
        return int(any(each.severity == "error" for each in ended.verified.findings))
    return 1 if found.has_steps or found.has_errors else 0


def is_read_only(refused: StackfixError) -> bool:
    """Whether nobody's rights, but the file system or a mode is what refuses."""
    from stackfix.apply.errors import CannotWrite

    return isinstance(refused, CannotWrite)
