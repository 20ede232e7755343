"""From a lock to lockfiles: what is planned, and writing it whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.resolve.records import Lock, Target, TargetLock
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from stackfix.write.constraints import render_constraints
from stackfix.write.foreign import refuse_another, refuse_foreign
from stackfix.write.names import (
    check_name,
    conda_lock_name,
    constraints_name,
    environment_name,
    explicit_name,
    joined,
    pixi_name,
    pylock_name,
    requirements_name,
    suffix_of,
)
from stackfix.write.records import PlannedFile
from stackfix.write.replace import replace_files
from stackfix.write.requirements import render_requirements, requirements_entries
from stackfix.write.stale import is_same, stale_files

PIP_FORMATS = ("requirements", "pylock", "constraints")
FORMATS = (*PIP_FORMATS, *CONDA_FORMATS)
DEFAULT_FORMATS = (*PIP_FORMATS[:2], CONDA_FORMATS[0])

__all__ = ["CONDA_FORMATS", "DEFAULT_FORMATS", "FORMATS", "PIP_FORMATS", "PlannedFile", "check_formats", "plan_files",
           "write_files"]


def check_formats(formats: tuple[str, ...]) -> tuple[str, ...]:
    """The formats to write, without repetition; the default ones for none. Raises BadInput for what is no format."""
    for name in formats:
        if name not in FORMATS:
            raise BadInput(f"--format {name}", "no such format", f"one of: {', '.join(FORMATS)}")
    return tuple(dict.fromkeys(formats)) or DEFAULT_FORMATS


def plan_files(
    lock: Lock, *, formats: tuple[str, ...], name: str | None, command: str,
) -> tuple[PlannedFile, ...]:
    """The lockfiles of `lock` as text. With several targets each file carries its target in its name, but pylock."""
    formats = check_formats(formats)
    check_name(name)
    several = len(lock.targets) > 1
    suffixes = {each.target: suffix_of(name, each.target if several else None) for each in lock.targets}
    second_steps = {each.target: requirements_name(suffixes[each.target], step=2) for each in lock.targets
                    if any(package.step > 1 for package in each.packages)}
    pylocks = tuple(plan_pylocks(lock, name, second_steps)) if "pylock" in formats and lock.targets else ()
    files = (
        *(file for each in lock.targets if "requirements" in formats
          for file in plan_requirements(each, suffixes[each.target], second_steps, command)),
        *(file for file, _ in pylocks),
        *plan_second_steps(lock, suffixes, second_steps, formats, command,
                           {target: file.path for file, targets in pylocks for target in targets}),
        *(PlannedFile(path=constraints_name(suffixes[each.target]), text=render_constraints(each, command=command))
          for each in lock.targets if "constraints" in formats),
    )
    return (*files, *plan_conda(lock.conda, formats=formats, name=name, command=command,
                                planned=(file.path for file in files), apart=several))


def plan_requirements(
    lock: TargetLock, suffix: str, second_steps: Mapping[Target, str], command: str,
) -> Iterator[PlannedFile]:
    """The first step of one target."""
    yield PlannedFile(path=requirements_name(suffix), text=render_requirements(
        requirements_entries(lock), lock.target, command=command, second_step=second_steps.get(lock.target)))


def plan_pylocks(
    lock: Lock, name: str | None, second_steps: Mapping[Target, str],
) -> Iterator[tuple[PlannedFile, tuple[Target, ...]]]:
    """Each pylock file with the targets it is for: one for all that a marker tells apart."""
    from stackfix.write.pylock import pylock_groups, render_pylocks

    for variant, locks in pylock_groups(lock.targets):
        targets = tuple(each.target for each in locks)
        later = {target: file for target, file in second_steps.items() if target in targets}
        yield PlannedFile(path=pylock_name(joined(name, variant)), text=render_pylocks(
            locks, second_steps=later, variant=variant)), targets


def plan_second_steps(
    lock: Lock, suffixes: Mapping[Target, str], second_steps: Mapping[Target, str], formats: tuple[str, ...],
    command: str, pylocks: Mapping[Target, str],
) -> Iterator[PlannedFile]:
    """The second step's own file, beside whichever lock leads to it."""
    for each in lock.targets:
        target = each.target
        after = requirements_name(suffixes[target]) if "requirements" in formats else pylocks.get(target)
        if target in second_steps and after is not None:
            yield PlannedFile(path=second_steps[target], text=render_requirements(
                requirements_entries(each, step=2), target, command=command, after=after))


def write_files(
    directory: Path, files: Iterable[PlannedFile], *, inputs: Iterable[Path] = (), overwrite: bool = False,
    stale: Iterable[str] = (),
) -> None:
    """Writes all files into `directory`, or none: on a failure what was there before is put back.

    What an earlier lock of the same name has left is removed: files of targets that it no longer has, a second step, a
    pylock that these take the place of; and what is `stale`.
    `inputs` are files the request was read from; one of them is never overwritten, and a file that stackfix did not
    write, or that is another lock's, only with `overwrite`. Raises BadInput or Unreachable.
    """
    planned = tuple(files)
    contents: dict[str, bytes | None] = {file.path: file.text.encode() for file in planned}
    read = tuple(inputs)
    left = (name for name, _, _ in stale_files(directory, planned, read))
    contents |= dict.fromkeys((*left, *stale))
    refuse_places(directory, contents, inputs=read, overwrite=overwrite)
    if not overwrite:
        refuse_another(directory, planned)
    replace_files(directory, contents)


def names_of_several(formats: tuple[str, ...], name: str | None, targets: Iterable[Target]) -> tuple[str, ...]:
    """Names of the files of pip for several targets, known before their lock is decided."""
    suffixes = [suffix_of(name, target) for target in targets]
    named = {"requirements": requirements_name, "constraints": constraints_name}
    names = tuple(rendered(suffix) for kind, rendered in named.items() if kind in formats for suffix in suffixes)
    return (*names, pylock_name(joined(name))) if "pylock" in formats else names


def likely_names(formats: tuple[str, ...], name: str | None, platform: str = "linux-64") -> tuple[str, ...]:
    """Names of the files of a lock for one target, known before it is decided."""
    suffix = suffix_of(name, None)
    named = {
        "requirements": requirements_name(suffix), "pylock": pylock_name(suffix),
        "constraints": constraints_name(suffix), "conda-lock": conda_lock_name(name),
        "explicit": explicit_name(name, platform), "pixi": pixi_name(name), "environment": environment_name(suffix),
    }
    return tuple(named[kind] for kind in check_formats(formats))


def refuse_places(directory: Path, names: Iterable[str], *, inputs: Iterable[Path], overwrite: bool) -> None:
    """Raises BadInput where one of `names` is an input, or (without `overwrite`) a file that is no lock of ours."""
    names = tuple(names)
    for name in names:
        if any(is_same(directory / name, path) for path in inputs):
            raise BadInput(str(directory / name), "is an input of this lock and would be overwritten by it",
                           "write elsewhere with -o DIR, or choose --name NAME")
    if not overwrite:
        refuse_foreign(directory, names)
