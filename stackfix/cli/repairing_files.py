"""What a wheel changes of an environment on disk, by the rule by which a repair sets the old release aside."""

from __future__ import annotations

import configparser
import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from stackfix.apply.distributions import paths_to_set_aside
from stackfix.apply.managed import OWN
from stackfix.apply.transaction import made_before, readable
from stackfix.apply.tree import Tree
from stackfix.apply.work import check_free_of_store
from stackfix.errors import BadInput
from stackfix.inspect.environment_judge import Claim, hexadecimal
from stackfix.inspect.environment_records import Environment
from stackfix.plan.effect_wheel import Coming, Going, WheelFiles
from stackfix.plan.records import InstallWheel

SCRIPT_SECTIONS = ("console_scripts", "gui_scripts")
COMPILED = ".pyc"               # comes and goes with any start of Python


def going_with(prefix: str, wheel: InstallWheel, environment: Environment) -> tuple[Going, ...]:
    """What is set aside for a wheel; `prefix` is where the environment lies on our disk.

    Raises Drifted, BadInput or Unreachable where the old release cannot be taken out, and for one whose RECORD lists
    files that are the environment's own.
    """
    with Tree(prefix) as tree, readable(tree):
        site = tree.resolve(wheel.site, last=True)
        paths = paths_to_set_aside(tree, wheel, site, made_before(tree))
        own = next((path for path in paths if is_own(path, environment)), None)
        if own is not None:
            raise BadInput(", ".join(wheel.replaces), f"RECORD lists {own}, which is the environment's own and "
                           "would go with the release", "take that line out of its RECORD")
        return tuple(going(tree.prefix, path) for path in paths if not path.endswith(COMPILED))


def is_own(path: str, environment: Environment) -> bool:
    """Whether a path is a part of the environment itself: its Python, its configuration, its standard library."""
    python = environment.python
    if OWN.fullmatch(path) is not None:
        return True
    full = f"{environment.prefix}/{path}"
    if python is None:
        return False
    sites = [each.path for each in environment.sites]
    library = python.standard_library
    in_library = library is not None and full.startswith(f"{library}/") and not any(
        full == each or full.startswith(f"{each}/") for each in sites)
    return in_library or full in {python.executable, python.executable_reaches}


def going(prefix: str, path: str) -> Going:
    """One path with all that is in it."""
    here = posixpath.join(prefix, path)
    status = os.lstat(here)
    if stat.S_ISDIR(status.st_mode):
        sizes = [os.lstat(posixpath.join(folder, name)).st_size for folder, _, names in os.walk(here) for name in names
                 if not name.endswith(COMPILED)]
        return Going(path=path, kind="folder", files=len(sizes), size=sum(sizes))
    return Going(path=path, kind="link" if stat.S_ISLNK(status.st_mode) else "file", files=1, size=status.st_size)


def files_of(going: tuple[Going, ...], file: Path, claims: Mapping[str, Claim], prefix: str) -> WheelFiles:
    """All that a wheel changes. `claims`: the files that it would have below `prefix`, the environment's own path.

    Raises BadInput for a wheel that has files where transactions are kept.
    """
    coming = [Coming(path=path[len(prefix) + 1:], size=size or 0, sha256=hexadecimal(digest))
              for path, (_, size, digest) in claims.items()
              if path.startswith(f"{prefix}/") and not path.endswith((".dist-info/RECORD", COMPILED))]
    for each in coming:
        check_free_of_store(each.path)
    coming += [Coming(path=f"bin/{name}", size=0, sha256=None) for name in scripts_of(file)]
    return WheelFiles(going=going, coming=tuple(sorted(coming, key=lambda each: each.path)))


def scripts_of(file: Path) -> Iterator[str]:
    """Names of the programs that an installer makes for a wheel."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        yield from (posixpath.basename(each) for each in names if re.fullmatch(r"[^/]+\.data/scripts/[^/]+", each))
        table = next((each for each in names if re.fullmatch(r"[^/]+\.dist-info/entry_points\.txt", each)), None)
        if table is None:
            return
        text = archive.read(table).decode("utf-8", "replace")
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
    parser.optionxform = str        # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in SCRIPT_SECTIONS:
        if parser.has_section(section):
            yield from (name for name in parser.options(section) if "/" not in name)
