"""`stackfix sync conda-lock.yml`: packages of channels through rattler, then those of pip through uv or pip."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.resolve.records import Releases
from stackfix.sync.changes import plan_changes, version_in
from stackfix.sync.conda_base import refuse_base, unseen_later
from stackfix.sync.conda_choice import choose, conda_pins, left_out, pip_step
from stackfix.sync.conda_detours import refuse_detours
from stackfix.sync.conda_download import Engine
from stackfix.sync.conda_intact import damaged
from stackfix.sync.conda_machine import detected, needs_of, refuse_old_machine
from stackfix.sync.conda_mark import read_mark
from stackfix.sync.conda_place import place
from stackfix.sync.conda_prefix import (
    plan_conda,
    python_minor,
    read_conda_installed,
    refuse_other_folder,
    refuse_two_records,
)
from stackfix.sync.conda_records import CondaSync
from stackfix.sync.conda_second import second_step
from stackfix.sync.conda_store import Progress, Store, fetch_all
from stackfix.sync.conda_turn import turn
from stackfix.sync.install import FindInstaller, Tell, find_installer, install, refuse_managed, run_command, say
from stackfix.sync.installed import read_installed
from stackfix.sync.interpreter import checked, in_prefix, read_interpreter
from stackfix.sync.plan import plan_commands
from stackfix.sync.records import Change, Plan
from stackfix.sync.source import addresses_from
from stackfix.write.records import CondaLockFile


def sync_conda(  # noqa: PLR0913 - one keyword for each option
    lock: CondaLockFile, *, engine: Engine, store: Store, environ: Mapping[str, str], prefix: str | None = None,
    environment: str | None = None, flash_attn_source: str | None = None, releases: Releases | None = None,
    dry_run: bool = False, quiet: bool = False, find: FindInstaller | None = None, tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None, set_aside: bool = False, allow_base: bool = False,
) -> int:
    """Exit status 0 once the prefix holds what `lock` pins, or, in a dry run, once the plan is told.

    Every archive is fetched, hashed and read before the first is linked. What an interrupted sync was at work on is
    done anew. Files that no package owns and the lock's packages bring are refused, or with `set_aside` moved.
    Raises BadInput, LockDoesNotFit, Unreachable.
    """
    folder = prefix_of(prefix, environ)
    refuse_other_folder(folder)
    if dry_run:
        asked = plan_sync(lock, folder, environment=environment, engine=engine, base=None if allow_base else environ)
        tell_plan(asked, tell, quiet=quiet)
        return 0
    finder = find or find_installer
    with turn(folder, quiet=quiet):         # what is there is read when nobody else changes it
        asked = plan_sync(lock, folder, environment=environment, engine=engine, base=None if allow_base else environ)
        tell_plan(asked, tell, quiet=quiet)
        replaced = {} if flash_attn_source is None else addresses_from(asked.steps, flash_attn_source, releases)
        with store.locked():
            link_conda(asked, engine, store, environ=environ, quiet=quiet, find=finder, progress=progress,
                       aside=set_aside)
        if asked.steps:
            interpreter = read_interpreter(checked(in_prefix(asked.prefix), f"--prefix {asked.prefix}"))
            refuse_managed(interpreter)
            installer = finder(interpreter, environ)
            say(f"packages of pip into {asked.prefix} with {installer.name}", quiet=quiet)
            for command in plan_commands(asked.steps, installer, environ=environ, replaced=replaced, quiet=quiet):
                install(command, run_command)
    return 0


def plan_sync(
    lock: CondaLockFile, folder: Path, *, environment: str | None, engine: Engine, base: Mapping[str, str] | None,
) -> CondaSync:
    """What is to be done in `folder`. `base`: the variables that say whether it is conda's own; None: it may be."""
    name = Path(lock.path).name
    interrupted = read_mark(folder)
    doubtful = interrupted.packages if interrupted is not None else frozenset[str]()
    installed = read_conda_installed(folder, doubtful=doubtful)
    refuse_two_records(folder, installed, doubtful)
    chosen = choose(lock, engine.platform, environment=environment, python=python_minor(installed))
    pins = conda_pins(chosen, name)
    notes = []
    others = left_out(chosen)
    if others:
        notes.append(f"{name}: {others} packages of other categories than main are left out")
    if interrupted is not None:
        notes.append(f"{folder}: an earlier sync was interrupted; {len(doubtful)} packages are done anew")
    faulty = {each: why for each, why in damaged(folder, installed).items() if each not in doubtful}
    changes = plan_conda(pins, installed, doubtful | faulty.keys())
    notes += [f"{change.name}: {faulty[change.name]}; it is linked anew" for change in changes
              if change.action == "change" and change.installed == change.locked and change.name in faulty]
    steps = pip_step(chosen, Path(lock.path))
    if steps and chosen.python is None:
        raise BadInput(name, "has packages of pip, but no python to install them into", "lock again")
    if chosen.python is not None:
        steps += second_step(lock, (chosen.python, chosen.platform))
    notes += unseen_later(folder, installed, chosen.python, [entry.name for step in steps for entry in step.entries])
    if base is not None:
        refuse_base(folder, changes, base)
    return CondaSync(lock=lock, prefix=folder, pins=pins, steps=steps, python=chosen.python, installed=installed,
                     changes=changes, interrupted=interrupted, notes=tuple(notes))


def tell_plan(asked: CondaSync, tell: Tell | None, *, quiet: bool) -> None:
    """Says and tells what will be done."""
    for note in asked.notes:
        say(note, quiet=quiet)
    if tell is not None:
        tell(Plan(prefix=str(asked.prefix), installer="rattler", changes=(*asked.changes, *pip_changes(asked))))


def prefix_of(prefix: str | None, environ: Mapping[str, str]) -> Path:
    """The absolute path of the environment. Raises BadInput where none is named."""
    named = prefix or environ.get("CONDA_PREFIX")
    if not named:
        raise BadInput("--prefix", "is needed: no conda environment is active", "name the folder with --prefix DIR")
    path = Path(os.path.abspath(named))  # noqa: PTH100 - resolve() would follow a link that the user means
    if not str(path).isprintable():
        raise BadInput(f"--prefix {named!r}", "has a control character")
    return path


def pip_changes(asked: CondaSync) -> tuple[Change, ...]:
    """What becomes of the pins of pip, as far as the Python that is there tells; all are new for another one."""
    if asked.steps and python_minor(asked.installed) == asked.python and in_prefix(asked.prefix).is_file():
        interpreter = read_interpreter(in_prefix(asked.prefix))
        return plan_changes(asked.steps, read_installed(interpreter.sites), interpreter, "uv")
    return tuple(Change(action="install", name=entry.name, installed=None, build=step.build,
                        locked=entry.version or version_in(entry.url or "") or entry.url or "")
                 for step in asked.steps for entry in step.entries)


def link_conda(
    asked: CondaSync, engine: Engine, store: Store, *, environ: Mapping[str, str], quiet: bool, find: FindInstaller,
    progress: Progress, aside: bool,
) -> None:
    """The packages of channels. Nothing is changed before every archive is there and was found good."""
    wanted = {change.name for change in asked.changes if change.action in {"install", "change"}}
    if all(change.action == "keep" for change in asked.changes) and asked.interrupted is None:
        say(f"{asked.name}: all {len(asked.pins)} packages of channels are there", quiet=quiet)
        return
    going = sum(change.action == "remove" for change in asked.changes)
    say(f"{asked.name} into {asked.prefix}: {len(wanted)} packages of channels"
        f"{f', {going} others are removed' if going else ''}", quiet=quiet)
    pins = tuple(pin for pin in asked.pins if pin.name in wanted)
    unpacked = fetch_all(store, pins, engine, progress)
    packages = [(pin, unpacked[pin.name]) for pin in pins]
    refuse_detours(packages, asked.python, asked.prefix)
    needs = needs_of(packages, from_lock=asked.lock.kind != "explicit")
    for line in refuse_old_machine(asked.lock, asked.name, needs, detected()):
        say(line, quiet=quiet)
    place(asked, packages, engine, store, environ=environ, quiet=quiet, find=find, aside=aside)
    for pin, package in packages:
        if package.scripts:
            say(f"{pin.name}: its own scripts were not run ({', '.join(package.scripts)})", quiet=quiet)
