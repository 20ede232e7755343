"""Builds of torch that a machine without a driver cannot have, told before anything is solved for them."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.conda.bounds import lines_for
from stackfix.conda.builds import PYTORCH
from stackfix.conda.candidates import Choice, builds_of
from stackfix.conda.layouts import mixed_plan
from stackfix.conda.layouts_records import Lacking, Scene
from stackfix.conda.partner_machine import NO_DRIVER, with_the_machine
from stackfix.conda.partner_solve import Missed
from stackfix.conda.records import CondaCause, CondaConflict, CondaRecord, VirtualPackage
from stackfix.quick import replace

CUDA = "__cuda"


def driverless(
    scene: Scene, layout: str, offered: tuple[Choice, ...], virtual: tuple[VirtualPackage, ...]
) -> tuple[tuple[Choice, ...], list[Missed]]:
    """The builds that are left, and why the others are out of the question."""
    if any(one.name == CUDA for one in virtual):
        return offered, []
    barred = {choice: records for choice in offered if all(map(_needs_a_driver, records := tuple(_of(scene, choice))))}
    misses = [_missed(scene, layout, choice, records, virtual) for choice, records in barred.items()]
    return tuple(choice for choice in offered if choice not in barred), misses


def _of(scene: Scene, choice: Choice) -> Iterator[CondaRecord]:
    """All builds of the kind for the Python of the target."""
    own = choice.torch
    for one in builds_of(scene.channels, choice.channel, scene.target.platform):
        if (one.record.version, one.cuda, one.python) == (own.record.version, own.cuda, own.python):
            yield one.record


def _needs_a_driver(record: CondaRecord) -> bool:
    return any(lines_for(record.depends, CUDA))


def _missed(
    scene: Scene, layout: str, choice: Choice, records: tuple[CondaRecord, ...], virtual: tuple[VirtualPackage, ...]
) -> Missed:
    plan = mixed_plan(scene, choice)
    if isinstance(plan, Lacking):
        raise TypeError("layout mixed leaves to pip what channels lack")
    torch = next(wish.spec for wish in plan.wishes if wish.spec.text == choice.spec)
    record = records[0]
    causes = (
        CondaCause(text=f"{torch.text} is asked for", spec=torch, source=torch.origin),
        CondaCause(text=f"{PYTORCH} {record.version} needs {CUDA}", source=record.file_name),
        CondaCause(text=NO_DRIVER),
    )
    conflict = CondaConflict(causes=causes, raw="\n".join(cause.text for cause in causes))
    miss = Missed(plan=replace(plan, layout=layout), wishes=plan.wishes, conflict=conflict)
    return with_the_machine(scene, miss, virtual)
