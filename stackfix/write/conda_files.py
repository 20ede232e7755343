"""The conda lockfiles of a lock: which there are, what they are called, what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.records import CondaTarget
from stackfix.errors import BadInput
from stackfix.write.names import (
    conda_lock_name,
    environment_name,
    explicit_name,
    pixi_name,
    python_tag,
    requirements_name,
    suffix_of,
)
from stackfix.write.records import PlannedFile
from stackfix.write.requirements import package_entries, render_requirements

CONDA_FORMATS = ("conda-lock", "explicit", "pixi", "environment")


def plan_conda(
    targets: tuple[CondaTarget, ...], *, formats: tuple[str, ...], name: str | None, command: str,
    planned: Iterable[str] = (), apart: bool = False,
) -> Iterator[PlannedFile]:
    """The files of these formats. `planned`: names of files of the same lock, of which a second step may be one.

    `apart`: second steps carry their target in their names, also where the channels have one target of the lock alone.
    conda-lock.yml and explicit files hold one Python each, environment.yml one target, pixi.lock all there are.
    Raises BadInput where there is no target, or a package that a file cannot hold.
    """
    asked = [kind for kind in formats if kind in CONDA_FORMATS]
    if not asked:
        return
    if not targets:
        raise BadInput(f"--format {asked[0]}", "nothing was decided for conda")
    groups = by_python(targets)
    apart = apart or len(targets) > 1
    firsts: list[str] = []
    for group in groups:
        python = python_tag(group[0].target) if len(groups) > 1 else None
        for file in plan_group(group, formats, name, python, command, several=len(targets) > 1, apart=apart):
            firsts.append(file.path)
            yield file
    if "pixi" in formats:
        from stackfix.write.pixi import render_pixi

        path = pixi_name(name)
        firsts.append(path)
        yield PlannedFile(path=path, text=render_pixi(
            targets, command=command, file_name=path,
            second_steps=second_steps(targets, name, apart=apart)))
    yield from plan_second_steps(targets, name, command, after=firsts[0], planned=frozenset(planned), apart=apart)


def by_python(targets: Iterable[CondaTarget]) -> tuple[tuple[CondaTarget, ...], ...]:
    """The targets of each Python, in the order of versions, by platform."""
    def order(target: CondaTarget) -> tuple[int, ...]:
        return tuple(int(part) for part in target.target.python.split("."))

    ordered = sorted(targets, key=lambda target: (order(target), target.target.platform))
    groups: dict[str, list[CondaTarget]] = {}
    for target in ordered:
        groups.setdefault(target.target.python, []).append(target)
    return tuple(tuple(group) for group in groups.values())


def plan_group(
    group: tuple[CondaTarget, ...], formats: tuple[str, ...], name: str | None, python: str | None, command: str, *,
    several: bool, apart: bool,
) -> Iterator[PlannedFile]:
    """The files of one Python but pixi.lock."""
    sources = tuple(environment_name(suffix_of(name, target.target if several else None)) for target in group)
    if "conda-lock" in formats:
        from stackfix.write.conda_lock import render_conda_lock

        path = conda_lock_name(name, python)
        yield PlannedFile(path=path, text=render_conda_lock(
            group, command=command, file_name=path, sources=sources,
            second_steps=second_steps(group, name, apart=apart)))
    for target, source in zip(group, sources, strict=True):
        steps = second_steps((target,), name, apart=apart)
        if "explicit" in formats:
            from stackfix.write.explicit import render_explicit

            path = explicit_name(name, target.target.platform, python)
            yield PlannedFile(path=path, text=render_explicit(
                target, command=command, file_name=path, second_steps=steps))
        if "environment" in formats:
            from stackfix.write.environment import render_environment

            yield PlannedFile(path=source, text=render_environment(
                target, command=command, file_name=source, second_steps=steps))


def second_step(target: CondaTarget, name: str | None, *, apart: bool) -> str | None:
    """Name of the target's second step; None where it has none."""
    if not any(package.step == 2 for package in target.pip):
        return None
    return requirements_name(suffix_of(name, target.target if apart else None), step=2)


def second_steps(targets: Iterable[CondaTarget], name: str | None, *, apart: bool) -> tuple[str, ...]:
    """Names of the second steps of these targets."""
    found = (second_step(target, name, apart=apart) for target in targets)
    return tuple(step for step in found if step)


def plan_second_steps(
    targets: Iterable[CondaTarget], name: str | None, command: str, *, after: str, planned: frozenset[str],
    apart: bool,
) -> Iterator[PlannedFile]:
    """The second steps that no pip lock of the same targets has brought already."""
    for target in targets:
        path = second_step(target, name, apart=apart)
        if path is not None and path not in planned:
            yield PlannedFile(path=path, text=render_requirements(
                package_entries(target.pip, step=2), target.target, command=command, after=after))
