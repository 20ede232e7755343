"""Whether the GPU code of a file runs on a GPU. Pure.

Sources: the CUDA programming guide on binary, PTX and family compatibility; which targets make up a family was tried
with nvcc 13.5: it makes sm_100, sm_103 and sm_107 of compute_100f, and sm_103 and sm_107, not sm_100, of compute_103f.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackfix.inspect.fatbin_records import CodeSet, GpuArchs

ARCH = re.compile(r"(?P<kind>sm|compute)_(?P<major>\d+)(?P<minor>\d)(?P<suffix>[af]?)")
CAPABILITY = re.compile(r"(\d+)\.(\d)")
# "Not supported for Tegra", says the guide of running a cubin on another minor; in fact it often works.
TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
# nvcc's own choice (CUDA 11 and 12, CUDA 13), where a file was compiled without naming any: says nothing of the others.
DEFAULT_PTX = ("compute_52", "compute_75")
FEW = 20                        # a leftover is in less than one of so many fatbins


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsOn:
    """What of a file's GPU code runs on one GPU, in fatbins.

    `lacking` above 0 is usual: kernels that only newer GPUs can run, or a library that keeps a fatbin for each GPU.
    """

    capability: str                 # "9.0"
    answer: str                     # "native", "jit" (a driver must compile it), "no", "no-code", "cannot-tell"
    native: int                     # with machine code for it
    jit: int                        # only with PTX for it
    undecided: int                  # only with link-time code, or of a kind that is not known
    lacking: int                    # with nothing for it


def runs_on(archs: GpuArchs, capability: str) -> RunsOn:
    """Which of the fatbins run on a GPU of `capability`, such as "9.0"."""
    gpu = parse_capability(capability)
    counts = {"native": 0, "jit": 0, "undecided": 0, "lacking": 0}
    leftovers = {arch for arch in DEFAULT_PTX if fatbins_with(archs.sets, arch) * FEW < archs.fatbins}
    for each in archs.sets:
        kept = tuple(arch for arch in each.archs if arch not in leftovers)
        counts["undecided" if gpu is None else set_runs_on(kept, gpu)] += each.fatbins
    found = next((answer for answer, count in counts.items() if count), "no-code")
    answer = {"lacking": "no", "undecided": "cannot-tell"}.get(found, found)
    return RunsOn(capability=capability, answer=answer, **counts)


def fatbins_with(sets: tuple[CodeSet, ...], arch: str) -> int:
    """How many fatbins carry code for exactly `arch`."""
    return sum(each.fatbins for each in sets if arch in each.archs)


def set_runs_on(archs: tuple[str, ...], gpu: tuple[int, int]) -> str:
    """How one fatbin runs on a GPU: "native", "jit", "undecided" or "lacking"."""
    verdicts = {arch: arch_runs_on(arch, gpu) for arch in archs}
    for kind, answer in (("sm_", "native"), ("compute_", "jit")):
        if any(verdict for arch, verdict in verdicts.items() if arch.startswith(kind)):
            return answer
    return "undecided" if None in verdicts.values() else "lacking"


def arch_runs_on(arch: str, gpu: tuple[int, int]) -> bool | None:
    """Whether code for `arch` ("sm_80", "compute_90a") runs on a GPU such as (9, 0); None where nothing tells.

    A cubin runs on its own major from its own minor on, PTX on that capability and all newer ones. With an "a" both
    run on exactly that capability, with an "f" on its major from its minor on.
    """
    match = ARCH.fullmatch(arch)
    if match is None:
        return None
    code = (int(match["major"]), int(match["minor"]))
    if match["suffix"] == "a" or code == gpu:
        return code == gpu
    if match["kind"] == "compute" and not match["suffix"]:
        return code <= gpu
    runs = code[0] == gpu[0] and code[1] <= gpu[1]
    return None if runs and match["kind"] == "sm" and (gpu in TEGRA or code in TEGRA) else runs


def parse_capability(text: str) -> tuple[int, int] | None:
    """(9, 0) of "9.0"; None for anything else."""
    match = CAPABILITY.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None
