"""Whether an environment's packages can be imported, and from where their libraries come: each in a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackfix.quick import replace
from stackfix.verify.child import run_child
from stackfix.verify.judge import step_of
from stackfix.verify.probe import SECONDS, told_of, whole
from stackfix.verify.records import Probe
from stackfix.verify.stack import STACK


def load_check(python: str, packages: Sequence[str], environ: Mapping[str, str], *,
               timeout: float = SECONDS) -> Probe:
    """A step `load NAME` for each of `packages`, import names ("torch", "flash_attn"), with the libraries it mapped.

    A package that was asked for and is not installed fails. No kernel runs, so no GPU is needed, and `device` is None.
    Raises Unreachable where the Python cannot be started.
    """
    steps = []
    for name in packages:
        request = {"module": name, "stack": STACK}
        ended = run_child(python, "load", request, environ, timeout=timeout)
        step = step_of(f"load {name}", ended, timeout=timeout, told=told_of("load", request, ended.answer or {}))
        if step.reason == "not-installed":
            step = replace(step, verdict="fails", counts=True)
        steps.append(step)
    return whole(steps, None)
