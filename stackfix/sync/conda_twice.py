"""What pip installed and a channel's package now brings: uninstalled first, so that no file belongs to both."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from stackfix.errors import Unreachable
from stackfix.sync.errors import InstallFailed
from stackfix.sync.install import STDERR, FindInstaller
from stackfix.sync.installed import NAMED, read_record
from stackfix.sync.interpreter import in_prefix, read_interpreter
from stackfix.sync.plan import installer_environment
from stackfix.sync.records import Command, CondaInstalled, Unpacked
from stackfix.write.records import CondaPin


def uninstall_commands(
    prefix: Path, installed: Mapping[str, CondaInstalled], packages: Iterable[tuple[CondaPin, Unpacked]], *,
    find: FindInstaller, environ: Mapping[str, str],
) -> Iterator[Command]:
    """One command where pip's projects are in the way; none else."""
    brought = {project for _, package in packages for project in projects_of(package)}
    owned = {path for one in installed.values() for path in one.files}
    found = sorted(pip_owned(prefix, brought, owned))
    if not found or not in_prefix(prefix).is_file():
        return
    interpreter = read_interpreter(in_prefix(prefix))
    installer = find(interpreter, environ)
    words = (*installer.words[:-1], "uninstall", *(() if installer.name == "uv" else ("-y",)))
    after = installer.after if installer.name == "uv" else ("--disable-pip-version-check",)
    yield Command(words=(*words, *after, *found), file=prefix, text=None, environment=installer_environment(environ))


def projects_of(package: Unpacked) -> Iterator[str]:
    """The Python projects whose metadata the package brings."""
    for path in package.paths:
        parts = PurePosixPath(path).parts
        folder = next((part for part in parts if part.endswith((".dist-info", ".egg-info"))), None)
        named = NAMED.fullmatch(folder) if folder else None
        if named:
            yield canonicalize_name(named["name"])


def pip_owned(prefix: Path, brought: set[str], owned: set[str]) -> Iterator[str]:
    """Projects of `brought` that are there and belong to no package of a channel, with a RECORD to go by."""
    for folder in prefix.glob("lib/python3*/site-packages/*.dist-info"):
        record = folder / "RECORD"
        if not record.is_file() or str((folder / "METADATA").relative_to(prefix)) in owned:
            continue
        known = read_record(folder)
        if known is not None and known.name in brought:
            yield known.name


def uninstall(command: Command) -> None:
    """Runs the command. Raises InstallFailed where it ends with an error."""
    try:
        done = subprocess.run(command.words, env=dict(command.environment), check=False, stdin=subprocess.DEVNULL,
                              stdout=STDERR)
    except OSError as error:
        raise Unreachable(command.words[0], f"cannot be started: {os.strerror(error.errno or 0)}") from error
    if done.returncode != 0:
        raise InstallFailed(str(command.file), f"`{shlex.join(command.words)}` ended with status {done.returncode}",
                            "its own message is above; no package of a channel was linked yet")
