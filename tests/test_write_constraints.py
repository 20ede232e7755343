"""constraints.txt: versions only."""

from __future__ import annotations

from stackfix.write.constraints import render_constraints
from tests.lock_samples import COMMAND, NOWHERE, index_file, package, sample_packages, target_lock


def test_every_pin_by_version_alone() -> None:
    text = render_constraints(target_lock(sample_packages(NOWHERE)), command=COMMAND)
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert pins == ["einops==0.8.1", "filelock==3.29.0", "flash-attn==2.5.8", "tiny-server==1.0", "torch==2.3.1"]


def test_the_second_step_is_constrained_too() -> None:
    sdist = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"x")
    lock = target_lock((package("flash-attn", "2.5.8", (sdist,), step=2),))
    assert render_constraints(lock, command=COMMAND).endswith("\nflash-attn==2.5.8\n")
