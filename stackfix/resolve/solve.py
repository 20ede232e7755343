"""The search: stacks in their order, and under each the closure of every target. Joint: all targets or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from packaging.specifiers import SpecifierSet

from stackfix.quick import dataclass, replace
from stackfix.resolve.against import Reason, index_words, page_words, reasons_against, torch_reasons
from stackfix.resolve.clash import Clash
from stackfix.resolve.closure import Closure, solve_closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.flash_reasons import flash_plans, no_wheel_reason
from stackfix.resolve.pep508 import admits
from stackfix.resolve.question import FLASH_ATTN, TORCH, Question
from stackfix.resolve.records import Target
from stackfix.resolve.roots import closure_problem
from stackfix.resolve.stack import Stack, places_without_wheels, pythons_to_try, stacks
from stackfix.resolve.torch_family import torch_path

if TYPE_CHECKING:
    from stackfix.conda.records import CondaTarget

@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """A stack with the closure of every target."""

    question: Question
    stack: Stack
    plan: FlashPlan | None
    closures: Mapping[Target, Closure]
    newer: tuple[Stack, ...]        # newer releases within what was asked that the matrix has no row for
    conda: tuple[CondaTarget, ...] = ()     # the other side, where one was asked
    flash_attn_out: str | None = None       # why it is left out, where it is for the other side's sake

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the solution is for, sorted; of the channels' side alone where no wheels were solved."""
        return tuple(sorted(self.closures)) or tuple(sorted(one.target for one in self.conda))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refusal:
    """Why one stack was passed over: any one of `reasons` is enough, or the closure clashes."""

    stack: Stack
    reasons: tuple[Reason, ...] = ()
    clash: Clash | None = None
    unsure: bool = False            # not everything was tried: it is no proof


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """No stack. One refusal for each that was looked at; `universal`: the last clash has nothing to do with torch."""

    question: Question
    refusals: tuple[Refusal, ...]
    universal: bool = False

    @property
    def unsure(self) -> bool:
        """Whether a stack was refused that might do: a bound was hit before."""
        return any(refusal.unsure for refusal in self.refusals)


class Partner(Protocol):
    """Another side that must hold the stack too: asked for every stack and Python that wheels can be had for."""

    def against(self, question: Question, stack: Stack, targets: Sequence[Target]) -> Reason | None:
        """Why it cannot, where that can be told before the wheels' closures are solved."""

    def hold(self, solved: Solved, evidence: Evidence, flash: FlashAttn) -> tuple[CondaTarget, ...] | Refusal:
        """What the other side locks, a record for each target, or why it cannot hold this stack."""


class Solver(Protocol):
    """A search for a stack."""

    def __call__(self, evidence: Evidence, flash: FlashAttn, question: Question, /) -> Solved | Failure:
        """The first stack in order that answers the question, or why each does not."""


def solve(
    evidence: Evidence, flash: FlashAttn, question: Question, partner: Partner | None = None,
) -> Solved | Failure:
    """The first stack in order that answers the question (and that the partner holds), or why each does not."""
    refusals: list[Refusal] = []
    limits: list[tuple[SpecifierSet, Clash]] = []
    for stack in stacks(evidence, question):
        evidence.effort.steps += 1
        reasons = tuple(reasons_against(evidence, question, stack))
        if reasons:
            refusals.append(Refusal(stack=stack, reasons=reasons))
            continue
        ruled_out = next((clash for specifier, clash in limits if not admits(specifier, stack.version)), None)
        if ruled_out is not None:
            refusals.append(Refusal(stack=stack, clash=ruled_out))
            continue
        if evidence.on_stack is not None:
            evidence.on_stack(stack)
        found = _try_stack(evidence, flash, question, stack, partner)
        if isinstance(found, Solved):
            return found
        refusals.append(found)
        if found.clash is None:
            continue
        parts = found.clash.depends_on()
        if not parts & {"torch", "flash-attn"} and ("python" not in parts or question.request.pythons):
            return Failure(question=question, refusals=tuple(refusals), universal=True)
        if "python" not in parts or question.request.pythons:
            limits.extend((need.specifier, found.clash) for need in found.clash.torch_limits())
    return Failure(question=question, refusals=tuple(refusals))


def _try_stack(
    evidence: Evidence, flash: FlashAttn, question: Question, stack: Stack, partner: Partner | None
) -> Solved | Refusal:
    """The stack solved, with the first Python and flash-attn that let it."""
    last: Refusal | None = None
    for pythons in pythons_to_try(evidence, question, stack):
        targets = question.targets(pythons)
        reason = partner.against(question, stack, targets) if partner is not None else None
        found: Solved | Refusal = Refusal(stack=stack, reasons=(reason,)) if reason is not None else _try_targets(
            evidence, flash, question, stack, targets)
        if partner is not None and isinstance(found, Solved):
            found = _hold(evidence, flash, found, partner)
        if isinstance(found, Solved):
            return found
        last = found if last is None or _nearer(found, last) else last
        if found.clash is not None and "python" not in found.clash.depends_on():
            return found
    if last is not None:
        return last
    return Refusal(stack=stack, reasons=(_no_python(evidence, question, stack),))


def _no_python(evidence: Evidence, question: Question, stack: Stack) -> Reason:
    """That the release has wheels of no Python for some place, or of no one Python for all."""
    lacking = places_without_wheels(evidence, question, stack)
    places = lacking or question.request.platforms
    of_these = [build for place in places if (build := stack.builds.get(place)) is not None]
    build = next((each for each in of_these if torch_path(each) is not None), None)
    one = "" if lacking else " of one Python"
    says = f"has no wheel{one} on the {index_words(build)} for {', '.join(places)}"
    if build is not None and question.request.exclude_newer is not None:
        says += " that is known to be uploaded before the --exclude-newer date: the torch index states none"
    says += next((words for place in lacking if (words := _newer_system(evidence, question, stack, place))), "")
    asks = tuple(asked for place in places for asked in question.platform_ask(place))
    return Reason(kind="index", asks=(*asks, *question.file_asks()), says=says, source=page_words(evidence, build))


def _newer_system(evidence: Evidence, question: Question, stack: Stack, place: str) -> str:
    """What its wheels for the place need of the system, where that is why none is taken; else nothing."""
    build = stack.builds.get(place)
    if build is None:
        return ""
    targets = [question.target(python, place) for python in (question.request.default_python, *build.pythons)]
    told = (evidence.project_for(TORCH, target, build).newer_system(stack.version) for target in targets)
    return next(filter(None, told), "")


def _hold(evidence: Evidence, flash: FlashAttn, solved: Solved, partner: Partner) -> Solved | Refusal:
    """The solution with what the partner locks beside it, or why that cannot be.

    A flash-attn that nobody asked for is left out of both where the partner cannot have it.
    """
    while True:
        finished = with_hashes(solved, flash)
        if finished is not None:
            held = partner.hold(finished, evidence, flash)
            if not isinstance(held, Refusal):
                return replace(finished, conda=held)
            plain = _without_flash_attn(evidence, flash, finished) if _names_flash_attn(held) else None
            if plain is None:
                return held
            again = partner.hold(plain, evidence, flash)    # nobody asked for flash-attn: what is so without is why
            return again if isinstance(again, Refusal) else replace(plain, conda=again)
        other = _try_targets(evidence, flash, solved.question, solved.stack, list(solved.closures))
        if isinstance(other, Refusal):
            return other
        solved = other


def _names_flash_attn(refusal: Refusal) -> bool:
    """Whether flash-attn has a part in it: else the same closures without it would be solved for nothing."""
    said = (text for reason in refusal.reasons for text in (reason.says, *(cause.text for cause in reason.chain)))
    return any(FLASH_ATTN in text for text in said)


def _without_flash_attn(evidence: Evidence, flash: FlashAttn, solved: Solved) -> Solved | None:
    """The same stack with no flash-attn; None where it was asked for, or is not in it."""
    if solved.plan is None or solved.question.wants_flash_attn:
        return None
    closures = _close(evidence, flash, solved.question, solved.stack, list(solved.closures), None)
    if isinstance(closures, Clash):
        return None
    out = "the conda side cannot have a release that has a wheel for this torch"
    return replace(solved, plan=None, closures=closures, flash_attn_out=out)


def with_hashes(solved: Solved, flash: FlashAttn) -> Solved | None:
    """The same with the hash of every flash-attn wheel; None where one could not be had: then choose again."""
    plan = solved.plan
    if plan is None or all(wheel.sha256 is not None and wheel.asset is None for wheel in plan.wheels.values()):
        return solved
    builds = solved.stack.builds
    wheels = {target: flash.with_hash(wheel, builds[target.place]) for target, wheel in plan.wheels.items()}
    known = {target: wheel for target, wheel in wheels.items() if wheel is not None}
    if len(known) < len(wheels):
        return None
    closures = dict(solved.closures)
    for target, wheel in known.items():
        chosen = dict(closures[target].chosen)
        chosen["flash-attn"] = replace(chosen["flash-attn"], files=(flash.file(wheel),))
        closures[target] = replace(closures[target], chosen=chosen)
    return replace(solved, plan=replace(plan, wheels=known), closures=closures)


def _nearer(found: Refusal, before: Refusal) -> bool:
    """Whether a Python's refusal rests on more that was asked: less has to change there."""
    asks = {asked for reason in before.reasons for asked in reason.asks}
    return before.clash is None and asks < {asked for reason in found.reasons for asked in reason.asks}


def _try_targets(
    evidence: Evidence, flash: FlashAttn, question: Question, stack: Stack, targets: list[Target]
) -> Solved | Refusal:
    missing = tuple(reason for target in targets for reason in torch_reasons(evidence, question, stack, target))
    if missing:
        return Refusal(stack=stack, reasons=missing)
    plans = flash_plans(flash, question, stack, targets)
    if not plans:
        return Refusal(stack=stack, reasons=(no_wheel_reason(evidence, flash, question, stack, targets),))
    first: Clash | None = None
    for plan in plans:
        found = _close(evidence, flash, question, stack, targets, plan)
        if isinstance(found, dict):
            return Solved(
                question=question, stack=stack, plan=plan, closures=found,
                newer=tuple(_unknown_newer(evidence, question, stack)),
            )
        first = first or found
        if "flash-attn" not in found.depends_on():
            break
    return Refusal(stack=stack, clash=first)


def _close(
    evidence: Evidence, flash: FlashAttn, question: Question, stack: Stack, targets: list[Target],
    plan: FlashPlan | None,
) -> dict[Target, Closure] | Clash:
    """The closures of all targets, or the first clash."""
    closures: dict[Target, Closure] = {}
    for target in targets:
        found = solve_closure(closure_problem(evidence, question, stack, target, plan, flash))
        if isinstance(found, Clash):
            return found
        closures[target] = found
    return closures


def _unknown_newer(evidence: Evidence, question: Question, stack: Stack) -> Iterator[Stack]:
    """Newer releases on the index, within what was asked, that the matrix has no row for."""
    known = {build.version for build in evidence.matrix.torch}
    for other in stacks(evidence, question):
        asked = all(admits(ask.specifier, other.version) for ask in question.torch)
        if other.version > stack.version and other.text not in known and asked:
            yield other
