"""Which CUDA a driver runs, and which GPU runs what code. Pure, and without packaging: all of it is plain numbers."""

from __future__ import annotations

import re

from stackfix.matrix.records import DriverFamily, Matrix

CPU = "cpu"

_GPU = re.compile(r"(sm_|compute_)?(\d+)\.?(\d)([af]?)")


def major_of(cuda: str) -> int:
    """The major of a CUDA version: 12 of "12.1"."""
    return int(cuda.partition(".")[0])


def driver_floor(matrix: Matrix, cuda: str, platform: str = "linux-64") -> DriverFamily | None:
    """The driver family of a CUDA version, `floor` being the platform's; None for "cpu" and where no row states one."""
    if cuda == CPU:
        return None
    family = next((family for family in matrix.driver_families if family.cuda_major == major_of(cuda)), None)
    if family is None or not platform.startswith("win-"):
        return family
    return None if family.windows is None else DriverFamily(
        cuda_major=family.cuda_major, floor=family.windows, windows=family.windows, source=family.source,
        confidence=family.confidence)


def driver_reaches(driver: str, floor: str) -> bool:
    """Whether a driver is not older than `floor`. A bare branch ("580") stands for the newest release of that branch.

    Distributions and NVIDIA's own packages name drivers by their branch and install its newest release.
    """
    if "." not in driver or "." not in floor:
        return int(driver.partition(".")[0]) >= int(floor.partition(".")[0])
    return _numbers(driver) >= _numbers(floor)


def rests_on_branch(driver: str, floor: str) -> bool:
    """Whether a bare branch reaches `floor` only by its newer releases: 580 does 580.65.06."""
    return "." not in driver and driver_reaches(driver, floor) and _numbers(driver) < _numbers(floor)


def driver_supports(matrix: Matrix, driver: str, cuda: str, platform: str = "linux-64") -> bool | None:
    """Whether a driver runs programs of this CUDA, by minor-version compatibility; None: cannot tell.

    PTX of a newer minor than the driver's own needs a newer driver: see `jit_cuda_of_driver`.
    """
    if cuda == CPU:
        return True
    family = driver_floor(matrix, cuda, platform)
    return None if family is None else driver_reaches(driver, family.floor)


def newest_cuda_for_driver(matrix: Matrix, driver: str) -> str | None:
    """The newest CUDA minor that a driver runs, "12.9" for 535.54.03; None for a driver older than all families."""
    majors = [row.cuda_major for row in matrix.driver_families if driver_reaches(driver, row.floor)]
    minors = [row.cuda for row in matrix.toolkit_drivers if majors and major_of(row.cuda) == max(majors)]
    return max(minors, key=_numbers, default=str(max(majors)) if majors else None)


def jit_cuda_of_driver(matrix: Matrix, driver: str) -> str | None:
    """The newest CUDA minor whose PTX the driver compiles: its toolkit shipped with this driver or an older one."""
    minors = [row.cuda for row in matrix.toolkit_drivers if driver_reaches(driver, row.driver)]
    return max(minors, key=_numbers, default=None)


def gpu_runs(archs: tuple[str, ...], gpu: str) -> bool:
    """Whether code for `archs` runs on a GPU such as "sm_86" ("86" and "8.6" too).

    A cubin runs on the same major from its own minor on, PTX on that capability and newer ones; code for sm_90a or
    sm_100f runs on exactly that capability. No archs, no code: ask only where they were read.
    """
    capability = gpu_capability(gpu)
    return capability is not None and any(_runs(arch, capability) for arch in archs)


def gpu_capability(gpu: str) -> tuple[int, int] | None:
    """(8, 6) of "sm_86", "86" or "8.6"; None for anything else."""
    match = _GPU.fullmatch(gpu)
    return (int(match[2]), int(match[3])) if match else None


def _runs(arch: str, gpu: tuple[int, int]) -> bool:
    match = _GPU.fullmatch(arch)
    if match is None:
        return False
    code = (int(match[2]), int(match[3]))
    if match[4]:
        return code == gpu
    if match[1] == "compute_":
        return code <= gpu
    return code[0] == gpu[0] and code[1] <= gpu[1]


def _numbers(driver: str) -> tuple[int, ...]:
    return tuple(int(part) for part in driver.split("."))
