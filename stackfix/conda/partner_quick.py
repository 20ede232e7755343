"""Conflicts that records show without a solve: every build of a package wants another torch, or another Python."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from stackfix.conda.bounds import Line, lines_for, spec_name
from stackfix.conda.builds import PYTORCH
from stackfix.conda.candidates import Choice, builds_of, bundled
from stackfix.conda.layouts_records import Plan, Scene, Wish
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.records import CondaCause, CondaConflict, CondaRecord
from stackfix.resolve.pep508 import parse_version

MANY = 6
OLDEST = Version("0")
TORCH_NAMES = (PYTORCH, "libtorch", "pytorch-cpu", "pytorch-gpu")


def plain_conflict(scene: Scene, plan: Plan) -> CondaConflict | None:
    """The conflict of the first wish that no package meets, or none beside this torch and Python; None without one."""
    torch = _torch_records(scene, plan.choice) if plan.choice is not None else []
    for wish in plan.wishes:
        name = spec_name(wish.spec.text)
        records = scene.channels.records(plan.channels, scene.target.platform, name)
        fitting = [record for record in records if admits(wish.spec.text, record) is not False]
        if not fitting:
            return _no_such(scene, plan, wish, records)
        if plan.choice is None or name == "python":
            continue
        lines = [] if name in TORCH_NAMES else [
            _against(record, plan.choice.torch.record.version, scene.target.python) for record in fitting]
        if lines and all(line is not None for line in lines):
            against = [(record, line) for record, line in zip(fitting, lines, strict=True) if line is not None]
            return _conflict(plan, wish, against)
        excluded = _excluded_by_torch(plan, wish, name, fitting, torch)
        if excluded is not None:
            return excluded
    return None


def _torch_records(scene: Scene, choice: Choice) -> list[CondaRecord]:
    """All builds of the kind for the Python."""
    own = choice.torch
    return [
        one.record for one in builds_of(scene.channels, choice.channel, scene.target.platform)
        if (one.record.version, one.cuda, one.python) == (own.record.version, own.cuda, own.python)
    ]


def _excluded_by_torch(
    plan: Plan, wish: Wish, name: str, fitting: list[CondaRecord], torch: list[CondaRecord],
) -> CondaConflict | None:
    """The conflict where every build of this torch excludes what is wished, or is not what is wished."""
    own = next((one for one in plan.wishes if plan.choice is not None and one.spec.text == plan.choice.spec), None)
    if own is None or own is wish or not torch:
        return None
    asked = CondaCause(text=f"{wish.spec.text} is asked for", spec=wish.spec, source=wish.spec.origin)
    stack = CondaCause(text=f"{own.spec.text} is asked for", spec=own.spec, source=own.spec.origin)
    if name == PYTORCH:
        fits = any(admits(wish.spec.text, record) is not False for record in torch)
        return None if fits else CondaConflict(causes=(asked, stack), raw=f"{asked.text}\n{stack.text}")
    against = [
        next((line for line in lines_for(record.depends, name)
              if all(admits(line.text, one) is False for one in fitting)), None) for record in torch
    ]
    if any(line is None for line in against):
        return None
    record, line = next((record, line) for record, line in zip(torch, against, strict=True) if line is not None)
    needs = CondaCause(text=f"{record.name} {record.version} needs {line.text}", source=record.file_name)
    have = CondaCause(text=f"of {wish.spec.text} they have {_versions(fitting)}", source=_names(plan))
    causes = (stack, needs, asked, have)
    return CondaConflict(causes=causes, raw="\n".join(one.text for one in causes))


def _no_such(scene: Scene, plan: Plan, wish: Wish, records: tuple[CondaRecord, ...]) -> CondaConflict:
    """That no version is what is asked for, with those there are."""
    text = (f"no channel that was asked has {wish.spec.text}: they have {_versions(records)}" if records
            else f"no channel that was asked has a package {spec_name(wish.spec.text)}")
    causes = (
        CondaCause(text=f"{wish.spec.text} is asked for", spec=wish.spec, source=wish.spec.origin),
        CondaCause(text=text, source=f"{_names(plan)}{bundled(scene.channels)}"),
    )
    return CondaConflict(causes=causes, raw=text)


def _versions(records: Sequence[CondaRecord]) -> str:
    """The oldest and the newest there are."""
    versions = sorted({record.version for record in records}, key=lambda text: parse_version(text) or OLDEST)
    return ", ".join(versions if len(versions) <= MANY else [*versions[:2], "…", *versions[-3:]])


def _names(plan: Plan) -> str:
    return ", ".join(channel.name for channel in plan.channels)


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
