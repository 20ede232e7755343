"""What a machine has, as plain records. Paths are absolute and inside the root that was read; absent is None."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A question that this machine, or this tree, cannot answer, and why. No fault of it."""

    subject: str                    # "driver", "gpus", "compute-capability", "glibc", …
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLibrary:
    """One library of the system, as a process without any setting would find it."""

    soname: str                     # the name that was looked for: "libstdc++.so.6"
    path: str
    real_path: str                  # behind the links
    version: str | None             # "6.0.30" of the file name; for glibc what the file itself states
    newest: tuple[tuple[str, str], ...]     # newest symbol version by prefix: ("GLIBCXX", "3.4.30")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """/etc/os-release."""

    id: str                         # "ubuntu"
    version: str | None             # "22.04"
    name: str | None                # "Ubuntu 22.04.4 LTS"
    like: tuple[str, ...]           # ID_LIKE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wsl:
    """Windows Subsystem for Linux."""

    version: int | None             # 1 or 2
    library_folder: str | None      # /usr/lib/wsl/lib, where Windows puts its libcuda
    found_via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Jetson:
    """An NVIDIA Tegra board: its GPU has no /proc/driver/nvidia, and wheels for servers do not fit it."""

    model: str | None               # device tree: "NVIDIA Jetson AGX Orin Developer Kit"
    release: str | None             # L4T: "36.3.0"
    found_via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container around the process, and how that is known."""

    kind: str                       # "docker", "podman", "kubernetes", "lxc", "singularity", "apptainer", "wsl"…
    found_via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModule:
    """An environment module (Lmod, Environment Modules, Spack) that is loaded now."""

    name: str                       # "cuda/12.1"
    file: str | None                # its module file


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModule:
    """NVIDIA's loaded kernel module."""

    version: str                    # "550.54.15"
    open: bool | None               # the open variant; None where nothing tells
    found_via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLibrary:
    """A libcuda or libnvidia-ml on disk."""

    path: str                       # the name that programs ask for
    real_path: str | None           # None: a link to nowhere
    version: str | None             # of the file behind the links: "550.54.15"; None where its name has none
    origin: str                     # "system", "wsl", "compat" (cuda-compat), "stub" (only for linking)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNode:
    """A node in /dev that the driver speaks through."""

    path: str
    accessible: bool | None         # whether we may open it for reading and writing; None in a tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, as the kernel module or nvidia-smi states it."""

    name: str | None                # "NVIDIA H100 PCIe"
    uuid: str | None
    bus: str | None                 # "0000:41:00.0"
    capability: str | None          # "9.0"; only nvidia-smi tells
    mig: bool | None                # MIG mode is on
    found_via: str                  # "/proc/driver/nvidia", "nvidia-smi"


@dataclass(frozen=True, slots=True, kw_only=True)
class PciGpu:
    """A display controller of NVIDIA on the PCI bus, driven or not."""

    bus: str
    device: str                     # "0x2330"
    driver: str | None              # "nvidia", "nouveau", "vfio-pci"; None: nobody drives it


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """All that is there of NVIDIA's driver."""

    kernel_module: KernelModule | None
    nouveau: bool                   # the other kernel module holds the cards
    libraries: tuple[DriverLibrary, ...]    # in the order in which a process would find them, compat and stubs last
    devices: tuple[DeviceNode, ...]
    gpus: tuple[Gpu, ...]
    pci: tuple[PciGpu, ...]
    mig_instances: tuple[str, ...]  # GPU instances that the kernel module lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A CUDA toolkit on disk."""

    path: str
    real_path: str
    version: str | None             # "12.4.1" or, from cuda.h, "12.4"
    version_from: str | None        # the file that says so
    nvcc: str | None                # its nvcc, where it has one
    nvcc_release: str | None        # "12.4.131", as the program itself states; it was not run
    library_folders: tuple[str, ...]
    stubs: tuple[str, ...]          # folders with libraries for linking only
    compat: tuple[str, ...]         # folders with libraries of a newer driver
    found_via: tuple[str, ...]      # "usual place", "CUDA_HOME", "nvcc on PATH", "conda"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCudnn:
    """A cuDNN outside of any Python environment."""

    version: str | None             # "9.1.0", of the header or of the file name
    header: str | None
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All that the files and variables of one machine tell."""

    live: bool                      # the running machine, not a tree
    architecture: str | None        # "x86_64", "aarch64"
    kernel: str | None              # release
    libc: str | None                # "glibc", "musl"
    glibc: SystemLibrary | None
    libstdcxx: SystemLibrary | None
    libgcc: SystemLibrary | None
    release: Release | None
    wsl: Wsl | None
    jetson: Jetson | None
    container: Container | None
    modules: tuple[LoadedModule, ...]
    slurm_job: str | None
    driver: Driver
    toolkits: tuple[Toolkit, ...]
    cudnn: tuple[SystemCudnn, ...]
    variables: tuple[tuple[str, str], ...]  # those that reach the loader, CUDA or Python, sorted; secrets left out
    undecided: tuple[Undecided, ...]
