"""Notes on flash-attn: left out and where it could be had, a newer one without a hash, the second step."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.question import FLASH_ATTN
from stackfix.resolve.records import Target
from stackfix.resolve.solve import Solved
from stackfix.resolve.stack import cuda_words


def cuda_builds(solved: Solved) -> list[TorchBuild]:
    """The builds of the stack that are no CPU builds."""
    return [build for build in solved.stack.builds.values() if build.cuda != query.CPU]


def flash_attn_notes(evidence: Evidence, flash: FlashAttn, solved: Solved) -> Iterator[str]:
    request, plan = solved.question.request, solved.plan
    if request.no_flash_attn or any(line.name == FLASH_ATTN for line in solved.question.lines):
        return
    targets = sorted(solved.closures)
    left_out = [target for target in targets if plan is None or not plan.covers(target)]
    if left_out and cuda_builds(solved):
        yield _left_out(evidence, solved, left_out)
    elif left_out:
        yield "flash-attn is left out: it has no CPU build"
    if plan is None:
        return
    if plan.unhashed:
        why = f" ({flash.unreachable})" if flash.unreachable is not None else ""
        yield (
            f"flash-attn {plan.unhashed[0]} is newer and would fit, but the sha256 of its wheel is neither known to the"
            f" matrix nor obtainable now{why}"
        )
    yield from _plan_notes(plan, flash)


def _plan_notes(plan: FlashPlan, flash: FlashAttn) -> Iterator[str]:
    for target in sorted(plan.sdists):
        why = f": {flash.unreachable}" if flash.unreachable is not None else ""
        yield (
            f"flash-attn {plan.version} for {words(target)} is the second step: its wheel exists, but its sha256 is"
            f" neither known nor obtainable now{why}"
        )
    for target, wheel in sorted(plan.wheels.items()):
        if wheel.row is not None and wheel.row.confidence == "low":
            yield f"the hash of {wheel.file} ({words(target)}) is known with low confidence ({wheel.row.source})"


def words(target: Target) -> str:
    """`Python 3.11 on linux-64`."""
    return f"Python {target.python} on {target.platform}"


def _left_out(evidence: Evidence, solved: Solved, targets: list[Target]) -> str:
    """That flash-attn is left out, and the nearest stack that has it."""
    places = " and ".join(words(target) for target in targets)
    stack = solved.stack
    torch = f"torch {stack.text} ({cuda_words(stack.cuda)})"
    text = f"flash-attn is left out: it has no prebuilt wheel for {torch}, {places}"
    nearest = _nearest_stack(evidence, solved, targets[0])
    if nearest is None:
        return f"{text}; the matrix knows no stack that has one for this platform"
    build, version, python = nearest
    other = "" if python == targets[0].python else f", Python {python}"
    stack_words = f"torch {build.version} with {cuda_words(build.cuda)}{other}"
    return f"{text}; the nearest stack that has one is {stack_words} (flash-attn {version})"


def _nearest_stack(evidence: Evidence, solved: Solved, target: Target) -> tuple[TorchBuild, str, str] | None:
    """Build, flash-attn version and Python of the nearest stack with a wheel: by torch minor, the same Python first."""
    builds = query.builds(evidence.matrix, platform=target.platform, index=query.DEFAULT_INDEX)
    minors = list(dict.fromkeys(query.minor_of(build.version) for build in builds))
    own = query.minor_of(solved.stack.text)
    here = minors.index(own) if own in minors else 0
    found: list[tuple[tuple[bool, int, int], TorchBuild, str, str]] = []
    for order, build in enumerate(builds):
        distance = abs(minors.index(query.minor_of(build.version)) - here)
        for python in build.pythons:
            wheels = query.flash_attn_wheels_for(evidence.matrix, build, python, target.platform)
            if wheels:
                found.append(((python != target.python, distance, order), build, wheels[0].version, python))
    if not found:
        return None
    _, build, version, python = min(found, key=lambda entry: entry[0])
    return build, version, python
