"""Fetched packages into the prefix: all that could be in the way is looked for before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stackfix.sync.conda_archive import placed_paths
from stackfix.sync.conda_aside import set_aside
from stackfix.sync.conda_download import Engine
from stackfix.sync.conda_inside import Inside, refuse_ways_out
from stackfix.sync.conda_intact import changed_files
from stackfix.sync.conda_link import begin, link, linked_records
from stackfix.sync.conda_mark import is_placed, remove_mark, sweep
from stackfix.sync.conda_obstacles import Obstacle, doubles, obstacles, refuse
from stackfix.sync.conda_pip import pip_files, recorded
from stackfix.sync.conda_records import CondaSync
from stackfix.sync.conda_room import refuse_closed_folders, refuse_full_disk
from stackfix.sync.conda_store import Store
from stackfix.sync.conda_twice import twice, uninstall, uninstall_commands
from stackfix.sync.errors import InstallFailed
from stackfix.sync.install import FindInstaller, say
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaPin

Packages = list[tuple[CondaPin, Unpacked]]


def place(
    asked: CondaSync, packages: Packages, engine: Engine, store: Store, *, environ: Mapping[str, str], quiet: bool,
    find: FindInstaller, aside: bool,
) -> None:
    """Links `packages`, and takes away what is to go. Raises BadInput or Unreachable before anything is changed.

    `aside`: move what is in the way, instead of an error.
    """
    prefix, before = asked.prefix, asked.interrupted
    linked = linked_records(asked.installed)
    refuse_detours_on_disk(asked, packages)
    pips = pips_of(asked)
    found = obstacles(prefix, packages, python=asked.python, free=free_paths(asked, packages, pips))
    if not aside:
        refuse(prefix, found, pips)
    refuse_full_disk(prefix, store.folder, packages, asked)
    for line in doubles(packages, kept_owners(asked), asked.python):
        say(line, quiet=quiet)
    if before is not None:
        for moved in sweep(prefix, before):
            say(f"what is not of the interrupted sync was moved to {moved}", quiet=quiet)
    move(asked, found, quiet=quiet)
    begin(prefix, asked.changes, asked.installed, packages=packages, python=asked.python, store=store, before=before)
    try:
        for command in uninstall_commands(prefix, asked.installed, packages, find=find, environ=environ):
            uninstall(command)
    except InstallFailed:
        if before is None:
            remove_mark(prefix)     # nothing was linked
        raise
    keep_edits(asked, quiet=quiet)
    link(prefix, asked.pins, asked.changes, unpacked={pin.name: package for pin, package in packages}, linked=linked,
         store=store, engine=engine, from_lock=asked.lock.kind == "pixi")   # conda-lock.yml merges lines about one name


def refuse_detours_on_disk(asked: CondaSync, packages: Packages) -> None:
    """Raises BadInput where a path leads through a link out of the prefix, Unreachable where one cannot be written."""
    paths = [(pin.name, path) for pin, package in packages for path in placed_paths(package, asked.python)]
    paths += [(change.name, path) for change in asked.changes if change.action != "keep"
              and change.name in asked.installed for path in asked.installed[change.name].files]
    refuse_ways_out(Inside(asked.prefix), paths)
    refuse_closed_folders(asked.prefix, (path for _, path in paths))


def owned_paths(asked: CondaSync) -> set[str]:
    """What packages of channels own."""
    return {path for one in asked.installed.values() for path in one.files}


def pips_of(asked: CondaSync) -> dict[str, str]:
    """Path -> the project of pip that it belongs to."""
    before = asked.interrupted
    if before is None:
        return pip_files(asked.prefix, owned_paths(asked))
    return pip_files(asked.prefix, owned_paths(asked), is_ours=lambda path: is_placed(asked.prefix, path, before))


def free_paths(asked: CondaSync, packages: Packages, pips: Mapping[str, str]) -> set[str]:
    """Paths at which the sync may place its own: of packages, of a killed sync, of what pip is to uninstall."""
    owned = owned_paths(asked)
    swept = asked.interrupted.paths.keys() - pips.keys() if asked.interrupted is not None else set[str]()
    return owned | swept | {path for _, folder in twice(asked.prefix, packages, owned)
                            for path in recorded(asked.prefix, folder)}


def kept_owners(asked: CondaSync) -> dict[str, str]:
    """Path -> the package that stays with it."""
    kept: Collection[str] = {change.name for change in asked.changes if change.action == "keep"}
    return {path: name for name in kept for path in asked.installed[name].files}


def keep_edits(asked: CondaSync, *, quiet: bool) -> None:
    """Moves the changed files of packages that are linked anew for them."""
    for change in asked.changes:
        if change.action == "change" and change.installed == change.locked:
            for path in changed_files(asked.prefix, asked.installed[change.name]):
                target = set_aside(asked.prefix, path)
                say(f"{path} of {change.name} was changed: it was moved to {target}", quiet=quiet)


def move(asked: CondaSync, found: tuple[Obstacle, ...], *, quiet: bool) -> None:
    """Moves what is in the way."""
    for one in found:
        target = set_aside(asked.prefix, one.path)
        say(f"{one.path} was moved to {target}: {one.package} brings another", quiet=quiet)
