"""All that a plan brings, made in the transaction's own folder before anything in the environment changes.

Each step has a folder `new/<number>` there that is shaped as the environment is: the step is made by moving its names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stackfix.apply import syscalls
from stackfix.apply.conda import keep_linked
from stackfix.apply.distributions import keep_recorded
from stackfix.apply.moves import make_folders, sync_folders
from stackfix.apply.tree import Tree, join, split
from stackfix.plan.records import InstallConda, InstallWheel, MakeLink, SetAside, Step, WriteFile


class StageWheel(Protocol):
    """Puts one release, its hash checked, into a folder as if that were the environment's prefix."""

    def __call__(self, step: InstallWheel, into: Path, /) -> None: ...


class StageConda(Protocol):
    """Links one package of conda, its hash checked, into a folder as if that were the environment's prefix."""

    def __call__(self, step: InstallConda, into: Path, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stagers:
    """What brings the releases of a plan."""

    wheels: StageWheel
    conda: StageConda


def no_conda(step: InstallConda, _: Path, /) -> None:
    """Of a plan without packages of conda."""
    raise AssertionError(step)


def stage_of(number: int) -> str:
    """Where the step lies, below the transaction's folder."""
    return f"new/{number}"


def stage(tree: Tree, home: str, number: int, step: Step, stagers: Stagers) -> None:
    """Makes what one step brings. Raises OSError, or what the installer raises."""
    place = join(home, stage_of(number))
    make_folders(tree, place, mode=0o700)
    if isinstance(step, InstallWheel | InstallConda):
        if isinstance(step, InstallConda):
            stagers.conda(step, Path(tree.prefix, place))
            keep_linked(tree, place, step)
        else:
            stagers.wheels(step, Path(tree.prefix, place))
            keep_recorded(tree, place, step)
        with tree.folder(place) as folder:
            syscalls.sync_file_system(folder)
    elif not isinstance(step, SetAside):
        make(tree, place, step)


def make(tree: Tree, place: str, step: WriteFile | MakeLink) -> None:
    """Makes a file or a link, with the folders that lead to it."""
    parent, name = split(join(place, tree.resolve(step.path)))
    make_folders(tree, parent)
    with tree.folder(parent) as folder:
        if isinstance(step, MakeLink):
            syscalls.symlink(step.target, name, folder=folder)
        else:
            write_new(folder, name, step)
        syscalls.sync(folder)
    sync_folders(tree, above(parent, place))


def write_new(folder: int, name: str, step: WriteFile) -> None:
    descriptor = syscalls.create(name, folder=folder)
    try:
        syscalls.write(descriptor, step.text.encode("utf-8", "surrogateescape"))
        syscalls.set_mode(descriptor, step.mode)        # not cut by the umask
        syscalls.sync(descriptor)
    finally:
        os.close(descriptor)


def above(path: str, top: str) -> list[str]:
    """The folders that lead from `top` to `path`."""
    found = []
    while path != top:
        path = split(path)[0]
        found.append(path)
    return found
