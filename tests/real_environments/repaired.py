"""`stackfix repair` and `undo` of an environment as its users run them, and processes that are started after it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.judges.command import Run, run
from tests.real_environments.child import SCRIPT, Told, told_by
from tests.real_environments.workshop import Made, Workshop

PATIENCE = 1800     # seconds for a torch over a slow line
MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
ACTIVATED = '. "$1/bin/activate" && exec env -0'


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where environments are made, and the settings with which they are repaired."""

    workshop: Workshop
    settings: Mapping[str, str] = field(default_factory=dict)

    def stackfix(self, *words: str | Path, before: Sequence[str] = (), **variables: str) -> Run:
        """`stackfix …`, with uv's cache that the environments are linked to."""
        workshop = self.workshop
        cache = workshop.folder.with_name(workshop.folder.name + "-stackfix")
        own = {"STACKFIX_CACHE_DIR": str(cache), "UV_CACHE_DIR": str(workshop.cache), "PIP_CONFIG_FILE": os.devnull,
               "UV_NO_CONFIG": "1", "NO_COLOR": "1", **self.settings}
        if "PIP_CERT" in os.environ:
            own.setdefault("SSL_CERT_FILE", os.environ["PIP_CERT"])
        return run([*before, sys.executable, "-m", "stackfix", *words], cwd=workshop.folder, timeout=PATIENCE,
                   env=workshop.quiet(**{**own, **variables}))

    def plan(self, made: Made, *words: str, **variables: str) -> Answer:
        """The plan of a tree that cannot be written to."""
        with unwritable(made.prefix) as before:
            return self._answer(made, ("--dry-run", *words), variables, before)

    def repair(self, made: Made, *words: str, **variables: str) -> Answer:
        """`repair --yes`."""
        return self._answer(made, ("--yes", *words), variables)

    def _answer(self, made: Made, words: Sequence[str], variables: Mapping[str, str],
                before: Sequence[str] = ()) -> Answer:
        done = self.stackfix("repair", "--json", "--prefix", made.prefix, *words, before=before, **variables)
        assert done.status in {0, 1}, done
        assert done.stdout, done
        return Answer(run=done, said=done.json)

    def undo(self, made: Made) -> Run:
        """`undo`, which needs no variable."""
        done = self.stackfix("undo", "--prefix", made.prefix)
        assert done.status == 0, done
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one repair said."""

    run: Run
    said: Mapping[str, Any]

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """Actions that change something."""
        return tuple(each for each in self.said["plan"]["actions"] if each["changes"])

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(each["kind"] for each in self.steps)

    @property
    def paths(self) -> frozenset[str]:
        """Below the prefix; what changes."""
        return frozenset(change["path"] for each in self.steps for change in each["changes"])

    @property
    def advice(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(each for each in self.said["plan"]["actions"] if not each["changes"])

    @property
    def left(self) -> tuple[str, ...]:
        """Codes of what stays."""
        return tuple(each["code"] for each in self.said["plan"]["left"])

    def told(self) -> str:
        """The plan and what became of it as text, for a failing assertion."""
        return json.dumps({key: self.said[key] for key in ("plan", "applied", "verified") if key in self.said},
                          indent=1) + f"\n{self.run.stderr}"


@contextmanager
def unwritable(folder: Path) -> Iterator[tuple[str, ...]]:
    """A folder to which nobody can write; the words before a command that is to meet it so.

    As root on a mount that is read-only for that command alone; else by its permission bits, which are given back.
    """
    mounted = ("unshare", "-m", "sh", "-c", MOUNTED, "sh", str(folder))
    if os.geteuid() == 0 and shutil.which("unshare"):
        tried = subprocess.run([*mounted, "touch", str(folder / "touched")], capture_output=True, check=False)
        if b"Read-only file system" in tried.stderr:
            yield mounted
            return
    modes = {path: path.lstat().st_mode for path in [folder, *folder.rglob("*")] if not path.is_symlink()}
    try:
        for path, mode in modes.items():
            path.chmod(mode & 0o7555)
        yield ()
    finally:
        for path, mode in modes.items():
            path.chmod(mode & 0o7777)


def born(made: Made, cwd: Path, names: Sequence[str], variables: Mapping[str, str],
         opened: Sequence[Path] = ()) -> Told:
    """Imports in a child that has these variables and no other; `opened`: libraries that are opened after them."""
    words = [f"{name}={value}" for name, value in variables.items()]
    return told_by(run(["env", "-i", *words, made.python, "-B", "-c", SCRIPT, *names, *opened], cwd=cwd))


def activated(made: Made, cwd: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a bash with these variables that has sourced the activation."""
    words = [f"{name}={value}" for name, value in variables.items()]
    done = run(["env", "-i", *words, "bash", "--noprofile", "--norc", "-euc", ACTIVATED, "bash", made.prefix], cwd=cwd)
    assert done.status == 0, done
    assert not done.stderr, done
    pairs = (each.partition("=") for each in done.stdout.split("\0") if each)
    return {name: value for name, _, value in pairs if name not in {"_", "PWD", "OLDPWD", "SHLVL"}}
