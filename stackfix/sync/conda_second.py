"""The second step that a conda lockfile names, for the Python of the environment."""

from __future__ import annotations

from pathlib import Path

from stackfix.errors import BadInput
from stackfix.sync.lockfile import read_text
from stackfix.sync.parse import SECOND_STEP, parse_requirements_lock
from stackfix.sync.records import Step
from stackfix.write.records import CondaLockFile


def second_step(lock: CondaLockFile, target: tuple[str, str]) -> tuple[Step, ...]:
    """The step to install after all others; none where the lock names none for `target` ("3.11", "linux-64").

    Raises BadInput for a file that is not beside the lock, or is no second step.
    """
    path = Path(lock.path)
    found = []
    for name in lock.second_steps:
        if SECOND_STEP.fullmatch(name) is None:
            raise BadInput(path.name, f"names {name[:80]!r}, which is no name of a second step")
        beside = path.parent / name
        read = parse_requirements_lock(read_text(beside), name)
        if not read.is_second_step or read.second_step is not None or not read.entries:
            raise BadInput(str(beside), f"is not the second step that {path.name} names", "lock again")
        if read.target in {None, target}:
            found.append(Step(path=beside, entries=read.entries, build=True, native=True))
    if len(found) > 1:
        raise BadInput(path.name, f"names {len(found)} second steps for Python {target[0]}", "lock again")
    if lock.second_steps and not found and target in lock.targets and len(lock.second_steps) >= len(lock.targets):
        raise BadInput(path.name, f"names no second step for Python {target[0]} on {target[1]}", "lock again")
    return tuple(found)
