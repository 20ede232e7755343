"""A plan is applied: all of it, or nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from stackfix import __version__
from stackfix.apply.errors import NotTakenBack, StepFailed, Unfinished
from stackfix.apply.journal import Journal
from stackfix.apply.journal_records import FORMAT, Begin, Committed, Staged
from stackfix.apply.lock import locked
from stackfix.apply.managed import must_be_ours
from stackfix.apply.preflight import check_access, check_made, check_plan, check_room, check_unchanged, steps_of
from stackfix.apply.processes import processes_with
from stackfix.apply.records import Applied, Process
from stackfix.apply.stage import StageConda, Stagers, StageWheel, no_conda, stage
from stackfix.apply.steps import Progress, failed, make_steps, words_of
from stackfix.apply.store import Recorded, clear_trash, last, load, new_home, numbers
from stackfix.apply.taking_back import taken_back
from stackfix.apply.tree import Tree
from stackfix.apply.work import Work
from stackfix.errors import StackfixError, Unreachable
from stackfix.plan.records import Plan


def apply_plan(
    plan: Plan, prefix: str | os.PathLike[str], *, installer: StageWheel, progress: Progress | None = None,
    break_system: bool = False, linker: StageConda = no_conda,
) -> Applied:
    """What was changed. All steps are made, or the environment is as it was and an error is raised.

    `installer` brings the wheels, `linker` packages of conda; `progress` is told each step in a few words. Raises
    BadInput (another environment's plan, an externally managed Python without `break_system`), Drifted, Unfinished,
    Busy, NotOurs, CannotWrite, NoSpace, StepFailed, InstallFailed; NotTakenBack where a failed run could not be taken
    back either.
    """
    with Tree(prefix) as tree:
        check_plan(plan, tree)
        if not steps_of(plan):
            return Applied(prefix=tree.prefix, number=None, folder=None, actions=(), made=(), kept=(), processes=())
        must_be_ours(tree, break_system=break_system)
        with readable(tree), locked(tree):
            clear_trash(tree)
            ours = made_before(tree)
            stagers = Stagers(wheels=installer, conda=linker)
            return run(tree, plan, stagers, progress, ours, refuse_or_warn(tree, plan, ours))


def look_ahead(plan: Plan, prefix: str | os.PathLike[str], *, break_system: bool = False) -> tuple[Process, ...]:
    """The processes with files mapped that change. Raises what `apply_plan` would, as far as it can be known now.

    Changes nothing, takes no lock, and brings no wheel.
    """
    with Tree(prefix) as tree:
        check_plan(plan, tree)
        if not steps_of(plan):
            return ()
        must_be_ours(tree, break_system=break_system)
        with readable(tree):
            return refuse_or_warn(tree, plan, made_before(tree))


def refuse_or_warn(tree: Tree, plan: Plan, ours: frozenset[str]) -> tuple[Process, ...]:
    """The same for an open tree."""
    must_be_finished(tree)
    check_unchanged(plan, tree)
    away = check_access(plan, tree, ours)
    check_room(plan, tree)
    return processes_with(tree.prefix, away)


@contextmanager
def readable(tree: Tree) -> Iterator[None]:
    """Turns what the system says of a file into an error that names it."""
    try:
        yield
    except OSError as error:
        raise Unreachable(f"{tree.prefix}/{error.filename or ''}".rstrip("/"), error.strerror or str(error),
                          "nothing was changed") from error


def must_be_finished(tree: Tree) -> None:
    """Raises Unfinished where an earlier transaction was stopped in the middle."""
    found = last(tree)
    if found is not None and found.state != "committed":
        raise Unfinished(tree.prefix, f"an earlier change was stopped while {found.state} ({found.home})")


def made_before(tree: Tree) -> frozenset[str]:
    """What earlier transactions brought in: it goes along with a package that it lies in."""
    return frozenset(path for number in numbers(tree) for path in load(tree, number).made)


def run(
    tree: Tree, plan: Plan, stagers: Stagers, progress: Progress | None, ours: frozenset[str],
    processes: tuple[Process, ...],
) -> Applied:
    """Makes the plan in a new transaction, and takes it back where anything at all stops it."""
    number, home = new_home(tree)
    journal = None
    try:
        journal = Journal(tree, home, fresh=True)
        begin(journal, number, plan)
        stage_all(tree, home, plan, stagers, progress)
        journal.append(Staged(steps=len(steps_of(plan))))
        work = Work(tree, load(tree, number), journal)
        make_steps(work, steps_of(plan), (), ours, progress)
        commit(tree, plan, journal)
    except BaseException as error:
        if journal is not None:
            journal.close()
        give_up(tree, number, error)
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise StepFailed(place_of(tree, error), why, "everything was taken back") from error
        raise
    journal.close()
    return applied(tree, load(tree, number), processes)


def place_of(tree: Tree, error: OSError) -> str:
    """What an error of the system is about. A bare name is one in some folder, and tells nothing."""
    name = error.filename
    return f"{tree.prefix}/{name}" if isinstance(name, str) and "/" in name.strip("/") else tree.prefix


def begin(journal: Journal, number: int, plan: Plan) -> None:
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    journal.append(Begin(format=FORMAT, version=__version__, number=number, started=started,
                         host=socket.gethostname(), pid=os.getpid(), plan=plan))


def stage_all(tree: Tree, home: str, plan: Plan, stagers: Stagers, progress: Progress | None) -> None:
    """Makes all that the steps bring, wheels first: what takes long and may fail comes before all else."""
    for number, step in enumerate(steps_of(plan), start=1):
        try:
            if progress is not None:
                progress(f"prepare: {words_of(step)}")
            stage(tree, home, number, step, stagers)
        except OSError as error:
            raise failed(tree, step, error) from error


def commit(tree: Tree, plan: Plan, journal: Journal) -> None:
    """Looks whether all is as planned, and writes down that it is done. Raises StepFailed, OSError."""
    wrong = check_made(plan, tree)
    if wrong:
        path, how = wrong[0]
        raise StepFailed(tree.prefix, f"{path} {how} after all steps, as the plan does not foresee",
                         "everything was taken back; this is a fault of the plan")
    journal.append(Committed())


def give_up(tree: Tree, number: int, error: BaseException) -> None:
    """Takes the transaction back. Raises NotTakenBack where that cannot be done."""
    try:
        taken_back(tree, load(tree, number), forced=True)
    except (OSError, StackfixError) as second:
        why = second.what() if isinstance(second, StackfixError) else str(second)
        raise NotTakenBack(tree.prefix, f"{error}; and then it could not be taken back: {why}",
                           second.next_step() if isinstance(second, StackfixError) else None) from error


def applied(tree: Tree, found: Recorded, processes: tuple[Process, ...]) -> Applied:
    actions = found.begin.plan.actions if found.begin else ()
    return Applied(prefix=tree.prefix, number=found.number, folder=found.home,
                   actions=tuple(action.id for action in actions if action.steps),
                   made=found.made, kept=found.kept, processes=processes)
