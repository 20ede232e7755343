"""Whether the files of a linked package are still there, as its record says: existence and size, which cost no read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from stackfix.sync.conda_pip import pip_projects
from stackfix.sync.conda_twice import projects_of
from stackfix.sync.interpreter import in_prefix
from stackfix.sync.records import CondaInstalled


def damaged(prefix: Path, installed: Mapping[str, CondaInstalled]) -> dict[str, str]:
    """Name -> why the package is to be linked anew; intact ones are not named."""
    owned = {path for one in installed.values() for path in one.files}
    has_python = in_prefix(prefix).is_file()        # without it nothing can be uninstalled
    of_pip = {name for name, _ in pip_projects(prefix, owned)} if has_python else set[str]()
    found = {}
    for name, one in installed.items():
        twice = next((project for project in projects_of(one.files) if project in of_pip), None)
        reason = f"pip has installed {twice} over it" if twice else next(faults(prefix, one), None)
        if reason is not None:
            found[name] = reason
    return found


def faults(prefix: Path, one: CondaInstalled) -> Iterator[str]:
    """What is wrong with its files. Python compiles anew what it likes."""
    for path in one.files:
        if "__pycache__/" not in path and not os.path.lexists(prefix / path):
            yield f"{path} is missing"
    yield from (f"{path} was changed" for path in changed_files(prefix, one))


def changed_files(prefix: Path, one: CondaInstalled) -> Iterator[str]:
    """Its files of another size than linked. Below etc/ are settings, which are there to be edited."""
    for path, size in one.sizes.items():
        if "__pycache__/" in path or path.startswith("etc/"):
            continue
        try:
            found = os.lstat(prefix / path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_size != size:
            yield path
