"""The JSON document of `stackfix probe`. Its shape: docs/probe.md."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stackfix.verify.records import Probe, ProbeStep


def probe_document(probe: Probe, *, python: str, prefix: str) -> dict[str, Any]:
    """All that was found; every key is always there."""
    return {
        "python": python,
        "prefix": prefix,
        "verdict": probe.verdict,
        "reason": probe.reason,
        "device": probe.device,
        "steps": [step_document(each) for each in probe.steps],
    }


def step_document(step: ProbeStep) -> dict[str, Any]:
    """One step; `accuracy` is null where no numbers were compared."""
    return {
        "name": step.name, "verdict": step.verdict, "reason": step.reason, "counts": step.counts, "detail": step.detail,
        "accuracy": asdict(step.accuracy) if step.accuracy is not None else None, "seconds": step.seconds,
        "libraries": list(step.libraries),
    }
