"""Conflicts with torch that records show without a solve: every build of a package wants another torch or Python."""

from __future__ import annotations

from stackfix.conda.bounds import lines_for
from stackfix.conda.builds import PYTORCH
from stackfix.conda.layouts import Plan, Scene, Wish
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.records import CondaCause, CondaConflict, CondaRecord

TORCH_NAMES = (PYTORCH, "libtorch", "pytorch-cpu", "pytorch-gpu")


def conflict_with_torch(scene: Scene, plan: Plan) -> CondaConflict | None:
    """The conflict of the first wish whose packages all want another release of torch; None where there is none."""
    if plan.choice is None:
        return None
    torch = next(wish for wish in plan.wishes if wish.spec.text == plan.choice.spec)
    version = plan.choice.torch.record.version
    for wish in plan.wishes:
        name = wish.spec.text.partition(" ")[0]
        if name in {"python", *TORCH_NAMES}:
            continue
        records = scene.channels.records(plan.channels, scene.target.platform, name)
        fitting = [record for record in records if admits(wish.spec.text, record)]
        lines = [_against(record, version) for record in fitting]
        if fitting and all(line is not None for line in lines):
            return _conflict(wish, torch, fitting, [line for line in lines if line is not None])
    return None


def _against(record: CondaRecord, version: str) -> str | None:
    """The dependency of the record that excludes this torch."""
    for line in lines_for(record.depends, *TORCH_NAMES):
        if admits_version(line.text, version) is False:
            return line.text
    return None


def _conflict(wish: Wish, torch: Wish, records: list[CondaRecord], lines: list[str]) -> CondaConflict:
    record, line = records[0], lines[0]
    more = f" (and {len(records) - 1} other builds likewise)" if len(records) > 1 else ""
    needs = f"{record.name} {record.version} needs {line}{more}"
    causes = (
        CondaCause(text=f"{wish.spec.text} is asked for", spec=wish.spec, source=wish.spec.origin),
        CondaCause(text=needs, source=record.file_name),
        CondaCause(text=f"{torch.spec.text} is asked for", spec=torch.spec, source=torch.spec.origin),
    )
    return CondaConflict(causes=causes, raw="\n".join(cause.text for cause in causes))
