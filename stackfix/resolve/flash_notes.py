"""Notes on flash-attn: left out and where it could be had, a newer one without a hash, the second step."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import PLATFORMS
from stackfix.quick import dataclass
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_assets import cuda_tag_if_fits, has_code_for, lacking_archs, version_of
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.flash_reasons import is_served
from stackfix.resolve.pep508 import parse_version
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
    if solved.flash_attn_out is not None:
        yield f"flash-attn is left out: {solved.flash_attn_out}"
    targets = sorted(solved.closures)
    if solved.flash_attn_out is not None or not targets:
        return
    left_out = [target for target in targets if plan is None or not plan.covers(target)]
    served = [target for target in left_out if is_served(target, solved.stack.builds[target.place])]
    if served:
        yield _left_out(evidence, solved, served)
    yield from _not_served(solved, [target for target in left_out if target not in served])
    yield from _refused(flash, solved)
    if plan is None:
        return
    if plan.unhashed:
        yield (
            f"flash-attn {plan.unhashed[0]} is newer and would fit, but the sha256 of its wheel is neither known to the"
            f" matrix nor obtainable now{_why_not(flash)}"
        )
    yield from _second_step(plan, flash)
    for target, wheel in sorted(plan.wheels.items()):
        if wheel.row is not None and wheel.row.confidence == "low":
            yield f"the hash of {wheel.file} ({words(target)}) is known with low confidence ({wheel.row.source})"


def _not_served(solved: Solved, targets: list[Target]) -> Iterator[str]:
    """That flash-attn is left out where upstream has no wheel for the kind of build, or for the system."""
    on_cpu = [target for target in targets if solved.stack.builds[target.place].cuda == query.CPU]
    if on_cpu and len(on_cpu) == len(solved.closures):
        yield "flash-attn is left out: it has no CPU build"
    elif on_cpu:
        yield f"flash-attn is left out for {_places(on_cpu)}: it has no CPU build"
    others = [target for target in targets if target not in on_cpu]
    if others:
        systems = " or ".join(dict.fromkeys(PLATFORMS[target.platform].system for target in others))
        yield f"flash-attn is left out for {_places(others)}: upstream has no wheel for {systems}"


def _places(targets: list[Target]) -> str:
    return " and ".join(dict.fromkeys(target.place for target in targets))


def _refused(flash: FlashAttn, solved: Solved) -> Iterator[str]:
    """Wheels that would have been taken, had their symbols not said otherwise than their names."""
    chosen = parse_version(solved.plan.version) if solved.plan is not None else None
    for file, text in sorted(flash.refused.items()):
        parsed = parse_version(version_of(file))
        fits = any(cuda_tag_if_fits(file, version_of(file), build) for build in cuda_builds(solved))
        if fits and parsed is not None and (chosen is None or parsed >= chosen):
            yield f"{text}: it was not taken"


def _second_step(plan: FlashPlan, flash: FlashAttn) -> Iterator[str]:
    """One note for all targets: they have one version and one cause."""
    files = [plan.expected[target] for target in sorted(plan.sdists)]
    if files:
        more = f" (and of {len(files) - 1} more)" if len(files) > 1 else ""
        yield (
            f"flash-attn {plan.version} is the second step: no sha256 of {files[0]}{more} can be had now"
            f"{_why_not(flash)}"
        )


def _why_not(flash: FlashAttn) -> str:
    """`: the host name … cannot be resolved`, without the operating system's words for it."""
    return f": {flash.unreachable.reason.partition(' (')[0]}" if flash.unreachable is not None else ""


def words(target: Target) -> str:
    """`Python 3.11 on linux-64`."""
    return f"Python {target.python} on {target.place}"


def _left_out(evidence: Evidence, solved: Solved, targets: list[Target]) -> str:
    """That flash-attn is left out, why, and the nearest stacks that have it."""
    places = " and ".join(words(target) for target in targets)
    stack, archs = solved.stack, solved.question.request.gpu_archs
    torch = f"torch {stack.text} ({cuda_words(stack.cuda)})"
    build = stack.builds[targets[0].place]
    wheels = query.flash_attn_wheels_for(evidence.matrix, build, targets[0].python, targets[0].platform)
    lacking = lacking_archs(evidence.matrix, wheels, archs)
    if lacking:
        text = f"flash-attn is left out: its wheels for {torch}, {places} have no code for {', '.join(lacking)}"
    elif stack.is_nightly:
        text = f"flash-attn is left out: its prebuilt wheels are for releases of torch, and {torch} is a nightly"
    else:
        text = f"flash-attn is left out: it has no prebuilt wheel for {torch}, {places}"
    nearest = " or ".join(dict.fromkeys(_nearest_stacks(evidence, solved, targets[0])))
    if not nearest:
        gpus = f" with code for {', '.join(archs)}" if archs else ""
        return f"{text}; the matrix knows no stack for this platform that has one{gpus}"
    return f"{text}; the nearest stack that has one is {nearest}"


def _nearest_stacks(evidence: Evidence, solved: Solved, target: Target) -> Iterator[str]:
    """The nearest stacks with a wheel that runs on the GPUs: this torch with another Python, another torch with this.

    Where there is neither, another torch with another Python.
    """
    found = sorted(_stacks_with_wheel(evidence, solved, target), key=lambda near: near.distance)
    own = query.minor_of(solved.stack.text)
    same_torch = [near for near in found if query.minor_of(near.build.version) == own]
    same_python = [near for near in found if near.python == target.python]
    for near in (*same_torch[:1], *same_python[:1]) or found[:1]:
        other = "" if near.python == target.python else f", Python {near.python}"
        yield f"torch {near.build.version} with {cuda_words(near.build.cuda)}{other} (flash-attn {near.version})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Near:
    build: TorchBuild
    python: str
    version: str                    # of flash-attn
    distance: tuple[int, int, int]  # in minors of torch and of Python; then newest first


def _stacks_with_wheel(evidence: Evidence, solved: Solved, target: Target) -> Iterator[_Near]:
    matrix, archs = evidence.matrix, solved.question.request.gpu_archs
    builds = query.builds(matrix, platform=target.platform, index=query.DEFAULT_INDEX)
    minors = list(dict.fromkeys(query.minor_of(build.version) for build in builds))
    own = query.minor_of(solved.stack.text)
    here = minors.index(own) if own in minors else 0
    own_wheels = query.flash_attn_wheels_for(
        matrix, solved.stack.builds[target.place], target.python, target.platform)
    for order, build in enumerate(builds):
        if not _runs_torch(build, archs):
            continue
        for python in build.pythons:
            wheels = query.flash_attn_wheels_for(matrix, build, python, target.platform)
            version = next((wheel.version for wheel in wheels if has_code_for(matrix, wheel.version, archs)), None)
            if version is not None and wheels != own_wheels:    # those that the matrix lists for this stack were no use
                away = abs(minors.index(query.minor_of(build.version)) - here)
                distance = (away, abs(_minor(python) - _minor(target.python)), order)
                yield _Near(build=build, python=python, version=version, distance=distance)


def _runs_torch(build: TorchBuild, archs: tuple[str, ...]) -> bool:
    return not build.gpu_archs or all(query.gpu_runs(build.gpu_archs, arch) for arch in archs)


def _minor(python: str) -> int:
    return int(python.partition(".")[2])
