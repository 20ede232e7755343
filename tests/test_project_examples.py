"""The committed example locks still satisfy their requests, with this matrix and the recorded index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.server import ReplayServer

EXAMPLES = Path(__file__).resolve().parent.parent / "docs" / "examples"
STACKS = ("train", "serve", "edge")


def check(folder: Path, index: ReplayServer, cache: Path) -> subprocess.CompletedProcess[str]:
    """`stackfix lock --check` in `folder`, free of the machine's settings."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return subprocess.run(
        [sys.executable, "-m", "stackfix", "lock", "--check", "--index-url", index.url, "--cache-dir", str(cache)],
        cwd=folder, env={**environ, "PIP_CONFIG_FILE": os.devnull}, capture_output=True, text=True, check=False,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def test_each_stack_has_its_two_files() -> None:
    committed = {path.name for path in EXAMPLES.glob("*.txt")}
    assert committed == {f"{kind}-{stack}.txt" for kind in ("requirements", "constraints") for stack in STACKS}


@pytest.mark.recorded
def test_the_examples_are_up_to_date(folder: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    done = check(folder, index, stackfix_cache)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.recorded
def test_an_altered_example_is_noticed_and_named(folder: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    lock = folder / "requirements-train.txt"
    text = lock.read_text(encoding="utf-8")
    good, bad = "nvidia-nvjitlink-cu12==12.1.105", "nvidia-nvjitlink-cu12==12.0.140"
    assert good in text
    lock.write_text(text.replace(good, bad), encoding="utf-8")
    done = check(folder, index, stackfix_cache)
    assert done.returncode == 1
    assert "requirements-train.txt" in done.stdout + done.stderr
    assert "nvidia-nvjitlink-cu12" in done.stdout + done.stderr
