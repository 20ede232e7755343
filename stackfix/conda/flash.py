"""flash-attn for a channel's torch: the wheel whose C++ ABI and CUDA fit that build, at a given release."""

from __future__ import annotations

from stackfix.matrix.records import TorchBuild
from stackfix.quick import replace
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.pep508 import parse_specifier
from stackfix.resolve.records import Target


def flash_plan(
    flash: FlashAttn, build: TorchBuild, target: Target, release: str, archs: tuple[str, ...] = (),
) -> FlashPlan | None:
    """The plan for one target at this release, its wheel with a hash; the sdist of the second step where none has one.

    None where the release has nothing for the build. Raises WheelHashDisagreement.
    """
    exact = parse_specifier(f"=={release}")
    if exact is None:
        return None
    while True:
        plans = flash.plans({target: build}, [exact], archs, release)
        plan = next((one for one in plans if one.covers(target)), None)
        wheel = plan.wheels.get(target) if plan is not None else None
        if plan is None or wheel is None:
            return plan
        hashed = flash.with_hash(wheel, build)      # a wheel whose hash cannot be had is no wheel in the next round
        if hashed is not None:
            return replace(plan, wheels={target: hashed})
