"""What a probe of a GPU, or of a repaired environment, answers. Plain records: `inspect.plain` writes them as JSON."""

from __future__ import annotations

from dataclasses import dataclass

# What a child process found. "cannot-tell" is an answer and never a pass.
VERDICTS = ("works", "fails", "cannot-tell")
# Why it fails, or why nobody can tell.
REASONS = ("no-gpu", "no-driver", "driver-too-old", "no-kernel-for-this-architecture", "library-conflict",
           "wrong-numbers", "crashed", "timed-out", "not-installed", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How far a result is from the one that the CPU gets in float64."""

    largest_error: float            # absolute, or relative where `relative`
    tolerance: float
    relative: bool
    nan: int                        # how many elements are NaN, or infinite, where the true ones are not
    infinite: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """One thing that was tried in a child process."""

    name: str                       # "driver", "torch.matmul.bf16", "flash-attn.backward"
    verdict: str                    # one of VERDICTS
    reason: str | None              # one of REASONS; None where it works
    detail: str                     # what was seen: the error in its own words, a device's name
    accuracy: Accuracy | None
    seconds: float
    libraries: tuple[str, ...]      # of the GPU stack, mapped meanwhile: absolute paths
    # The whole does not depend on one that has nothing to try: a package that is not installed, a backend that torch
    # itself does not offer on this GPU.
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """All steps, and what they come to."""

    verdict: str                    # the worst: one that fails, else one that cannot tell
    reason: str | None
    device: str | None              # "NVIDIA H200, compute capability 9.0, driver 570.86"
    steps: tuple[ProbeStep, ...]
