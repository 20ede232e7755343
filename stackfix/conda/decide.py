"""The stack where only conda lockfiles are asked for: from the channels' own builds of torch, else from wheels."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from stackfix.conda.builds import as_torch_build
from stackfix.conda.candidates import builds_of, choices, searched
from stackfix.conda.decide_flash import FlashChoice, flash_choices
from stackfix.conda.layouts_records import Lacking, Scene
from stackfix.conda.partner import CondaPartner, CondaSide, hold_target
from stackfix.conda.partner_reasons import Miss, passed_over, refusal_of
from stackfix.conda.partner_solve import Around, Missed
from stackfix.conda.records import LAYOUTS, CondaTarget
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import has_channels
from stackfix.quick import replace
from stackfix.resolve.against import reasons_against
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.question import Question
from stackfix.resolve.records import Target
from stackfix.resolve.solve import Failure, Refusal, Solved, Solver, solve
from stackfix.resolve.stack import Stack, cuda_words

Told = dict[Version, tuple[tuple[str, str], ...]]       # by torch release: (layout, why it does not hold)


def joint_solver(side: CondaSide) -> Solver:
    """The search for a stack that both wheels and channels hold."""
    partner = CondaPartner(side)
    return lambda evidence, flash, question: solve(evidence, flash, question, partner)


def conda_solver(side: CondaSide) -> Solver:
    """The search where no pip lockfile is asked for: channels first, then wheels around their Python."""
    partner = CondaPartner(side, ("wheels",))

    def search(evidence: Evidence, flash: FlashAttn, question: Question) -> Solved | Failure:
        layouts = LAYOUTS if question.request.layout is None else (question.request.layout,)
        own: tuple[Refusal, ...] = ()
        told: Told = {}
        of_channels = tuple(layout for layout in layouts if layout != "wheels")
        if of_channels:
            found = _search(evidence, flash, question, side, of_channels, told)
            if isinstance(found, Solved):
                return found
            own = found.refusals
        if "wheels" not in layouts:
            return Failure(question=question, refusals=own)
        last = solve(evidence, flash, question, partner)
        if isinstance(last, Solved):
            passed = told.get(last.stack.version, ())
            return replace(last, conda=tuple(replace(one, passed=(*passed, *one.passed)) for one in last.conda))
        return Failure(question=question, refusals=(*own, *last.refusals), universal=last.universal and not own)

    return search


def _search(
    evidence: Evidence, flash: FlashAttn, question: Question, side: CondaSide, layouts: tuple[str, ...], told: Told,
) -> Solved | Failure:
    """The first stack of the channels; into `told` goes why the layouts do not hold each one."""
    refusals: list[Refusal] = []
    line = CondaPartner(side).absent(question)
    for stack, pythons in _stacks(evidence, question, side):
        reasons = (*reasons_against(evidence, question, stack), *([line] if line is not None else []))
        if reasons:
            refusals.append(Refusal(stack=stack, reasons=reasons))
            continue
        found = _try_stack(evidence, flash, question, side, layouts, stack, pythons, told)
        if isinstance(found, Solved):
            return found
        refusals.append(found)
    return Failure(question=question, refusals=tuple(refusals))


def _stacks(
    evidence: Evidence, question: Question, side: CondaSide
) -> Iterator[tuple[Stack, tuple[str, ...]]]:
    """Releases that the channels have for every platform, in the order in which they are tried, with their Pythons."""
    channels = side.solves(question.request).channels
    pythons: dict[tuple[Version, str], dict[str, set[str]]] = {}
    builds: dict[tuple[Version, str], dict[str, TorchBuild]] = {}
    for platform in filter(has_channels, question.request.platforms):
        for torch in (one for channel in searched(channels) for one in builds_of(channels, channel, platform)):
            build = as_torch_build(torch, evidence.matrix)
            key = Version(build.version), torch.cuda
            pythons.setdefault(key, {}).setdefault(platform, set()).add(torch.python)
            builds.setdefault(key, {}).setdefault(platform, build)
    found = [Stack(version=version, text=str(version), builds=rows) for (version, _), rows in builds.items()]
    with_cuda = {version for version, cuda in builds if cuda != query.CPU}
    for stack in sorted(found, key=lambda stack: _rank(evidence, question, stack), reverse=True):
        if question.request.cuda is None and stack.cuda == query.CPU and stack.version in with_cuda:
            continue                    # the CPU is not taken in silence where there are builds for CUDA
        common = set.intersection(*pythons[stack.version, stack.cuda].values())
        yield stack, tuple(sorted(common, key=_minor, reverse=True))


def _rank(evidence: Evidence, question: Question, stack: Stack) -> tuple[object, ...]:
    """The kept release, the newest; of one release the CUDA of its wheel, then the newest CUDA, the CPU last."""
    kept = parse_version(dict(question.request.kept).get("torch", ""))
    default = {build.cuda for build in query.builds(evidence.matrix, index=query.DEFAULT_INDEX)
               if parse_version(build.version) == stack.version and build.cuda != query.CPU}
    return stack.version == kept, stack.version, stack.cuda in default, _minor(stack.cuda)


def _minor(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _try_stack(
    evidence: Evidence, flash: FlashAttn, question: Question, side: CondaSide, layouts: tuple[str, ...], stack: Stack,
    pythons: tuple[str, ...], told: Told,
) -> Solved | Refusal:
    """The first set of Pythons, and the first flash-attn, with which the channels hold the release."""
    request = question.request
    others = tuple(python for python in pythons if python != request.default_python)
    sets = [request.pythons] if request.pythons else [
        (python,) for python in (request.default_python, *others) if python in pythons]
    misses: list[Miss] = []
    for chosen in sets:
        targets = [target for target in question.targets(chosen) if has_channels(target.place)]
        tried: list[Miss] = []
        for choice in flash_choices(flash, question, side, stack, targets):
            own: list[Miss] = []
            for layout in layouts:
                held = _hold(evidence, flash, question, side, stack, targets, layout, choice.release)
                if not isinstance(held, list):
                    passed = passed_over(stack, own)
                    return Solved(question=question, stack=stack, plan=None, closures={}, newer=(),
                                  conda=tuple(replace(one, passed=passed) for one in held),
                                  flash_attn_out=_why_out(stack, choice, tried))
                own.extend(held)
            tried = tried or own
            misses.extend(own)
        if not any(_rests_on_python(miss) for miss in misses):
            break                       # no other Python helps
    told.setdefault(stack.version, passed_over(stack, misses))
    return refusal_of(question, stack, misses or [_no_flash(question, stack, layouts[0])])


def _why_out(stack: Stack, choice: FlashChoice, tried: list[Miss]) -> str | None:
    """Why flash-attn is left out: what stood against its first release, where one could be had at all."""
    if choice.out is None or not tried:
        return choice.out
    layouts = (f"layout {layout}: {why}" for layout, why in passed_over(stack, tried))
    return f"no layout holds with it ({'; '.join(layouts)})"


def _rests_on_python(miss: Miss) -> bool:
    """Whether another Python might do."""
    if not isinstance(miss, Missed) or miss.conflict is None:
        return True
    return any(wish.spec.text.startswith("python ") for wish in miss.involved)


def _no_flash(question: Question, stack: Stack, layout: str) -> Lacking:
    """That the flash-attn that was asked for is neither in the channels nor to be had as a wheel for this torch."""
    asked = " ".join(ask.asked.value for ask in question.flash_attn)
    torch = f"torch {stack.text} ({cuda_words(stack.cuda)})"
    text = f"no channel has flash-attn {asked} for {torch}, and no wheel of it is for that torch"
    return Lacking(layout=layout, kind="flash-attn", text=text, source="records of flash-attn, and its wheels",
                   asks=tuple(ask.asked for ask in question.flash_attn))


def _hold(
    evidence: Evidence, flash: FlashAttn, question: Question, side: CondaSide, stack: Stack, targets: list[Target],
    layout: str, flash_attn: str | None,
) -> tuple[CondaTarget, ...] | list[Miss]:
    held: list[CondaTarget] = []
    for target in targets:
        scene = Scene(
            question=question, evidence=evidence, channels=side.solves(question.request).channels, names=side.names,
            target=target, flash_attn=flash_attn, cuda=stack.cuda,
        )
        offered = tuple(
            choice for choice in choices(scene.channels, platform=target.platform, python=target.python,
                                         version=stack.text, cuda=stack.cuda)
            if choice.torch.cuda == stack.cuda
        )
        around = Around(flash=flash, plan=None, closure=None)
        found = hold_target(scene, side, layout, offered, around=around, pip=None)
        if not isinstance(found, CondaTarget):
            return found
        held.append(found)
    return tuple(held)
