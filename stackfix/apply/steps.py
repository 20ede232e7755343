"""The steps of a plan, made one after the other; also taken up again where a kill cut them short."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stackfix.apply.conda import conda_paths
from stackfix.apply.distributions import paths_to_set_aside
from stackfix.apply.errors import StepFailed
from stackfix.apply.journal_records import Doing, Move
from stackfix.apply.merge import merge_moves
from stackfix.apply.stage import stage_of
from stackfix.apply.tree import Tree
from stackfix.apply.work import Work, aside_moves
from stackfix.plan.records import InstallConda, InstallWheel, MakeLink, SetAside, Step

REMOVE, ADD = "remove", "add"
Progress = Callable[[str], None]


def make_steps(work: Work, steps: tuple[Step, ...], done: Iterable[Doing], ours: frozenset[str],
               progress: Progress | None) -> None:
    """Makes all steps; what `done` tells to be intended is not thought over again. Raises StepFailed."""
    intended = {(doing.step, doing.part): doing.moves for doing in done}
    for number, step in enumerate(steps, start=1):
        if progress is not None:
            progress(words_of(step))
        for part in parts_of_step(step):
            try:
                moves = intended.get((number, part))
                if moves is None:
                    moves = moves_for(work, number, step, part, ours)
                    work.intend(number, part, moves)
                work.make(moves)
            except OSError as error:
                raise failed(work.tree, step, error) from error


def parts_of_step(step: Step) -> tuple[str, ...]:
    """What is there must be gone before it can be told what is in the way."""
    if isinstance(step, InstallWheel | InstallConda):
        return (REMOVE, ADD)
    return (REMOVE,) if isinstance(step, SetAside) else (ADD,)


def moves_for(work: Work, number: int, step: Step, part: str, ours: frozenset[str]) -> tuple[Move, ...]:
    """The moves of one part of a step, for the environment as it is now. Raises OSError or StepFailed."""
    tree, before = work.tree, len(work.moves)
    if part == ADD:
        return merge_moves(tree, work.home, stage_of(number), before)
    if isinstance(step, InstallWheel):
        return aside_moves(tree, paths_to_set_aside(tree, step, tree.resolve(step.site, last=True), ours), before)
    if isinstance(step, InstallConda):
        return aside_moves(tree, conda_paths(tree, step, ours), before)
    if not isinstance(step, SetAside) or not tree.exists(tree.resolve(step.path)):
        raise StepFailed(words_of(step), "nothing is there")
    return aside_moves(tree, [tree.resolve(step.path)], before)


def words_of(step: Step) -> str:
    """The step as a few words."""
    if isinstance(step, InstallWheel | InstallConda):
        return f"install {step.project} {step.version}"
    if isinstance(step, SetAside):
        return f"set aside {step.path}"
    return f"{'link' if isinstance(step, MakeLink) else 'write'} {step.path}"


def failed(tree: Tree, step: Step, error: OSError) -> StepFailed:
    """The error of a step, without our own folders in it."""
    return StepFailed(f"{tree.prefix}: {words_of(step)}", error.strerror or str(error), "everything was taken back")
