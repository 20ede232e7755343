"""Runs a tool as a user would on a clean machine: none of this machine's pip, uv or stackfix settings."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 300
OURS = ("PIP_", "UV_", "STACKFIX_", "CONDA", "VIRTUAL_ENV", "PYTHON")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """What a command said."""

    command: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def __repr__(self) -> str:
        return f"$ {shlex.join(self.command)}\nexit {self.status}\n{self.stdout[-4000:]}\n{self.stderr[-4000:]}"


def clean_environment(**added: str) -> dict[str, str]:
    """This process's variables without the settings of any packaging tool."""
    kept = {name: value for name, value in os.environ.items()
            if name == "CONDARC" or not name.startswith(OURS)}       # it keeps tests off live channels
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "NO_COLOR": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **added}


def run(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT) -> Run:
    """The outcome of one command."""
    words = tuple(str(word) for word in command)
    done = subprocess.run(words, cwd=cwd, env=dict(env or clean_environment()), capture_output=True, text=True,
                          check=False, timeout=timeout, stdin=subprocess.DEVNULL)
    return Run(command=words, status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def stackfix(*words: str | Path, cwd: Path, cache: Path, env: Mapping[str, str] | None = None,
             python: str = sys.executable, timeout: float = TIMEOUT) -> Run:
    """`python -m stackfix …`."""
    settings = {**clean_environment(), "STACKFIX_CACHE_DIR": str(cache), **(env or {})}
    return run([python, "-m", "stackfix", *words], cwd=cwd, env=settings, timeout=timeout)
