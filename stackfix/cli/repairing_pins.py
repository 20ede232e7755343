"""The lockfile that `repair --lock` goes toward: read whole, and only where it is for this environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from stackfix.diagnose.installed_torch import installed_torch
from stackfix.diagnose.situation import View
from stackfix.errors import AnswerIsNo, BadInput
from stackfix.plan.install_choice import Wanted
from stackfix.plan.records import InstallWheel, Plan
from stackfix.platforms import LINUX_MACHINES, LINUX_SUBDIRS
from stackfix.sync.changes import version_in
from stackfix.sync.fits import marker_holds
from stackfix.sync.lockfile import read_steps
from stackfix.sync.records import Interpreter

if TYPE_CHECKING:
    from stackfix.write.records import Entry

TORCH = "torch"
READ = "a requirements.txt with hashes or a pylock.toml"


class OtherTorch(AnswerIsNo):
    """The lock is for another torch than the one that is there: a repair keeps torch."""

    reference: ClassVar[str] = "lock-does-not-fit"

    def __init__(self, *, lock: str, pinned: str, torch: str | None, command: str) -> None:
        super().__init__(lock, pinned, torch, command)
        self.lock, self.pinned, self.torch, self.command = lock, pinned, torch, command

    def what(self) -> str:
        there = f"torch {self.torch}" if self.torch else "no torch"
        return f"{self.lock} is locked for torch {self.pinned}; the environment has {there}, and a repair keeps that"

    def next_step(self) -> str:
        return f"`{self.command}` brings the whole environment to the lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One project of the lock."""

    entry: Entry
    built: bool                     # of the second step, which is compiled here

    @property
    def version(self) -> str | None:
        """As its metadata has it; None for an address that names none."""
        return self.entry.version or version_in(self.entry.url or "")

    @property
    def build(self) -> str | None:
        """The same with the local version that the file's name states: "2.3.1+cu118"."""
        parts = unquote(urlsplit(self.entry.url or "").path.rpartition("/")[2]).split("-")
        return self.version if self.entry.url is None or self.version is None else parts[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """An installed release that is not the lock's."""

    name: str
    installed: str
    locked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """A lockfile, as far as it holds for an environment."""

    file: str                       # as the user named it
    name: str                       # without its folders
    sync: str                       # the command that brings all of the environment to it
    pins: tuple[tuple[str, Pin], ...]

    def of(self, project: str) -> Pin | None:
        return dict(self.pins).get(project)

    def differing(self, view: View) -> Iterator[Rest]:
        """What installers of wheels have put there in another release than the lock's."""
        pins = dict(self.pins)
        for each in sorted(view.distributions.values(), key=lambda each: each.name):
            pin = pins.get(each.name)
            if pin is not None and each.manager == "pip" and not is_release(each.version, pin.version):
                yield Rest(name=each.name, installed=each.version, locked=pin.version or pin.entry.url or "")

    def wanted(self, view: View) -> tuple[Wanted, ...]:
        """The same, as a plan asks for it."""
        return tuple(Wanted(project=each.name, specifier="", near=each.installed) for each in self.differing(view)
                     if each.name != TORCH)

    def rest(self, view: View, plan: Plan) -> tuple[Rest, ...]:
        """What differs, and a plan leaves as it is."""
        done = {step.project for action in plan.actions for step in action.steps if isinstance(step, InstallWheel)}
        return tuple(each for each in self.differing(view) if each.name not in done)


def is_release(installed: str, locked: str | None) -> bool:
    """Whether an installed version is what the lock pins; a local version counts where both have one."""
    try:
        here, there = Version(installed), Version(locked or "")
    except InvalidVersion:
        return installed == locked
    return here.public == there.public and (None in {here.local, there.local} or here.local == there.local)


def read_pins(file: str, view: View, command: str) -> Pins:
    """The lock. Raises BadInput for what is none, LockDoesNotFit and OtherTorch for one of another environment.

    command: what brings the environment to a lock, without the lock's name
    """
    path, sync = Path(file), f"{command} {shlex.quote(file)}"
    if path.suffix in {".yml", ".yaml"} or path.name.startswith("conda-"):
        raise BadInput(f"--lock {file}", f"repair goes toward {READ}, and not toward a conda lock",
                       f"`{sync}` brings the whole environment to it")
    if path.suffix not in {".txt", ".toml"}:
        raise BadInput(f"--lock {file}", f"repair goes toward {READ}", "`stackfix lock` writes both")
    interpreter = interpreter_of(view)
    pins = dict[str, Pin]()
    for step in read_steps(path, interpreter):
        for entry in step.entries:
            if entry.marker is None or marker_holds(entry.marker, f"{path.name} line {entry.line}", interpreter):
                pins[entry.name] = Pin(entry=entry, built=step.build)
    must_be_for_torch(path.name, pins.get(TORCH), view, sync)
    return Pins(file=file, name=path.name, sync=sync, pins=tuple(pins.items()))


def must_be_for_torch(name: str, pin: Pin | None, view: View, sync: str) -> None:
    """Raises OtherTorch."""
    torch = installed_torch(view)
    if pin is not None and (torch is None or not is_release(torch.version, pin.build)):
        raise OtherTorch(lock=name, pinned=pin.build or pin.entry.url or "", command=sync,
                         torch=torch.version if torch else None)


def interpreter_of(view: View) -> Interpreter:
    """The environment's Python, as its files tell: nothing is started. Raises BadInput where they do not."""
    python, system = view.environment.python, os.uname()
    if python is None:
        raise BadInput(view.environment.prefix, "has no Python that a lock could be for", "name another with --prefix")
    platform = python.platform or LINUX_SUBDIRS.get(system.machine)
    full = python.version or f"{python.minor}.0"
    name = {"cpython": "CPython", "pypy": "PyPy"}.get(python.implementation, python.implementation)
    markers = {
        "implementation_name": python.implementation, "implementation_version": full, "os_name": "posix",
        "platform_machine": LINUX_MACHINES.get(platform or "", system.machine), "platform_release": system.release,
        "platform_system": "Linux", "platform_version": system.version, "python_full_version": full,
        "platform_python_implementation": name, "python_version": python.minor, "sys_platform": "linux"}
    return Interpreter(
        executable=python.executable or "", prefix=view.environment.prefix, python=python.minor,
        implementation=python.implementation, platform=platform or f"other-linux-{system.machine}", has_pip=False,
        externally_managed=python.externally_managed, markers=tuple(sorted(markers.items())))
