"""Shells of this machine, and what a program that they start finds in its variables."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NOISE = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "HOSTTYPE", "VENDOR", "OSTYPE", "MACHTYPE", "LOGNAME", "USER",
                   "GROUP", "HOST", "REMOTEHOST", "A__z", "COLUMNS", "LINES"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """One shell, and its words for what the tests do."""

    name: str
    command: tuple[str, ...]        # that reads a script from its input
    suffix: str
    source: str
    assign: str                     # a variable from another one
    clear: str
    strict: str = ""


POSIX = {"suffix": ".sh", "source": ". {}", "assign": 'export {}="${}"', "clear": "unset {}", "strict": "set -eu"}
SHELLS = {each.name: each for each in (
    Shell(name="bash", command=("bash", "--norc", "--noprofile"), **POSIX),
    Shell(name="dash", command=("dash",), **POSIX),
    Shell(name="zsh", command=("zsh", "-f"), **POSIX),
    Shell(name="ksh", command=("ksh",), **POSIX),
    Shell(name="fish", command=("fish", "--no-config"), suffix=".fish", source="source {}", assign='set -gx {} "${}"',
          clear="set -eg {}"),
    Shell(name="tcsh", command=("tcsh", "-f"), suffix=".csh", source="source {}", assign='setenv {} "${}:q"',
          clear="unsetenv {}"),
)}


@functools.cache
def is_here(name: str) -> bool:
    return shutil.which(SHELLS[name].command[0]) is not None


def run(shell: Shell, lines: Sequence[str], environ: Mapping[str, str], folder: Path) -> list[dict[str, str]]:
    """The variables at each line "?", as a program sees them. The shell must complain of nothing."""
    for old in folder.glob("seen*"):
        old.unlink()
    marks = [place for place, line in enumerate(lines) if line == "?"]
    text = [f"env -0 > {folder}/seen{place}" if line == "?" else line for place, line in enumerate(lines)]
    script = folder / f"script{shell.suffix}"
    script.write_text("\n".join([shell.strict, *text, ""]))
    home = folder / "home"
    home.mkdir(exist_ok=True)
    start = {"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C.UTF-8", **environ}
    done = subprocess.run([*shell.command, str(script)], env=start, check=False, capture_output=True, timeout=60,
                          cwd=folder, input=b"/poison\n")      # which nothing is to read
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="replace")
    return [parse((folder / f"seen{place}").read_bytes()) for place in marks]


def parse(content: bytes) -> dict[str, str]:
    pairs = (os.fsdecode(each).partition("=") for each in content.split(b"\0") if each)
    return {name: value for name, _, value in pairs if name not in NOISE}
