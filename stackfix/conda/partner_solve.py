"""One plan solved: the channels' packages, and around them what pip brings. Bounded, and nothing is solved twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stackfix.conda.builds import as_torch_build, torch_builds
from stackfix.conda.flash import flash_plan
from stackfix.conda.layouts_records import Plan, Scene, Wish
from stackfix.conda.names import Provided
from stackfix.conda.pip_bounds import bounds_of
from stackfix.conda.pip_part import pip_packages, pip_part
from stackfix.conda.records import (
    PRIORITIES,
    Channels,
    CondaAsk,
    CondaConflict,
    CondaRecord,
    CondaSolved,
    Spec,
    VirtualPackage,
)
from stackfix.conda.rules import rule_bounds
from stackfix.errors import AnswerIsNo
from stackfix.resolve.clash import Clash
from stackfix.resolve.closure import Closure
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.question import FLASH_ATTN
from stackfix.resolve.records import LockedPackage

MAX_SOLVES = 400        # conda solves for one decision with its explanation
MAX_ROUNDS = 4          # times that a clash of the pip part bounds the conda part anew
HIDDEN = "strict channel priority"      # in rattler's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan that holds."""

    plan: Plan
    asked: CondaAsk
    wishes: tuple[Wish, ...]
    records: tuple[CondaRecord, ...]
    pip: tuple[LockedPackage, ...]
    given_up: tuple[tuple[Wish, CondaConflict], ...] = ()       # what was only wished, and why it cannot be


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Missed:
    """A plan that does not: by the channels' own conflict, or by a clash of what pip brings with what they have."""

    plan: Plan
    wishes: tuple[Wish, ...]
    conflict: CondaConflict | None = None
    clash: Clash | None = None
    text: str | None = None         # where it is neither
    unsure: bool = False            # it was not tried

    @property
    def involved(self) -> Sequence[Wish]:
        """The wishes that the conflict names; all of them where it names none."""
        causes = self.conflict.causes if self.conflict is not None else ()
        named = {cause.spec for cause in causes if cause.spec is not None}
        return [wish for wish in self.wishes if wish.spec in named] or self.wishes


@dataclass(slots=True, kw_only=True)
class Solves:
    """The channels with a memory of what was solved. `spent`: the bound was hit."""

    channels: Channels
    kept: tuple[tuple[str, str], ...] = ()
    exclude_newer: str | None = None
    left: int = MAX_SOLVES
    _known: dict[CondaAsk, CondaSolved | CondaConflict] = field(default_factory=dict)

    def answer(self, ask: CondaAsk) -> CondaSolved | CondaConflict | None:
        """The answer, or None where the bound was hit."""
        if ask not in self._known:
            if self.left <= 0:
                return None
            self.left -= 1
            self._known[ask] = self.channels.solve(ask)
        return self._known[ask]


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
        solved = _solve(plan, solves, virtual, bounds)
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


def _solve(
    plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], bounds: tuple[Wish, ...]
) -> Found | Missed:
    """The channels' part under the strictest terms that have an answer.

    What is only wished goes where the solve fails with it: of what the conflict names the last first, `cuda-version` at
    the end and for the next nearest. Whether anything is to be had at all is asked before.
    """
    limits = (*plan.limits, *bounds)
    nearest, loose = plan.nearest, plan.loose
    given_up: list[tuple[Wish, CondaConflict]] = []
    plain: Found | Missed | None = None
    while True:
        found = _once(plan, solves, virtual, (*plan.wishes, *nearest[:1], *loose), limits)
        if isinstance(found, Found):
            return replace(found, given_up=tuple(given_up))
        wished = (*nearest[:1], *loose)
        if not wished or found.conflict is None:
            return found
        plain = plain or _once(plan, solves, virtual, plan.wishes, limits)
        if isinstance(plain, Missed):
            return plain
        named = {cause.spec for cause in found.conflict.causes}
        last = [wish for wish in wished if wish.spec in named][-1:] or list(wished[-1:])
        given_up.append((last[0], found.conflict))
        if last[0] in nearest:
            nearest = nearest[1:]
        else:
            loose = tuple(wish for wish in loose if wish is not last[0])


def _once(
    plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], wishes: tuple[Wish, ...], limits: tuple[Wish, ...],
) -> Found | Missed:
    """One set of wishes under strict priority, and without it where that hides what would do."""
    conflict: CondaConflict | None = None
    kept = {name for _, name in solves.kept}
    priorities = ("disabled",) if solves.channels.priority == "disabled" else PRIORITIES
    for priority in priorities:
        if priority != priorities[0] and (len(plan.channels) == 1 or conflict is None or not hidden(conflict)):
            continue
        ask = CondaAsk(
            platform=plan.target.platform, channels=plan.channels, specs=tuple(wish.spec for wish in wishes),
            constraints=tuple(wish.spec for wish in limits), virtual=virtual, priority=priority,
            locked=(*solves.kept, *(one for one in plan.favoured if one[1] not in kept)),
            exclude_newer=solves.exclude_newer,
        )
        answer = solves.answer(ask)
        if isinstance(answer, CondaSolved):
            return Found(plan=plan, asked=ask, wishes=(*wishes, *limits), records=answer.records, pip=())
        if answer is None:
            return Missed(plan=plan, wishes=wishes, text="it was not tried: too much was tried before", unsure=True)
        conflict = answer
    return Missed(plan=plan, wishes=(*wishes, *limits), conflict=conflict)


def hidden(conflict: CondaConflict) -> bool:
    """Whether strict priority is part of the conflict: a package of a channel further down would have done."""
    return HIDDEN in conflict.raw


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
