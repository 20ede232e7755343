"""`stackfix sync`: bring an environment to a lockfile, both steps, through uv or pip."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from stackfix.errors import BadInput, Unreachable
from stackfix.resolve.records import Releases
from stackfix.sync.changes import plan_changes
from stackfix.sync.errors import InstallFailed
from stackfix.sync.installed import read_installed
from stackfix.sync.interpreter import find_executable, read_interpreter
from stackfix.sync.lockfile import read_steps
from stackfix.sync.plan import pip_installer, plan_commands, uv_installer
from stackfix.sync.records import Command, Installer, Interpreter, Plan
from stackfix.sync.source import addresses_from, release_wheels

STDERR = 2                      # talk goes to stderr, whatever the installer thinks
FindInstaller = Callable[[Interpreter, Mapping[str, str]], Installer]
Run = Callable[[Command, Path], int]
Tell = Callable[[Plan], None]


def sync(  # noqa: PLR0913 - one keyword for each option
    path: Path, *, environ: Mapping[str, str], prefix: str | None = None, python: str | None = None,
    flash_attn_source: str | None = None, releases: Releases | None = None, dry_run: bool = False, quiet: bool = False,
    find: FindInstaller | None = None, tell: Tell | None = None,
) -> int:
    """Exit status 0 once the environment holds what `path` pins, or, in a dry run, once the plan is told.

    All is read and checked before the first command: the lock, its second step, the interpreter, the wheel of
    `flash_attn_source` (a folder, or a mirror that `releases` reads). `find` chooses the installer; without it uv
    where it is, else pip. `tell` is given the plan before anything is installed. A dry run starts no installer, whose
    own dry run may download every file, and asks no server. Raises BadInput, LockDoesNotFit, Unreachable.
    """
    executable = find_executable(prefix=prefix, python=python, environ=environ)
    interpreter = read_interpreter(executable)
    steps = read_steps(path, interpreter)
    refuse_managed(interpreter)
    replaced = {}
    if flash_attn_source is not None and not (dry_run and "://" in flash_attn_source):
        replaced = addresses_from(steps, flash_attn_source, releases)
        if not any(release_wheels(steps)):
            say(f"{path.name} holds no flash-attn wheel by URL: --flash-attn-source is not used", quiet=quiet)
    installer = (find or find_installer)(interpreter, environ)
    if tell is not None:
        installed = read_installed(interpreter.sites)
        tell(Plan(prefix=interpreter.prefix, installer=installer.name,
                  changes=plan_changes(steps, installed, interpreter, installer.name)))
    if dry_run:
        return 0
    commands = plan_commands(steps, installer, environ=environ, replaced=replaced, quiet=quiet)
    say(f"{path.name} into {interpreter.prefix} with {installer.name}", quiet=quiet)
    for command in commands:
        install(command, run_command)
    return 0


def refuse_managed(interpreter: Interpreter) -> None:
    """Raises BadInput for a Python whose files belong to a package manager (PEP 668)."""
    if interpreter.externally_managed:
        raise BadInput(interpreter.executable, "is an externally managed Python: its packages belong to the system",
                       f"make an environment (`{interpreter.executable} -m venv .venv`) and name it with --prefix")


def find_installer(interpreter: Interpreter, environ: Mapping[str, str]) -> Installer:
    """The uv on PATH, else the uv package beside us, else pip."""
    on_path = shutil.which("uv", path=environ.get("PATH"))
    if on_path:
        return uv_installer((on_path,), interpreter)
    if importlib.util.find_spec("uv") is not None:
        return uv_installer((sys.executable, "-m", "uv"), interpreter)
    return pip_installer(sys.executable, interpreter)


def install(command: Command, run: Run) -> None:
    """Runs one command. Raises InstallFailed where it ends with an error."""
    with tempfile.TemporaryDirectory(prefix="stackfix-sync-") as folder:
        file = command.file
        if command.text is not None:
            file = Path(folder, "requirements.txt")
            file.write_text(command.text, encoding="utf-8")
        status = run(command, file)
    if status != 0:
        raise InstallFailed(
            command.file.name, f"`{shlex.join(command.words)} -r {command.file.name}` ended with status {status}",
            "its own message is above; what it had already installed stays")


def run_command(command: Command, file: Path) -> int:
    """Exit status of the installer, whose words go to stderr as they come."""
    try:
        done = subprocess.run([*command.words, "-r", str(file)], env=dict(command.environment), check=False,
                              stdin=subprocess.DEVNULL, stdout=STDERR)
    except OSError as error:
        raise Unreachable(command.words[0], f"cannot be started: {error.strerror}") from error
    return done.returncode


def say(text: str, *, quiet: bool) -> None:
    """One line on stderr."""
    if not quiet:
        sys.stderr.write(f"stackfix: {text}\n")
        sys.stderr.flush()
