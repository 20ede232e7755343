"""Locks of CUDA variants, made in this process against loopback servers: the torch index answers, or nobody does."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.app import run
from tests.cli_world import CONDARC
from tests.judges.command import OURS

if TYPE_CHECKING:
    import pytest

NOBODY = "http://127.0.0.1:9/whl"       # the discard port: nothing listens there
PIP_FORMATS = ("--format", "requirements", "--format", "pylock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What one run left: its exit status, what it said, and its files."""

    status: int
    said: str
    folder: Path

    @property
    def requirements(self) -> Path:
        return self.folder / "requirements.txt"

    @property
    def files(self) -> dict[str, bytes]:
        """Every file that was written."""
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Locker:
    """Runs `stackfix lock` with sources of its own and nothing of this machine's settings."""

    index: str
    cache: Path
    capfd: pytest.CaptureFixture[str]

    def __call__(self, words: Sequence[str], folder: Path, torch_index: str | None, *,
                 formats: Sequence[str] = PIP_FORMATS) -> Locked:
        """The outcome of one run; flash-attn's release source cannot be reached."""
        folder.mkdir(parents=True, exist_ok=True)
        at = ("--torch-index", torch_index) if torch_index is not None else ()
        self.capfd.readouterr()
        status = run(["lock", *words, *formats, "--index-url", self.index, *at, "-o", str(folder),
                      "--flash-attn-source", "http://127.0.0.1:9", "--cache-dir", str(self.cache)])
        said = self.capfd.readouterr()
        return Locked(status=status, said=said.out + said.err, folder=folder)


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes this machine's settings out of the environment."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("CONDARC", str(CONDARC))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def both_ways(lock: Locker, words: Sequence[str], folder: Path, torch_index: str) -> tuple[Locked, Locked, float]:
    """The lock with that torch index and the one without any, of the same files; and how long the first took."""
    began = time.monotonic()
    found = lock(words, folder / "lock", torch_index)
    seconds = time.monotonic() - began
    alone = lock(words, folder / "alone", NOBODY)
    assert (found.status, alone.status) == (0, 0), found.said + alone.said
    assert alone.files == found.files
    return found, alone, seconds
