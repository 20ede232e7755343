"""Environments that others run from, and what pip installed for a Python that goes: told before anything is changed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.sync.conda_prefix import python_minor
from stackfix.sync.installed import read_record, records_in
from stackfix.sync.records import Change, CondaInstalled

MANAGERS = ("conda", "mamba", "micromamba")
OF_BASE = ("condabin", "envs", "pkgs")          # folders below the root of an installation, and below nothing else
SHOWN = 6


def refuse_base(prefix: Path, changes: Collection[Change], environ: Mapping[str, str]) -> None:
    """Raises BadInput where changing the prefix takes away what conda, or this command, runs from."""
    if all(change.action == "keep" for change in changes):
        return
    why = next(reasons(prefix, changes, environ), None)
    if why is not None:
        gone = sum(change.action == "remove" for change in changes)
        raise BadInput(f"--prefix {prefix}", f"{why}; {gone} packages would be removed that the lock does not name",
                       "name another folder with --prefix DIR; --allow-base does it all the same")


def reasons(prefix: Path, changes: Collection[Change], environ: Mapping[str, str]) -> Iterator[str]:
    """What the prefix is beside an environment."""
    for change in changes:
        if change.name in MANAGERS and change.action == "remove":
            yield f"is the environment of {change.name} itself, which the lock would remove"
    there = [change.name for change in changes if change.installed is not None and change.name in MANAGERS]
    folders = [name for name in OF_BASE if (prefix / name).is_dir()]
    named = [variable for variable, place in base_places(environ) if is_one(place, prefix)]
    if folders or named or there:
        told = ", ".join([*there, *(f"{name}/" for name in folders), *named])
        yield f"is the base environment of conda, as it seems ({told})"
    if any(is_one(Path(own), prefix) for own in (sys.prefix, sys.base_prefix)):
        yield "is the environment that this command runs from"


def base_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Where the variables of conda and mamba say that they are installed."""
    if environ.get("CONDA_EXE"):
        yield "CONDA_EXE", Path(environ["CONDA_EXE"]).parent.parent
    if environ.get("MAMBA_ROOT_PREFIX"):
        yield "MAMBA_ROOT_PREFIX", Path(environ["MAMBA_ROOT_PREFIX"])


def is_one(place: Path, prefix: Path) -> bool:
    """Whether both are the same folder."""
    try:
        return place.samefile(prefix)
    except (OSError, ValueError):
        return False


def unseen_later(
    prefix: Path, installed: Mapping[str, CondaInstalled], python: str | None, locked: Collection[str],
) -> Iterator[str]:
    """That another Python does not see what pip installed for this one. `locked`: what pip installs after it."""
    before = python_minor(installed)
    if before is None or python == before:
        return
    owned = {path for one in installed.values() for path in one.files}
    names = []
    for path in records_in(prefix / f"lib/python{before}/site-packages"):
        place = str(path.relative_to(prefix))
        known = None if owned & {place, f"{place}/METADATA", f"{place}/PKG-INFO"} else read_record(path)
        if known is not None and known.name not in locked:
            names.append(known.name)
    if names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        later = f"Python {python}, which replaces {before}, does not see" if python else (
            f"Python {before} goes, and with it")
        yield f"{later} what pip installed here and the lock does not name: {shown}; install it anew"
