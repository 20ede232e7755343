"""What `stackfix abi` is asked about: a file, a wheel or an installed package, and where that is found."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.cli.places_named import current_folder, place_of, variable_of
from stackfix.errors import BadInput, StackfixError
from stackfix.inspect.places import Root, open_root
from stackfix.report.printable import printable

if TYPE_CHECKING:
    from stackfix.abi.records import Compiled
    from stackfix.inspect.compiled_installed import Installation
    from stackfix.inspect.environment_records import Note

PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
ZIP = b"PK\x03\x04"
HINT = "name a shared object (./NAME.so), a wheel (NAME.whl) or an installed package"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to look at, and what to compare it with. Paths are absolute and inside the root."""

    named: str                  # as the user wrote it
    kind: str                   # "file", "wheel" or "package"
    root: Root
    environ: Mapping[str, str]
    prefix: str | None
    python: str | None
    torch: str | None           # a release that is asked about in the environment's place

    @property
    def environment_named(self) -> bool:
        """Whether an option says which environment is meant."""
        return self.prefix is not None or self.python is not None


def asked_for(options: Mapping[str, Any]) -> Asked:
    """The options as places inside the root. Raises BadInput."""
    tree: str | None = options["root"]
    root = Root() if tree is None else open_root(tree)
    prefix, python, torch = options["prefix"], options["python"], options["torch"]
    if torch is not None and (prefix is not None or python is not None) and not is_project(options["subject"], root):
        raise BadInput("--torch", "is asked in an environment's place, and an environment is named too",
                       "leave one of them out")
    return Asked(
        named=options["subject"], kind=kind_of(options["subject"], root), root=root,
        environ={**(os.environ if tree is None else {}), **dict(variable_of(each) for each in options["variables"])},
        prefix=None if prefix is None else place_of(root, prefix),
        python=place_of(root, python) if python is not None and "/" in python else python, torch=torch)


def kind_of(named: str, root: Root) -> str:
    """A name that is no path and no file is an installed package's. Raises BadInput for what is none of them."""
    if named.endswith(".whl"):
        return "wheel"
    path = place_of(root, named)
    if is_project(named, root):
        return "package"
    try:
        return "wheel" if root.read_head(path, 4) == ZIP and root.live else "file"
    except OSError:
        return "file"


def is_project(named: str, root: Root) -> bool:
    """Whether a name can only be a package's: it could be one, and no file has it."""
    shared = re.search(r"\.so(?:\.\d+)*$", named)
    return PROJECT.fullmatch(named) is not None and not shared and not root.is_file(place_of(root, named))


def read_subject(asked: Asked, installation: Installation | None, notes: list[Note],
                 progress: Callable[[int, int], None] | None) -> Compiled:
    """Its compiled files. Raises BadInput for what is no such thing, Unreachable where nothing of it can be read."""
    if asked.kind == "wheel":
        from stackfix.inspect.compiled_wheel import read_wheel

        found = read_wheel(Path(asked.named), notes, progress)
    elif asked.kind == "package":
        from stackfix.inspect.compiled_installed import read_installed

        if installation is None:
            raise BadInput(asked.named, "is no file, and there is no environment to look for a package", HINT)
        found = read_installed(printable(asked.named), installation, notes)
    else:
        from stackfix.inspect.compiled import read_file

        found = read_file(printable(asked.named), place_of(asked.root, asked.named), asked.root)
    from stackfix.inspect.compiled import nothing_readable

    for error in nothing_readable(printable(asked.named), found):
        raise error
    return replace(found, source=asked.named)


def open_installation(asked: Asked, notes: list[Note]) -> Installation | None:
    """The environment; None, with a note, where there is none and nobody named one. Raises BadInput, Unreachable."""
    from stackfix.inspect.compiled_installed import read_installation
    from stackfix.inspect.environment_find import find_environment
    from stackfix.inspect.environment_records import Note

    root = asked.root
    try:
        found = find_environment(root, asked.environ, prefix=asked.prefix, python=asked.python,
                                 running=sys.prefix if root.live else None)
        return read_installation(root, asked.environ, found, notes, cwd=current_folder() if root.live else None)
    except StackfixError as error:
        if asked.environment_named or asked.kind == "package":
            raise
        notes.append(Note(path="environment", reason=str(error)))
        return None
