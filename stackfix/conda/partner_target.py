"""A plan that holds as the record that is written, with its differences from the pip lock."""

from __future__ import annotations

from stackfix.conda.builds import torch_builds
from stackfix.conda.candidates import choices
from stackfix.conda.consistent import departures
from stackfix.conda.layouts_records import Scene
from stackfix.conda.like_pip import minor_of
from stackfix.conda.partner_solve import Found
from stackfix.conda.records import CondaTarget, CondaTorch, Spec, VirtualPackage
from stackfix.matrix.query import CPU
from stackfix.quick import replace
from stackfix.resolve.records import TargetLock


def conda_target(
    scene: Scene, found: Found, virtual: tuple[VirtualPackage, ...], pip: TargetLock | None
) -> CondaTarget:
    """The record that is written, with its differences from the pip lock."""
    made = CondaTarget(
        target=scene.target, layout=found.plan.layout, channels=found.plan.channels, priority=found.asked.priority,
        virtual=virtual, specs=_specs(found), torch=_torch_of(found),
        records=found.records, pip=found.pip, departures=(), snapshot=scene.channels.snapshot,
        guesses=_guesses(scene, found), also_cuda=_also_cuda(scene, pip),
    )
    told = departures(
        pip, made, scene.evidence.matrix, scene.names, books=scene.evidence.books,
        shelf=scene.shelf(found.plan.channels), given_up=_given_up(found),
    )
    return replace(made, departures=told)


def _also_cuda(scene: Scene, pip: TargetLock | None) -> tuple[str, ...]:
    """The CUDA of builds that the channels have where the wheel is for the CPU, and nobody asked for that."""
    if pip is None or scene.cuda != CPU or scene.question.request.cuda is not None:
        return ()
    every = choices(scene.channels, platform=scene.target.platform, python=scene.target.python,
                    version=pip.build.version)
    return tuple(sorted({choice.torch.cuda for choice in every} - {CPU}, key=minor_of))


def _given_up(found: Found) -> dict[str, str]:
    """Of each package of which something was wished in vain, the first thing that stood against it."""
    told: dict[str, str] = {}
    for wish, conflict in found.given_up:
        name, _, version = wish.spec.text.partition(" ")
        facts = [cause.text for cause in conflict.causes if cause.spec is None]
        if facts:
            told.setdefault(name, f"{name} {version} cannot be had beside the rest: {facts[0]}")
    return told


def _guesses(scene: Scene, found: Found) -> tuple[tuple[str, str], ...]:
    """Names that were taken for those of projects, where pip relies on it or the request names them."""
    asked = {line.name for line in scene.lines}
    provided = scene.names.provided(found.records, scene.cuda)
    return tuple(
        (one.record.name, one.project) for one in provided if not one.sure and (found.pip or one.project in asked))


def _specs(found: Found) -> tuple[Spec, ...]:
    """What was asked, and of what only limits what bears on a package that is there."""
    there = {record.name for record in found.records}
    return tuple(wish.spec for wish in found.wishes if wish.spec.text.partition(" ")[0] in there)


def _torch_of(found: Found) -> CondaTorch | None:
    """The build that was chosen; None where torch is a wheel."""
    return next(iter(torch_builds(found.records)), None) if found.plan.choice is not None else None
