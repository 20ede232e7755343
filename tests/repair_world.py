"""A torch of stand-ins that an old nvJitLink on LD_LIBRARY_PATH breaks, and command lines as their users type them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import shutil
import stat
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.judges.command import Run, run
from tests.real_environments.scenarios import NVJITLINK_FILE, SHADOWED, TORCH_231
from tests.real_environments.workshop import Made, Workshop

# Runs in the environment: which nvJitLink is mapped once torch is there
WINNER = ("import torch\nwith open('/proc/self/maps') as maps:\n"
          "    print(*sorted({line.split(maxsplit=5)[5].strip() for line in maps if 'libnvJitLink' in line}))")
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
LARGE = 1 << 20                 # bytes from which on a file is known by its inode, size and time: a torch is 5 GB
Tree = dict[str, tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One broken environment of a workshop, and the variables that break it."""

    workshop: Workshop
    made: Made
    hostile: Mapping[str, str]

    @property
    def prefix(self) -> Path:
        return self.made.prefix

    @property
    def own(self) -> str:
        """The library that ought to be mapped."""
        return str(self.made.site / NVJITLINK_FILE)

    def tree(self) -> Tree:
        """The environment as it is on disk."""
        return tree_of(self.prefix)

    def cache(self) -> Tree:
        """uv's cache: bytes and modes of all that is in it. Links come and go."""
        return {path: facts[:-1] for path, facts in tree_of(self.workshop.cache).items()}

    def environ(self, **added: str) -> dict[str, str]:
        """The variables of a shell that names the bad folder."""
        return self.workshop.quiet(**{**self.hostile, **added}, NO_COLOR="1", PIP_CONFIG_FILE=os.devnull,
                                   STACKFIX_CACHE_DIR=str(self.workshop.folder / "stackfix"))

    def say(self, command: str, *words: str | Path, start: Sequence[str | Path] = (), **added: str) -> Run:
        """`stackfix COMMAND --prefix … WORDS` off a terminal."""
        return run([*start, sys.executable, "-m", "stackfix", command, "--prefix", self.prefix, *words],
                   cwd=self.workshop.folder, env=self.environ(**added))

    def imports(self, *options: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """What a child of the environment says that has the hostile variables, and no others."""
        return subprocess.run([str(self.made.python), "-B", *options, "-c", WINNER], env=dict(env or self.hostile),
                              cwd=self.workshop.folder, capture_output=True, text=True, check=False, timeout=60)


def tree_of(folder: Path) -> Tree:
    """Path -> mode, inode, content or target, link count, of all that is in a folder; the folder itself too."""
    found: Tree = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content: object = None
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            content = (status.st_size, status.st_mtime_ns) if status.st_size >= LARGE else \
                hashlib.sha256(path.read_bytes()).hexdigest()
        links = None if stat.S_ISDIR(status.st_mode) else status.st_nlink
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, content, links)
    return found


def judge_cure(bench: Bench, method: str = "auto") -> None:
    """Broken, planned, repaired, used with nothing but the hostile variables, checked, and given back."""
    before, cache = bench.tree(), bench.cache()
    assert bench.imports().returncode == 1
    assert bench.say("repair", "--dry-run", "--method", method).status == 1
    assert bench.tree() == before
    said = bench.say("repair", "--yes", "--json", "--method", method)
    assert (said.status, said.json["verified"]["static"], said.json["verified"]["load"]) == (0, "clean", "works"), said
    judge_imports(bench, bench.hostile if method != "activate" else activated(bench))
    assert bench.say("undo").status == 0
    assert bench.tree() == before
    assert bench.cache() == cache


def judge_imports(bench: Bench, environ: Mapping[str, str]) -> None:
    """The library of the wheel is mapped, and a check is content."""
    done = bench.imports(env=environ)
    assert (done.returncode, done.stdout.strip()) == (0, bench.own), done.stderr
    checked = bench.say("check", "--fail-on", "warning", LD_LIBRARY_PATH=environ["LD_LIBRARY_PATH"])
    assert checked.status == 0, checked


def activated(bench: Bench, shell: str = "sh") -> dict[str, str]:
    """The variables of a shell with the hostile ones once it has sourced the environment's script."""
    done = subprocess.run([shell, "-c", f'. "{bench.prefix}/bin/activate"; env -0'], check=True, text=True, timeout=60,
                          env={**bench.hostile, "PATH": "/usr/bin:/bin"}, capture_output=True)
    return {name: value for name, _, value in (pair.partition("=") for pair in done.stdout.split("\0"))}


def bench_in(workshop: Workshop) -> Bench:
    """A new environment; that of the test before is gone."""
    made = workshop.make(*TORCH_231, python="3.11")
    return Bench(workshop=workshop, made=made, hostile=SHADOWED.broken(workshop, made))


def read_only(prefix: Path) -> tuple[str | Path, ...]:
    """Words before a command that is to see the prefix mounted read-only; empty where this user may mount nothing."""
    start = ("unshare", "--mount", "sh", "-c", READ_ONLY, prefix)
    try:
        done = subprocess.run([*start, "sh", "-c", f'! touch "{prefix}/x" 2>/dev/null'], capture_output=True,
                              check=False, timeout=60)
    except OSError:
        return ()
    return start if done.returncode == 0 else ()


def on_a_terminal(bench: Bench, answer: str, *words: str) -> tuple[int, str]:
    """Exit status and all that is seen of a command that is answered at a terminal."""
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "stackfix", *words]

    def be_first() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(command, env=bench.environ(TERM="dumb"), stdin=terminal, stdout=terminal, stderr=terminal,
                          preexec_fn=be_first,      # noqa: PLW1509 - two system calls, and no thread runs here
                          cwd=bench.workshop.folder) as child:
        os.close(terminal)
        os.write(ours, answer.encode())
        said = b""
        with suppress(OSError):         # the terminal is gone with the child
            while part := os.read(ours, 65536):
                said += part
    os.close(ours)
    return child.returncode, said.decode(errors="replace")


def shells() -> tuple[str, ...]:
    """Shells here that read a venv's `activate`."""
    return tuple(name for name in ("bash", "dash", "zsh") if shutil.which(name))
