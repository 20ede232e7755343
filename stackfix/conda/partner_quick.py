"""Conflicts that records show without a solve: every build of a package wants another torch, or another Python."""

from __future__ import annotations

from packaging.version import Version

from stackfix.conda.bounds import Line, lines_for
from stackfix.conda.builds import PYTORCH
from stackfix.conda.layouts_records import Plan, Scene, Wish
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.records import CondaCause, CondaConflict, CondaRecord
from stackfix.resolve.pep508 import parse_version

MANY = 6
OLDEST = Version("0")
TORCH_NAMES = (PYTORCH, "libtorch", "pytorch-cpu", "pytorch-gpu")


def plain_conflict(scene: Scene, plan: Plan) -> CondaConflict | None:
    """The conflict of the first wish whose packages all want another torch or Python; None where there is none."""
    if plan.choice is None:
        return None
    for wish in plan.wishes:
        name = wish.spec.text.partition(" ")[0]
        if name in {"python", *TORCH_NAMES}:
            continue
        records = scene.channels.records(plan.channels, scene.target.platform, name)
        fitting = [record for record in records if admits(wish.spec.text, record) is not False]
        if records and not fitting:
            return _no_such(plan, wish, records)
        lines = [_against(record, plan.choice.torch.record.version, scene.target.python) for record in fitting]
        if fitting and all(line is not None for line in lines):
            against = [(record, line) for record, line in zip(fitting, lines, strict=True) if line is not None]
            return _conflict(plan, wish, against)
    return None


def _no_such(plan: Plan, wish: Wish, records: tuple[CondaRecord, ...]) -> CondaConflict:
    """That no version is what is asked for, with those there are."""
    versions = sorted({record.version for record in records}, key=lambda text: parse_version(text) or OLDEST)
    shown = versions if len(versions) <= MANY else [*versions[:2], "…", *versions[-3:]]
    text = f"no channel that was asked has {wish.spec.text}: they have {', '.join(shown)}"
    causes = (
        CondaCause(text=f"{wish.spec.text} is asked for", spec=wish.spec, source=wish.spec.origin),
        CondaCause(text=text, source=", ".join(channel.name for channel in plan.channels)),
    )
    return CondaConflict(causes=causes, raw=text)


def _against(record: CondaRecord, torch: str, python: str) -> Line | None:
    """The dependency of the record that excludes this torch, else the one that excludes this Python."""
    for line in lines_for(record.depends, *TORCH_NAMES):
        if admits_version(line.text, torch) is False:
            return line
    for line in lines_for(record.depends, "python"):
        # a bound such as <3.12.5 is for the solver: here only what no release of the minor meets counts
        if all(admits_version(line.text, f"{python}.{patch}") is False for patch in (0, 99)):
            return line
    return None


def _conflict(plan: Plan, wish: Wish, against: list[tuple[CondaRecord, Line]]) -> CondaConflict:
    """The chain: what is asked for, and an example of what its builds want of torch, and of Python."""
    by_torch = [(record, line) for record, line in against if line.name in TORCH_NAMES]
    by_python = [(record, line) for record, line in against if line.name not in TORCH_NAMES]
    causes = [CondaCause(text=f"{wish.spec.text} is asked for", spec=wish.spec, source=wish.spec.origin)]
    for group, start in ((by_torch, f"{PYTORCH} =="), (by_python, "python ")):
        if group:
            record, line = group[0]
            more = f" (and {len(group) - 1} other builds likewise)" if len(group) > 1 else ""
            needs = f"{record.name} {record.version} needs {line.name} {line.version}{more}"
            other = next(one for one in plan.wishes if one.spec.text.startswith(start))
            causes.append(CondaCause(text=needs, source=record.file_name))
            causes.append(CondaCause(text=f"{other.spec.text} is asked for", spec=other.spec,
                                     source=other.spec.origin))
    return CondaConflict(causes=tuple(causes), raw="\n".join(cause.text for cause in causes))
