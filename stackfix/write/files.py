"""From a lock to lockfiles: what is planned, and writing it whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.resolve.records import Lock, TargetLock
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from stackfix.write.constraints import render_constraints
from stackfix.write.foreign import refuse_foreign
from stackfix.write.names import (
    check_name,
    conda_lock_name,
    constraints_name,
    environment_name,
    explicit_name,
    pixi_name,
    pylock_name,
    requirements_name,
    suffix_of,
)
from stackfix.write.records import PlannedFile
from stackfix.write.replace import replace_files
from stackfix.write.requirements import render_requirements, requirements_entries
from stackfix.write.stale import stale_second_steps

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
    """The lockfiles of `lock` as text. With several targets each file name carries its target."""
    formats = check_formats(formats)
    check_name(name)
    several = len(lock.targets) > 1
    files = tuple(
        file
        for target_lock in lock.targets
        for file in plan_target(target_lock, formats, suffix_of(name, target_lock.target if several else None), command)
    )
    return (*files, *plan_conda(lock.conda, formats=formats, name=name, command=command,
                                planned=(file.path for file in files)))


def plan_target(lock: TargetLock, formats: tuple[str, ...], suffix: str, command: str) -> Iterator[PlannedFile]:
    """The files of one target. The second step has its own file beside whichever lock leads to it."""
    first, second = requirements_name(suffix), requirements_name(suffix, step=2)
    later = requirements_entries(lock, step=2)
    second_step = second if later else None
    if "requirements" in formats:
        entries = requirements_entries(lock)
        yield PlannedFile(path=first, text=render_requirements(
            entries, lock.target, command=command, second_step=second_step))
    if "pylock" in formats:
        from stackfix.write.pylock import render_pylock

        yield PlannedFile(path=pylock_name(suffix), text=render_pylock(lock, second_step=second_step))
    if later and ("requirements" in formats or "pylock" in formats):
        after = first if "requirements" in formats else pylock_name(suffix)
        yield PlannedFile(path=second, text=render_requirements(later, lock.target, command=command, after=after))
    if "constraints" in formats:
        yield PlannedFile(path=constraints_name(suffix), text=render_constraints(lock, command=command))


def write_files(
    directory: Path, files: Iterable[PlannedFile], *, inputs: Iterable[Path] = (), overwrite: bool = False,
    stale: Iterable[str] = (),
) -> None:
    """Writes all files into `directory`, or none: on a failure what was there before is put back.

    A second step that these files no longer have is removed, and what is `stale`. `inputs` are files the request was
    read from; one of them is never overwritten, and a file that stackfix did not write only with `overwrite`. Raises
    BadInput or Unreachable.
    """
    planned = tuple(files)
    contents: dict[str, bytes | None] = {file.path: file.text.encode() for file in planned}
    contents |= dict.fromkeys((*(name for name, _, _ in stale_second_steps(directory, planned)), *stale))
    refuse_places(directory, contents, inputs=inputs, overwrite=overwrite)
    replace_files(directory, contents)


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


def is_same(place: Path, path: Path) -> bool:
    """Whether both are there and are one file, through links too."""
    try:
        return place.samefile(path)
    except OSError:
        return False            # missing, or a link to itself: replace_files says so
