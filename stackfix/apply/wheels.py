"""Releases brought by uv or pip into a folder of ours: downloaded and checked before anything is removed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.plan.records import InstallWheel
from stackfix.sync.install import find_installer, install
from stackfix.sync.interpreter import find_executable, read_interpreter
from stackfix.sync.plan import installer_environment
from stackfix.sync.records import Command, Installer

STDERR = 2                      # an installer's talk is no answer of ours
DEATH_SIGNAL = 1                # prctl(2): PR_SET_PDEATHSIG
# --no-compile: compiled modules would name the stage's folder in every traceback
OPTIONS = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--no-compile")
PIP_ALONE = ("--ignore-installed", "--no-warn-script-location")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelInstaller:
    """`uv pip install` or `pip install` of one release with its hash, into a prefix of its own."""

    installer: Installer
    environment: tuple[tuple[str, str], ...]

    def __call__(self, step: InstallWheel, into: Path, /) -> None:
        """Raises InstallFailed, or Unreachable where the installer cannot be started."""
        own = PIP_ALONE if self.installer.name == "pip" else ()
        words = (*self.installer.words, *OPTIONS, *own, "--prefix", str(into), *self.installer.after)
        install(Command(words=words, file=Path(f"{step.project}.txt"), text=requirement(step),
                        environment=self.environment), run_bound)


def find_wheel_installer(prefix: str, environ: Mapping[str, str]) -> WheelInstaller:
    """The uv on PATH, else the uv beside us, else pip, for the Python of a prefix. Raises BadInput, Unreachable."""
    interpreter = read_interpreter(find_executable(prefix=prefix, python=None, environ=environ))
    return WheelInstaller(installer=find_installer(interpreter, environ), environment=installer_environment(environ))


def requirement(step: InstallWheel) -> str:
    """The step as a line of requirements that is met by one file alone."""
    what = f"{step.project} @ {step.source}" if "://" in step.source else f"{step.project}=={step.version}"
    return f"{what} --hash=sha256:{step.sha256}\n"


def run_bound(command: Command, file: Path) -> int:
    """Exit status of an installer that dies with us: it must not go on writing where we were killed."""
    try:
        done = subprocess.run([*command.words, "-r", str(file)], env=dict(command.environment), check=False,
                              stdin=subprocess.DEVNULL, stdout=STDERR,
                              preexec_fn=partial(die_with, os.getpid()))
    except OSError as error:
        raise Unreachable(command.words[0], f"cannot be started: {error.strerror}") from error
    return done.returncode


def die_with(parent: int) -> None:
    """Runs in the child, before the installer: the kernel kills it when its parent ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:      # it ended before we asked
            os.kill(os.getpid(), signal.SIGKILL)
