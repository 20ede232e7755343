"""Stacks of the project file as options."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from stackfix.cli.options import LockOptions
from stackfix.errors import BadInput
from stackfix.request.project import ProjectStack, read_project


def project_options(folder: Path, name: str | None) -> list[LockOptions]:
    """The stacks of `folder`'s project file, or the one called `name`. Raises BadInput where there is none."""
    stacks = read_project(folder)
    if not stacks:
        raise BadInput(
            "stackfix lock", "no stack is asked for, and neither stackfix.toml nor [tool.stackfix] is here",
            "ask for one: stackfix lock --torch 2.3 --cuda 12.1",
        )
    if name is not None:
        named = [stack for stack in stacks if stack.name == name]
        if not named and any(stack.name is not None for stack in stacks):
            known = ", ".join(stack.name for stack in stacks if stack.name is not None)
            raise BadInput(f"--name {name}", f"{stacks[0].file} has no stack of that name", f"its stacks: {known}")
        stacks = tuple(named) or stacks
    return [as_options(stack, folder) for stack in stacks]


def as_options(stack: ProjectStack, folder: Path) -> LockOptions:
    """One stack as options; relative paths start from `folder`."""
    own = {field.name for field in fields(LockOptions)}
    values = {f.name: getattr(stack, f.name) for f in fields(stack) if f.name in own}
    if stack.directory is not None:
        values["directory"] = str(folder / stack.directory)
    return LockOptions(**values, base=folder, project_file=stack.file)
