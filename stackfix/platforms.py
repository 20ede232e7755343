"""The platforms that can be locked for, by the names that markers, wheel tags and channels have for them."""

from __future__ import annotations

from stackfix.quick import dataclass

CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One conda subdir and what else it is called."""

    subdir: str                     # "linux-64"
    system: str                     # marker platform_system: "Linux"
    sys_platform: str               # marker sys_platform: "linux"
    os_name: str                    # marker os_name: "posix"
    machine: str                    # marker platform_machine: "x86_64"
    wheel: str                      # the machine's name in wheel tags: "x86_64"
    has_cuda: bool                  # whether there is any CUDA build of anything for it


_ALL = (
    Platform(subdir="linux-64", system="Linux", sys_platform="linux", os_name="posix", machine="x86_64",
             wheel="x86_64", has_cuda=True),
    Platform(subdir="linux-aarch64", system="Linux", sys_platform="linux", os_name="posix", machine="aarch64",
             wheel="aarch64", has_cuda=True),
    Platform(subdir="win-64", system="Windows", sys_platform="win32", os_name="nt", machine="AMD64",
             wheel="amd64", has_cuda=True),
    Platform(subdir="osx-arm64", system="Darwin", sys_platform="darwin", os_name="posix", machine="arm64",
             wheel="arm64", has_cuda=False),
)
PLATFORMS = {each.subdir: each for each in _ALL}
LINUX = tuple(each.subdir for each in _ALL if each.system == "Linux")
LINUX_MACHINES = {subdir: PLATFORMS[subdir].machine for subdir in LINUX}
LINUX_SUBDIRS = {machine: subdir for subdir, machine in LINUX_MACHINES.items()}
CHECKED_MACHINES = {**LINUX_MACHINES, "linux-ppc64le": "ppc64le"}    # nothing is locked for the last


def split_place(place: str) -> tuple[str, str]:
    """`("linux-64", "cpu")` of `linux-64-cpu`: a platform, and the variant that is asked for on it alone, or ""."""
    subdir, dash, last = place.rpartition("-")
    return (subdir, CPU) if dash and last == CPU and subdir in PLATFORMS else (place, "")


def has_channels(place: str) -> bool:
    """Whether a place has a conda side: on Linux, and not for the CPU on that platform alone."""
    return place in LINUX


def platform_of_wheel(filename: str) -> str | None:
    """The platform of a wheel by the end of its name; None for `any` and for machines that are not known here."""
    tag = filename.removesuffix(".whl").rpartition("-")[2]
    if tag == "win_amd64":
        return "win-64"
    if tag.endswith(("_arm64", "_universal2")) and "macosx" in tag:
        return "osx-arm64"
    return next((subdir for subdir in LINUX if "linux" in tag and tag.endswith(f"_{PLATFORMS[subdir].wheel}")), None)
