"""What pip installed and a channel's package now brings: uninstalled first, so that no file belongs to both."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from stackfix.errors import Unreachable
from stackfix.sync.conda_pip import pip_projects
from stackfix.sync.errors import InstallFailed
from stackfix.sync.install import STDERR, FindInstaller
from stackfix.sync.installed import NAMED
from stackfix.sync.interpreter import in_prefix, read_interpreter
from stackfix.sync.plan import installer_environment
from stackfix.sync.records import Command, CondaInstalled, Unpacked
from stackfix.write.records import CondaPin


def uninstall_commands(
    prefix: Path, installed: Mapping[str, CondaInstalled], packages: Iterable[tuple[CondaPin, Unpacked]], *,
    find: FindInstaller, environ: Mapping[str, str],
) -> Iterator[Command]:
    """One command where pip's projects are in the way; none else."""
    owned = {path for one in installed.values() for path in one.files}
    found = sorted({name for name, _ in twice(prefix, packages, owned)})
    if not found or not in_prefix(prefix).is_file():
        return
    interpreter = read_interpreter(in_prefix(prefix))
    installer = find(interpreter, environ)
    words = (*installer.words[:-1], "uninstall", *(() if installer.name == "uv" else ("-y",)))
    after = installer.after if installer.name == "uv" else ("--disable-pip-version-check",)
    yield Command(words=(*words, *after, *found), file=prefix, text=None, environment=installer_environment(environ))


def twice(
    prefix: Path, packages: Iterable[tuple[CondaPin, Unpacked]], owned: Collection[str],
) -> Iterator[tuple[str, Path]]:
    """(name, .dist-info) of the projects of pip that these packages bring."""
    brought = {project for _, package in packages for project in projects_of(package.paths)}
    yield from (found for found in pip_projects(prefix, owned) if found[0] in brought)


def projects_of(paths: Iterable[str]) -> Iterator[str]:
    """The Python projects whose metadata is at these paths."""
    for path in paths:
        parts = PurePosixPath(path).parts
        folder = next((part for part in parts if part.endswith((".dist-info", ".egg-info"))), None)
        named = NAMED.fullmatch(folder) if folder else None
        if named:
            yield canonicalize_name(named["name"])


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
