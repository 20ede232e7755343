"""What may be done about flash-attn for a stack, and why what was asked for cannot be had."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import LINUX
from stackfix.resolve.against import Reason
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_assets import cuda_tag_if_fits, lacking_archs, version_of
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import FLASH_ATTN, Question
from stackfix.resolve.records import Target
from stackfix.resolve.stack import Stack, cuda_words

MAX_PLANS = 4           # flash-attn versions that are tried before a stack goes without


def flash_plans(
    flash: FlashAttn, question: Question, stack: Stack, targets: list[Target]
) -> list[FlashPlan | None]:
    """What may be done about flash-attn, best first; None leaves it out. Empty where it is asked for and none fits."""
    if question.request.no_flash_attn or any(line.name == FLASH_ATTN for line in question.lines):
        return [None]
    builds = {target: stack.builds[target.place] for target in targets}
    specifiers = [ask.specifier for ask in question.flash_attn]
    kept = dict(question.request.kept).get(FLASH_ATTN)
    plans: list[FlashPlan | None] = [*flash.plans(builds, specifiers, question.request.gpu_archs, kept)]
    needed = must_have(flash, question, builds)
    if needed:
        met: list[FlashPlan | None] = [plan for plan in plans if plan is not None and all(map(plan.covers, needed))]
        return met[:MAX_PLANS]
    if question.wants_flash_attn:
        return [None]                   # its markers leave every target out
    best = plans[0] if plans else None
    same = [plan for plan in plans if plan is not None and best is not None and plan.left_out == best.left_out]
    return [*same[:MAX_PLANS], None]


def must_have(flash: FlashAttn, question: Question, builds: Mapping[Target, TorchBuild]) -> list[Target]:
    """The targets for which flash-attn is asked and must be had: where some are for CUDA on Linux, these alone.

    Upstream has no wheel for another system, and none for the CPU.
    """
    asking = [ask for ask in question.flash_attn if not ask.constraint]
    asked = [target for target in builds if any(ask.holds_for(flash.view(target)) for ask in asking)]
    return [target for target in asked if is_served(target, builds[target])] or asked


def is_served(target: Target, build: TorchBuild) -> bool:
    """Whether upstream has wheels for the system and kind of build at all."""
    return target.platform in LINUX and build.cuda != query.CPU


def no_wheel_reason(
    evidence: Evidence, flash: FlashAttn, question: Question, stack: Stack, targets: list[Target]
) -> Reason:
    """Why the flash-attn that was asked for cannot be had with this torch."""
    targets = must_have(flash, question, {target: stack.builds[target.place] for target in targets}) or targets
    asks = [ask.asked for ask in question.flash_attn]
    asks += [asked for target in targets for asked in question.python_ask(target.python)]
    places = " and ".join(f"Python {target.python} on {target.place}" for target in targets)
    wanted = " ".join(ask.asked.value for ask in question.flash_attn if ask.line is None) or " and ".join(
        str(ask.specifier) for ask in question.flash_attn
    )
    build = stack.builds[targets[0].place]
    abi = "" if build.cxx11_abi is None else f", {'new' if build.cxx11_abi else 'old'} C++ ABI"
    stack_words = f"{{torch}} ({cuda_words(build.cuda)}{abi}), {places}"
    lacking = tuple(dict.fromkeys(arch for target in targets for arch in _lacking(evidence, question, stack, target)))
    if lacking:
        gpus = [asked for asked in question.ask("gpu-arch") if asked.value in lacking]
        says = f"wheels of flash-attn {wanted} for {stack_words} have no code for {', '.join(lacking)}"
        return Reason(kind="matrix", asks=(*asks, *gpus), says=says, source="flash-attn releases of the matrix")
    refused = _refused(flash, question, build)
    if refused:
        more = f" (and {len(refused) - 1} more likewise)" if len(refused) > 1 else ""
        says = f"flash-attn {wanted} has no prebuilt wheel that can load with {stack_words}: {refused[0]}{more}"
        return Reason(kind="matrix", asks=tuple(asks), says=says, source=SYMBOLS)
    says = f"flash-attn {wanted} has no prebuilt wheel for {stack_words}{_torch_of_wheels(evidence, question)}"
    return Reason(
        kind="matrix", asks=tuple(asks), says=says,
        source="flash-attn wheels of the matrix and, where it answered, of the release source",
    )


def _refused(flash: FlashAttn, question: Question, build: TorchBuild) -> list[str]:
    """What was asked for and is not for this torch, though it is named so."""
    return [
        text for file, text in sorted(flash.refused.items())
        if _asked_for(question, version_of(file)) and cuda_tag_if_fits(file, version_of(file), build)
    ]


def _asked_for(question: Question, version: str) -> bool:
    """Whether a version of flash-attn is one that was asked for."""
    parsed = parse_version(version)
    return parsed is not None and all(admits(ask.specifier, parsed) for ask in question.flash_attn)


def _lacking(evidence: Evidence, question: Question, stack: Stack, target: Target) -> tuple[str, ...]:
    """GPUs for which no wheel that was asked for, and that fits otherwise, has code."""
    build = stack.builds[target.place]
    wheels = [
        wheel for wheel in query.flash_attn_wheels_for(evidence.matrix, build, target.python, target.platform)
        if _asked_for(question, wheel.version)
    ]
    return lacking_archs(evidence.matrix, wheels, question.request.gpu_archs)


def _torch_of_wheels(evidence: Evidence, question: Question) -> str:
    """`; its wheels are for torch 2.0 to 2.4`, of the versions that were asked for."""
    minors = {
        wheel.torch_minor for wheel in evidence.matrix.flash_attn_wheels if _asked_for(question, wheel.version)
    }
    ordered = sorted(minors, key=lambda minor: tuple(int(part) for part in minor.split(".")))
    return f"; its wheels are for torch {ordered[0]} to {ordered[-1]}" if ordered else ""
