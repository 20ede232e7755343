"""What a plan was made for, and whether that is still there: a package may have been uninstalled since."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from stackfix.plan.hook import is_hook
from stackfix.plan.records import Action, InstallConda, InstallWheel, MakeLink, Plan, SetAside, WriteFile

LOADER = "_loader.py"       # of a hook: the module with its tables
MODULES = (".py", ".so")


class Ground(Protocol):
    """The environment as it is now; paths are relative to its prefix."""

    def exists(self, path: str) -> bool:
        """Whether something is there, and no link to nowhere."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something that a plan was made for."""

    name: str
    is_there: bool


def gone(plan: Plan, ground: Ground) -> tuple[str, ...]:
    """The names of all that the plan was made for, where nothing of it is there any more; else none."""
    found = [list(things_of(action, plan, ground)) for action in plan.actions if action.steps]
    if not all(found) or any(thing.is_there for things in found for thing in things):
        return ()       # an action of which nobody can tell is one that may be needed
    return tuple(dict.fromkeys(thing.name for things in found for thing in things))


def things_of(action: Action, plan: Plan, ground: Ground) -> Iterator[Thing]:
    """What one action was made for; nothing where that cannot be told."""
    for step in action.steps:
        if isinstance(step, InstallWheel):
            yield Thing(name=step.project, is_there=is_installed(step, ground))
        elif isinstance(step, InstallConda):
            yield Thing(name=step.project, is_there=any(
                re.fullmatch(rf"{re.escape(step.project)}-[^-]+-[^-]+\.json", each)
                for each in ground.names("conda-meta")))
        elif isinstance(step, MakeLink):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(step.path), step.target))
            yield Thing(name=step.path, is_there=ground.exists(step.path) and ground.exists(target))
        elif isinstance(step, SetAside):
            if action.kind == "remove-shadow":
                folder = posixpath.dirname(step.path)
                yield Thing(name=folder, is_there=ground.exists(folder))
        elif is_hook(posixpath.basename(step.path)) and step.path.endswith(LOADER):
            yield from hooked(step, ground)
    if action.kind == "write-activation":
        yield from folders_of(plan, ground)


def is_installed(step: InstallWheel, ground: Ground) -> bool:
    """Whether any release of that project is."""
    names = (name.partition("-")[0] for name in ground.names(step.site) if name.endswith(".dist-info"))
    return any(re.sub(r"[-_.]+", "-", name).lower() == step.project for name in names)


def hooked(step: WriteFile, ground: Ground) -> Iterator[Thing]:
    """The packages before which a hook loads libraries, with whether both are there; none where it is no hook."""
    site = posixpath.dirname(step.path)
    libraries, elsewhere = table(step.text, "LIBRARIES"), table(step.text, "ELSEWHERE")
    for package, paths in libraries.items():
        has_package = package in elsewhere or is_importable(package, site, ground)
        has_library = any(ground.exists(posixpath.join(site, each)) for each in paths)
        yield Thing(name=package, is_there=has_package and has_library)


def table(text: str, name: str) -> dict[str, tuple[str, ...]]:
    """One of a hook's tables, as `hook_text` has them; empty where the text, which may come from anywhere, has none."""
    try:
        body = ast.parse(text).body
        value = next((ast.literal_eval(each.value) for each in body if isinstance(each, ast.Assign)
                      and [ast.unparse(target) for target in each.targets] == [name]), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {str(key): tuple(map(str, paths)) for key, paths in value.items()
            if isinstance(paths, tuple | str)} if isinstance(value, dict) else {}


def is_importable(package: str, site: str, ground: Ground) -> bool:
    """Whether there is a module of that name, or a folder with one in it: what an uninstaller leaves is none."""
    if any(name.startswith(f"{package}.") and name.endswith(MODULES) for name in ground.names(site)):
        return True
    folder = posixpath.join(site, package)
    return any(name.endswith(MODULES) or any(each.endswith(".py") for each in ground.names(f"{folder}/{name}"))
               for name in ground.names(folder))


def folders_of(plan: Plan, ground: Ground) -> Iterator[Thing]:
    """The folders of the environment that activation puts on a variable."""
    inside = f"{plan.prefix.rstrip('/')}/"
    for _, value in plan.variables:
        for element in (value or "").split(":"):
            if element.startswith(inside):
                folder = element.removeprefix(inside).rstrip("/")
                yield Thing(name=folder, is_there=ground.exists(folder))
