"""Releases brought by uv or pip into a folder of ours: downloaded and checked before anything is removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.plan.records import InstallWheel
from stackfix.sync.errors import InstallFailed
from stackfix.sync.install import find_installer, install
from stackfix.sync.interpreter import find_executable, read_interpreter
from stackfix.sync.plan import installer_environment
from stackfix.sync.records import Command, Installer

# Runs between us and an installer: the pipe ends when we do, and then the whole group does
BOUND = """
import os, signal, subprocess, sys, threading
def watch(end):
    os.read(end, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=watch, args=(int(sys.argv[1]),), daemon=True).start()
sys.exit(subprocess.call(sys.argv[2:]))
"""
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
        try:
            install(Command(words=words, file=Path(f"{step.project}.txt"), text=requirement(step),
                            environment=self.environment), run_bound)
        except InstallFailed as error:
            raise InstallFailed(step.file, error.reason, "its own message is above; nothing was changed") from error


def find_wheel_installer(prefix: str, environ: Mapping[str, str]) -> WheelInstaller:
    """The uv on PATH, else the uv beside us, else pip, for the Python of a prefix. Raises BadInput, Unreachable."""
    interpreter = read_interpreter(find_executable(prefix=prefix, python=None, environ=environ))
    environment = {**dict(installer_environment(environ)), "PYTHONDONTWRITEBYTECODE": "1"}    # pip is a module there
    return WheelInstaller(installer=find_installer(interpreter, environ), environment=tuple(environment.items()))


def requirement(step: InstallWheel) -> str:
    """The step as a line of requirements that is met by one file alone."""
    what = f"{step.project} @ {step.source}" if "://" in step.source else f"{step.project}=={step.version}"
    return f"{what} --hash=sha256:{step.sha256}\n"


def run_bound(command: Command, file: Path) -> int:
    """Exit status of an installer that ends with us, killed or not, and with all that it has started.

    It must not go on writing where a run was killed, and pip may be two processes. What it says is shown where it
    fails: nobody asked how a wheel is unpacked. Raises Unreachable.
    """
    environment = dict(command.environment)
    if shutil.which(command.words[0], path=environment.get("PATH")) is None:
        raise Unreachable(command.words[0], "cannot be started: no such program")
    ours, its = os.pipe()
    try:
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", BOUND, str(ours), *command.words, "-r", str(file)],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, pass_fds=(ours,), start_new_session=True) as child:
            try:
                talk = child.communicate()[0]
                if child.returncode != 0:
                    show(talk)
                return child.returncode
            finally:
                os.close(its)       # also after an interrupt, which the terminal tells us alone
                its = -1
    except OSError as error:
        raise Unreachable(command.words[0], f"cannot be started: {error.strerror}") from error
    finally:
        os.close(ours)
        if its >= 0:
            os.close(its)


def show(talk: bytes) -> None:
    """An installer's own message, on stderr: it is no answer of ours."""
    sys.stderr.write(talk.decode("utf-8", "replace"))
    sys.stderr.flush()
