"""constraints.txt: versions only."""

from __future__ import annotations

import sys
from pathlib import Path

from stackfix.write.constraints import render_constraints
from tests.judges.command import run
from tests.lock_samples import (
    COMMAND,
    FLASH,
    NOWHERE,
    index_file,
    loopback,
    package,
    sample_packages,
    target_lock,
)


def test_every_pin_by_version_alone() -> None:
    text = render_constraints(target_lock(sample_packages(NOWHERE)), command=COMMAND)
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert pins == ["einops==0.8.1", "filelock==3.29.0", "flash-attn==2.5.8", "tiny-server==1.0", "torch==2.3.1"]


def test_the_second_step_is_constrained_too() -> None:
    sdist = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"x")
    lock = target_lock((package("flash-attn", "2.5.8", (sdist,), step=2),))
    assert render_constraints(lock, command=COMMAND).endswith("\nflash-attn==2.5.8\n")


def test_pip_stays_within_them(tmp_path: Path) -> None:
    """Also for the release wheel: its file name has a local version, its metadata and the constraint have not."""
    limits = tmp_path / "constraints.txt"
    with loopback(tmp_path / "store") as servers:
        limits.write_text(render_constraints(target_lock(sample_packages(servers)), command=COMMAND))
        wheel = f"flash-attn @ {servers.release_url}/releases/download/v2.5.8/{FLASH.replace('+', '%2B')}"
        words: list[str | Path] = [
            sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-cache-dir",
            "--index-url", servers.index_url, "-c", limits, wheel,
        ]
        within = run(words, cwd=tmp_path)
        limits.write_text(limits.read_text().replace("torch==2.3.1", "torch==2.3.0"))
        other = run(words, cwd=tmp_path)
    assert within.status == 0, within
    assert "Would install einops-0.8.1 filelock-3.29.0 flash-attn-2.5.8 torch-2.3.1" in within.stdout
    assert "torch-2.3.0" in other.stdout
