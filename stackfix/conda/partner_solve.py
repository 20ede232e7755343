"""One plan solved: the channels' packages, and around them what pip brings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stackfix.conda.builds import as_torch_build, torch_builds
from stackfix.conda.channel_solve import Found, Missed, Solves, solve_plan
from stackfix.conda.flash import flash_plan
from stackfix.conda.layouts_records import Plan, Scene, Wish
from stackfix.conda.names import Provided
from stackfix.conda.pip_bounds import bounds_of
from stackfix.conda.pip_part import pip_packages, pip_part
from stackfix.conda.records import Spec, VirtualPackage
from stackfix.conda.rules import rule_bounds
from stackfix.errors import AnswerIsNo
from stackfix.resolve.clash import Clash
from stackfix.resolve.closure import Closure
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.question import FLASH_ATTN

__all__ = ["Around", "Found", "Missed", "Solves", "try_plan"]

MAX_ROUNDS = 4          # times that a clash of the pip part bounds the conda part anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the pip part of a plan is solved with."""

    flash: FlashAttn
    plan: FlashPlan | None          # of the pip lock
    closure: Closure | None         # of the pip lock: its versions are preferred


def try_plan(scene: Scene, plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], around: Around) -> (
    Found | Missed
):
    """The plan solved, or what stands in the way of it."""
    bounds: tuple[Wish, ...] = ()
    for _ in range(MAX_ROUNDS):
        solved = solve_plan(plan, solves, virtual, bounds)
        if isinstance(solved, Missed):
            return solved
        more = tuple(Wish(spec=spec) for spec in _rule_bounds(scene, solved))
        if not set(more) - set(bounds):
            made = solved if plan.pip == () else _with_pip(scene, solved, around)
            if isinstance(made, Found) or made.clash is None:
                return made
            more = tuple(Wish(spec=spec) for spec in bounds_of(made.clash, scene.shelf(plan.channels)))
            if not set(more) - set(bounds):
                return replace(made, wishes=(*made.wishes, *bounds))
        bounds = (*bounds, *more)
    return Missed(plan=plan, wishes=plan.wishes, text="what pip brings and what the channels have were not brought"
                                                      f" together within {MAX_ROUNDS} rounds")


def _with_pip(scene: Scene, solved: Found, around: Around) -> Found | Missed:
    """The plan with what pip brings, or what stands in the way of that."""
    plan = solved.plan
    provided = scene.names.provided(solved.records, scene.cuda)
    try:
        closure, with_flash = _pip_closure(scene, solved, around, provided)
    except AnswerIsNo as fault:         # about one file, or a search without end: another layout may do without
        return Missed(plan=plan, wishes=solved.wishes, text=fault.what(), unsure=True)
    if _steps_back(scene, around.plan, with_flash):
        text = (f"flash-attn {scene.flash_attn} is a wheel in the pip lock and would be a second step here: the sha256"
                " of its wheel for this torch build is not known")
        return Missed(plan=plan, wishes=solved.wishes, text=text)
    if isinstance(closure, Closure):
        return replace(solved, pip=pip_packages(
            scene.evidence, scene.question, scene.target, closure, provided=provided, plan=with_flash))
    if closure is None:
        text = f"flash-attn {scene.flash_attn} has no wheel for this torch build"
        return Missed(plan=plan, wishes=solved.wishes, text=text)
    return Missed(plan=plan, wishes=solved.wishes, clash=closure)


def _steps_back(scene: Scene, before: FlashPlan | None, found: FlashPlan | None) -> bool:
    """Whether flash-attn is a wheel in the pip lock and would be built here; a layout that is asked for may do so."""
    return (
        scene.question.request.layout is None and before is not None and found is not None
        and scene.target in before.wheels and scene.target in found.sdists
    )


def _rule_bounds(scene: Scene, found: Found) -> tuple[Spec, ...]:
    """Bounds by rules of the matrix about this torch, which no record states."""
    torch = next(iter(torch_builds(found.records)), None)
    if torch is None:
        return ()
    return rule_bounds(found.records, torch, scene.flash_attn, scene.evidence.matrix, scene.names)


def _pip_closure(
    scene: Scene, found: Found, around: Around, provided: tuple[Provided, ...]
) -> tuple[Closure | Clash | None, FlashPlan | None]:
    """The closure of what pip brings around these packages; None where flash-attn has no wheel for their torch."""
    plan = found.plan
    if plan.choice is None:
        closure = around.closure
        build = None if closure is None else closure.problem.build
        with_flash = around.plan
    else:
        build, with_flash = as_torch_build(plan.choice.torch, scene.evidence.matrix), None
        if scene.flash_attn is not None and not any(line.name == FLASH_ATTN for line in scene.lines):
            archs = scene.question.request.gpu_archs
            with_flash = flash_plan(around.flash, build, scene.target, scene.flash_attn, archs)
            if with_flash is None:
                return None, None
    if build is None:
        raise AssertionError("layout wheels without the closure of the wheels")
    return pip_part(
        scene.evidence, scene.question, build, scene.target, provided=provided, plan=with_flash, flash=around.flash,
        preferred=around.closure,
    ), with_flash
