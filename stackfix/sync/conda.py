"""`stackfix sync conda-lock.yml`: packages of channels through rattler, then those of pip through uv or pip."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.resolve.records import Releases
from stackfix.sync.changes import plan_changes, version_in
from stackfix.sync.conda_archive import refuse_detours
from stackfix.sync.conda_choice import choose, conda_pins, left_out, pip_step
from stackfix.sync.conda_download import Engine
from stackfix.sync.conda_link import link
from stackfix.sync.conda_machine import detected, needs_of, refuse_old_machine
from stackfix.sync.conda_prefix import (
    plan_conda,
    python_minor,
    read_conda_installed,
    read_mark,
    refuse_other_folder,
)
from stackfix.sync.conda_second import second_step
from stackfix.sync.conda_store import Progress, Store, fetch_all
from stackfix.sync.conda_twice import uninstall, uninstall_commands
from stackfix.sync.install import FindInstaller, Tell, find_installer, install, refuse_managed, run_command, say
from stackfix.sync.installed import read_installed
from stackfix.sync.interpreter import checked, in_prefix, read_interpreter
from stackfix.sync.plan import plan_commands
from stackfix.sync.records import Change, CondaInstalled, Plan, Step
from stackfix.sync.source import addresses_from
from stackfix.write.records import CondaLockFile, CondaPin


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaSync:
    """What to do, read whole before anything is done."""

    lock: CondaLockFile
    prefix: Path
    pins: tuple[CondaPin, ...]
    steps: tuple[Step, ...]         # of pip: entries of the lock, then its second step
    python: str | None              # the minor that will be there
    installed: Mapping[str, CondaInstalled]
    changes: tuple[Change, ...]     # of packages of channels
    doubtful: frozenset[str]        # packages that an interrupted sync was at work on

    @property
    def name(self) -> str:
        """For messages."""
        return Path(self.lock.path).name


def sync_conda(  # noqa: PLR0913 - one keyword for each option
    lock: CondaLockFile, *, engine: Engine, store: Store, environ: Mapping[str, str], prefix: str | None = None,
    environment: str | None = None, flash_attn_source: str | None = None, releases: Releases | None = None,
    dry_run: bool = False, quiet: bool = False, find: FindInstaller | None = None, tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> int:
    """Exit status 0 once the prefix holds what `lock` pins, or, in a dry run, once the plan is told.

    Every archive is fetched, hashed and read before the first is linked. What an interrupted sync was at work on is
    done anew. Raises BadInput, LockDoesNotFit, Unreachable.
    """
    asked = plan_sync(lock, prefix=prefix, environment=environment, environ=environ, engine=engine, quiet=quiet)
    if tell is not None:
        tell(Plan(prefix=str(asked.prefix), installer="rattler", changes=(*asked.changes, *pip_changes(asked))))
    if dry_run:
        return 0
    replaced = ({} if flash_attn_source is None else
                addresses_from(asked.steps, flash_attn_source, releases))
    finder = find or find_installer
    with store.locked():
        link_conda(asked, engine, store, environ=environ, quiet=quiet, find=finder, progress=progress)
    if asked.steps:
        interpreter = read_interpreter(checked(in_prefix(asked.prefix), f"--prefix {asked.prefix}"))
        refuse_managed(interpreter)
        installer = finder(interpreter, environ)
        say(f"packages of pip into {asked.prefix} with {installer.name}", quiet=quiet)
        for command in plan_commands(asked.steps, installer, environ=environ, replaced=replaced, quiet=quiet):
            install(command, run_command)
    return 0


def plan_sync(
    lock: CondaLockFile, *, prefix: str | None, environment: str | None, environ: Mapping[str, str], engine: Engine,
    quiet: bool,
) -> CondaSync:
    """What is to be done. Asks no server."""
    name = Path(lock.path).name
    folder = prefix_of(prefix, environ)
    refuse_other_folder(folder)
    interrupted = read_mark(folder)
    doubtful = interrupted.packages if interrupted is not None else frozenset[str]()
    installed = read_conda_installed(folder, doubtful=doubtful)
    chosen = choose(lock, engine.platform, environment=environment, python=python_minor(installed))
    pins = conda_pins(chosen, name)
    if prefix is None and "conda" in installed and all(pin.name != "conda" for pin in pins):
        raise BadInput(f"CONDA_PREFIX={folder}", "is the environment of conda itself, which the lock would remove",
                       "name another with --prefix DIR")
    others = left_out(chosen)
    if others:
        say(f"{name}: {others} packages of other categories than main are left out", quiet=quiet)
    if interrupted is not None:
        say(f"{folder}: an earlier sync was interrupted; {len(doubtful)} packages are done anew", quiet=quiet)
    steps = pip_step(chosen, Path(lock.path))
    if steps and chosen.python is None:
        raise BadInput(name, "has packages of pip, but no python to install them into", "lock again")
    if chosen.python is not None:
        steps += second_step(lock, (chosen.python, chosen.platform))
    return CondaSync(lock=lock, prefix=folder, pins=pins, steps=steps, python=chosen.python, installed=installed,
                     changes=plan_conda(pins, installed, doubtful), doubtful=doubtful)


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
    progress: Progress,
) -> None:
    """The packages of channels. Nothing is changed before every archive is there and was found good."""
    wanted = {change.name for change in asked.changes if change.action in {"install", "change"}}
    if all(change.action == "keep" for change in asked.changes) and read_mark(asked.prefix) is None:
        say(f"{asked.name}: all {len(asked.pins)} packages of channels are there", quiet=quiet)
        return
    say(f"{asked.name} into {asked.prefix}: {len(wanted)} packages of channels", quiet=quiet)
    pins = tuple(pin for pin in asked.pins if pin.name in wanted)
    unpacked = fetch_all(store, pins, engine, progress)
    packages = [(pin, unpacked[pin.name]) for pin in pins]
    refuse_detours(packages, asked.python)
    needs = needs_of(packages, from_lock=asked.lock.kind != "explicit")
    for line in refuse_old_machine(asked.lock, asked.name, needs, detected()):
        say(line, quiet=quiet)
    sure = [(pin, package) for pin, package in packages if pin.name not in asked.doubtful]
    for command in uninstall_commands(asked.prefix, asked.installed, sure, find=find, environ=environ):
        uninstall(command)
    link(asked.prefix, asked.pins, asked.changes, unpacked=unpacked, installed=asked.installed, store=store,
         engine=engine, python=asked.python,
         from_lock=asked.lock.kind == "pixi")       # conda-lock.yml merges lines about one name
    for pin, package in packages:
        if package.scripts:
            say(f"{pin.name}: its own scripts were not run ({', '.join(package.scripts)})", quiet=quiet)
