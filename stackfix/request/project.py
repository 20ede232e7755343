"""`[tool.stackfix]` of pyproject.toml, or stackfix.toml: stacks with the same keys as the options of `lock`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput
from stackfix.request.project_keys import KEYS, Faults, read_table
from stackfix.request.stack_options import StackOptions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST = 4 * 1024 * 1024       # bytes
SHOWN_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStack(StackOptions):
    """One stack of a project file, its values checked.

    Relative paths in it start from the folder of `file`.
    """

    name: str | None                # of `[tool.stackfix.stacks.NAME]`; None: the one stack without a name
    file: str                       # "pyproject.toml" or "stackfix.toml"
    table: str                      # "[tool.stackfix.stacks.train]": where it was written


def read_project(directory: Path) -> tuple[ProjectStack, ...]:
    """The stacks of the project in `directory`, in file order; () where nothing there speaks of stackfix.

    Raises BadInput naming the file, with all its faults, and where both files hold stacks.
    """
    pyproject, own = directory / "pyproject.toml", directory / "stackfix.toml"
    in_pyproject = tool_table(read_toml(pyproject), str(pyproject)) if exists(pyproject) else None
    in_own = read_toml(own) if exists(own) else None
    if in_pyproject is not None and in_own is not None:
        raise BadInput(str(directory), "both stackfix.toml and [tool.stackfix] in pyproject.toml are there",
                       "keep one of them")
    if in_own is not None:
        return parse_stacks(in_own, file="stackfix.toml", prefix="")
    return parse_stacks(in_pyproject, file="pyproject.toml", prefix="tool.stackfix") if in_pyproject is not None else ()


def parse_stacks(document: Mapping[str, Any], *, file: str, prefix: str) -> tuple[ProjectStack, ...]:
    """The stacks of one table: named ones over what stands above them, else the one without a name."""
    faults = Faults()
    table = f"[{prefix}]" if prefix else "the top level"
    stacks = document.get("stacks", {})
    above = read_table({key: value for key, value in document.items() if key != "stacks"}, table, faults)
    if not isinstance(stacks, dict):
        faults.add(table, "stacks", "is not a table", f"write [{dotted(prefix, 'stacks', 'NAME')}]")
        stacks = {}
    found = []
    for name, values in stacks.items():
        place = f"[{dotted(prefix, 'stacks', name)}]"
        faults.check_name(place, name)
        if not isinstance(values, dict):
            faults.add(place, name, "is not a table", f"write {place}")
            continue
        own = read_table(values, place, faults)
        found.append(ProjectStack(name=name, file=file, table=place, **without_contradiction(above, own)))
    raise_faults(file, faults)
    return tuple(found) or (ProjectStack(name=None, file=file, table=table, **above),)


def without_contradiction(above: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` over `above`: what one stack says of flash-attn takes the place of either word about it above."""
    inherited = dict(above)
    if {"flash_attn", "no_flash_attn"} & own.keys():
        inherited.pop("flash_attn", None)
        inherited.pop("no_flash_attn", None)
    return {**inherited, **own}


def raise_faults(file: str, faults: Faults) -> None:
    """Raises one BadInput with every fault, each with the way to it."""
    if not faults.found:
        return
    shown = faults.found[:SHOWN_FAULTS]
    more = len(faults.found) - len(shown)
    reason = "; ".join(shown) + (f"; and {more} more" if more else "")
    raise BadInput(file, reason, "; ".join(dict.fromkeys(faults.hints)) or f"keys: {', '.join(KEYS)}")


def dotted(*parts: str) -> str:
    """A table's name: `tool.stackfix.stacks.train`."""
    return ".".join(part for part in parts if part)


def tool_table(document: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """`[tool.stackfix]`, or None where there is none."""
    tool = document.get("tool", {})
    table = tool.get("stackfix") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise BadInput(where, "tool.stackfix is not a table", "write [tool.stackfix]")
    return table


def exists(path: Path) -> bool:
    """Whether something has this name."""
    try:
        return path.exists()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The parsed file. Raises BadInput where it cannot be read or is no TOML."""
    if not path.is_file():
        raise BadInput(str(path), "is not a regular file")
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise BadInput(str(path), f"is larger than {LARGEST // 1024 // 1024} MB")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}", "is not UTF-8 text", "TOML is UTF-8") from error
    except (ValueError, RecursionError) as error:       # TOMLDecodeError, or a number that int() refuses
        raise BadInput(str(path), f"is not TOML: {error}") from error
