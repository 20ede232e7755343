"""The conda side of a stack that wheels can be had for: the first layout that holds every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stackfix.conda.candidates import Choice, bundled, choices, searched
from stackfix.conda.driverless import driverless
from stackfix.conda.layouts import mixed_plan, plans_for
from stackfix.conda.layouts_records import Lacking, Plan, Scene
from stackfix.conda.names import NameBook
from stackfix.conda.own_lines import absent, unheld
from stackfix.conda.partner_machine import with_the_machine
from stackfix.conda.partner_quick import plain_conflict
from stackfix.conda.partner_reasons import Miss, Unlike, passed_over, reason_of, refusal_of
from stackfix.conda.partner_solve import Around, Found, Missed, Solves, try_plan
from stackfix.conda.partner_target import conda_target
from stackfix.conda.records import LAYOUTS, Channels, CondaTarget, VirtualPackage
from stackfix.platforms import has_channels
from stackfix.resolve.against import Reason
from stackfix.resolve.assemble import target_lock
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.question import FLASH_ATTN, Question
from stackfix.resolve.records import Asked, StackRequest, Target, TargetLock
from stackfix.resolve.solve import Refusal, Solved
from stackfix.resolve.stack import Stack, cuda_words

MAX_CHOICES = 4         # kinds of torch builds that are tried for one target and layout

Virtual = Callable[[StackRequest, Target, str], tuple[VirtualPackage, ...]]


@dataclass(slots=True, kw_only=True)
class CondaSide:
    """Channels, names and virtual packages: what any search for the conda side stands on."""

    opened: Callable[[tuple[str, ...]], Channels]       # by the names that --channel gives; () for the settings'
    names: NameBook
    virtual: Virtual                                    # of the machine that the lock is for, by the stack's CUDA
    kept: tuple[tuple[str, str], ...] = ()              # (address, name) in the existing lock
    _solves: dict[tuple[tuple[str, ...], str | None], Solves] = field(default_factory=dict)

    def solves(self, request: StackRequest) -> Solves:
        """The solver for a request's channels and date, always the same."""
        key = request.channels, request.exclude_newer
        if key not in self._solves:
            self._solves[key] = Solves(
                channels=self.opened(request.channels), kept=self.kept, exclude_newer=request.exclude_newer)
        return self._solves[key]


class CondaPartner:
    """Fills resolve.solve.Partner with the channels."""

    def __init__(self, side: CondaSide, layouts: tuple[str, ...] = LAYOUTS) -> None:
        self._side, self._layouts = side, layouts

    def against(self, question: Question, stack: Stack, targets: Sequence[Target]) -> Reason | None:
        """That no channel has the Python, or a build of this torch, where the layout needs one."""
        asked, targets = question.request.layout, [target for target in targets if has_channels(target.place)]
        python = self._no_python(question, targets)
        if python is not None:
            return reason_of(question, [python])
        line = self.absent(question)
        if line is not None:
            return line
        if "wheels" in ((asked,) if asked is not None else self._layouts):
            return None
        channels = self._side.solves(question.request).channels
        for target in targets:
            build = stack.builds[target.place]
            if not choices(channels, platform=target.platform, python=target.python, version=stack.text,
                           cuda=build.cuda):
                return reason_of(question, [no_build(channels, asked or "native", target, build.cuda,
                                                     question.python_ask(target.python))])
        return None

    def absent(self, question: Question) -> Reason | None:
        """That a line for channels alone is met by no package of theirs."""
        channels = self._side.solves(question.request).channels
        found = (absent(channels, question, place) for place in question.request.platforms if has_channels(place))
        return next((reason_of(question, [one]) for one in found if one is not None), None)

    def _no_python(self, question: Question, targets: Sequence[Target]) -> Lacking | None:
        channels = self._side.solves(question.request).channels
        for target in targets:
            records = channels.records(searched(channels), target.platform, "python")
            if not any(record.version.startswith(f"{target.python}.") for record in records):
                names = ", ".join(channel.name for channel in searched(channels))
                return Lacking(
                    layout=question.request.layout or self._layouts[0], kind="python",
                    text=f"no Python {target.python} for {target.platform} is in {names}",
                    source=f"records of python in {names}{bundled(channels)}", asks=question.python_ask(target.python))
        return None

    def hold(self, solved: Solved, evidence: Evidence, flash: FlashAttn) -> tuple[CondaTarget, ...] | Refusal:
        """A conda target beside each pip target, all in one layout, or why there is none."""
        asked = solved.question.request.layout
        misses: list[Miss] = []
        for layout in (asked,) if asked is not None else self._layouts:
            held = self._hold_layout(solved, evidence, flash, layout)
            if isinstance(held, tuple):
                passed = passed_over(solved.stack, misses)
                return tuple(replace(one, passed=passed) for one in held)
            misses.extend(held)
        return refusal_of(solved.question, solved.stack, misses)

    def _hold_layout(
        self, solved: Solved, evidence: Evidence, flash: FlashAttn, layout: str
    ) -> tuple[CondaTarget, ...] | list[Miss]:
        held: list[CondaTarget] = []
        for target in sorted(each for each in solved.closures if has_channels(each.place)):
            scene = self._scene(solved, evidence, target)
            around = Around(flash=flash, plan=solved.plan, closure=solved.closures[target])
            pip = target_lock(evidence, solved, target)
            offered = () if layout == "wheels" else self._choices(scene, solved)
            found = hold_target(scene, self._side, layout, offered, around=around, pip=pip)
            if not isinstance(found, CondaTarget):
                return found
            held.append(found)
        return tuple(held)

    def _scene(self, solved: Solved, evidence: Evidence, target: Target) -> Scene:
        chosen = solved.closures[target].chosen.get(FLASH_ATTN)
        covered = solved.plan is not None and solved.plan.covers(target)
        version = solved.plan.version if solved.plan is not None and covered else None
        return Scene(
            question=solved.question, evidence=evidence, names=self._side.names, target=target,
            channels=self._side.solves(solved.question.request).channels,
            flash_attn=version if version is not None or chosen is None else str(chosen.version),
            cuda=solved.stack.builds[target.place].cuda,
            pip_versions={name: one.version.public for name, one in solved.closures[target].chosen.items()},
        )

    def _choices(self, scene: Scene, solved: Solved) -> tuple[Choice, ...]:
        return choices(
            scene.channels, platform=scene.target.platform, python=scene.target.python, version=solved.stack.text,
            cuda=scene.cuda,
        )[:MAX_CHOICES]


def hold_target(
    scene: Scene, side: CondaSide, layout: str, offered: tuple[Choice, ...], *, around: Around,
    pip: TargetLock | None,
) -> CondaTarget | list[Miss]:
    """One target in one layout, or what stood in the way of each try."""
    misses: list[Miss] = []
    solves = side.solves(scene.question.request)
    virtual = side.virtual(scene.question.request, scene.target, scene.cuda)
    offered, barred = driverless(scene, layout, offered, virtual)
    misses.extend(barred)
    for plan in plans_for(scene, layout, offered):
        if isinstance(plan, Lacking):
            misses.append(plan)
            continue
        against_line = unheld(scene, plan)
        if against_line is not None:
            misses.append(against_line)
            continue
        found = _try(scene, plan, solves, virtual, around)
        if isinstance(found, Missed):
            misses.append(with_the_machine(scene, found, virtual))
            continue
        if layout == "mixed" and not found.pip:
            misses.append(_nothing_left(scene))
            continue
        made = conda_target(scene, found, virtual, pip)
        against = tuple(one for one in made.departures if one.breaks)
        if not against:
            return made
        misses.append(Unlike(plan=plan, departures=against))
    if not misses:
        misses.append(no_build(scene.channels, layout, scene.target, scene.cuda,
                               scene.question.python_ask(scene.target.python)))
    return misses


def _nothing_left(scene: Scene) -> Lacking:
    """That a plan is the layout native in truth."""
    asks = scene.question.ask("no-flash-attn")
    out = " (flash-attn is left out, as asked)" if asks else ""
    text = f"nothing of the request is left to pip{out}: {{torch}} is held by the layout native"
    return Lacking(layout="mixed", kind="nothing", text=text, source="layout mixed", asks=asks)


def _try(
    scene: Scene, plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], around: Around
) -> Found | Missed:
    """The plan solved; in layout mixed with ever more left to pip, where the channels have it for another torch."""
    while True:
        known = plain_conflict(scene, plan)
        found = try_plan(scene, plan, solves, virtual, around) if known is None else Missed(
            plan=plan, wishes=plan.wishes, conflict=known)
        if isinstance(found, Found) or plan.layout != "mixed" or plan.choice is None or found.conflict is None:
            return found
        given = tuple(wish.project for wish in found.involved if wish.project is not None)
        more = mixed_plan(scene, plan.choice, (*(plan.pip or ()), *given[-1:]))
        if not given or isinstance(more, Lacking) or more.pip == plan.pip or unheld(scene, more) is not None:
            return found
        plan = more


def no_build(channels: Channels, layout: str, target: Target, cuda: str, asks: tuple[Asked, ...]) -> Lacking:
    """That the channels have no build of the release for the target and this major of CUDA."""
    names = ", ".join(channel.name for channel in searched(channels))
    text = f"{{torch}} has no build for Python {target.python} on {target.platform} and {cuda_words(cuda)} in {names}"
    return Lacking(layout=layout, kind="build", text=text, source=f"records of pytorch in {names}{bundled(channels)}",
                   asks=asks)
