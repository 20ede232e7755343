"""One machine, by its files and variables. Only on the running machine nvidia-smi is asked; nothing else is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stackfix.inspect.driver import SmiGpu, read_smi
from stackfix.inspect.machine_driver import read_driver
from stackfix.inspect.machine_records import Driver, Machine, SystemLibrary, Undecided
from stackfix.inspect.machine_system import (
    find_container,
    find_glibc,
    find_jetson,
    find_library,
    find_wsl,
    library_folders,
    read_architecture,
    read_kernel,
    read_modules,
    read_release,
)
from stackfix.inspect.places import Root
from stackfix.inspect.toolkits import find_cudnn, find_toolkits

TELLING = re.compile(r"LD_[A-Z_]+|(?:CUDA|CUDNN|NVIDIA|CONDA|MAMBA|SLURM_(?:JOB|STEP)|GPU_DEVICE)_\w+"
                     r"|GLIBC_TUNABLES|VIRTUAL_ENV|PYTHON(?:PATH|HOME|NOUSERSITE|USERBASE|SAFEPATH)|LOADEDMODULES|_LMFILES_")
SECRET = re.compile(r"TOKEN|PASSW|SECRET|_KEY|CREDENTIAL|_AUTH", re.IGNORECASE)
SMI = "nvidia-smi"


def inspect_machine(root: Root, environ: Mapping[str, str], *, cache: Mapping[str, str] | None = None,
                    conda_prefix: str | None = None, nvidia_smi: str | None = SMI) -> Machine:
    """All that the machine's files and variables tell.

    `cache`: ld.so.cache, path by soname, where it was read; without it the default folders stand for it.
    `nvidia_smi`: None forbids asking; in a tree it is never asked.
    """
    architecture, kernel, cached = read_architecture(root), read_kernel(root), dict(cache or {})
    folders = root.first_folders(library_folders(architecture))
    toolkits = find_toolkits(root, environ, conda_prefix)
    smi = read_smi(nvidia_smi) if root.live and nvidia_smi else "nvidia-smi was not asked"
    linking = [folder for each in toolkits for folder in (*each.compat, *each.stubs)]
    driver = read_driver(root, folders, cached, linking, smi if isinstance(smi, tuple) else ())
    glibc = find_glibc(root, folders, cached)
    jetson, wsl = find_jetson(root), find_wsl(root, kernel)
    return Machine(
        live=root.live, architecture=architecture, kernel=kernel, glibc=glibc,
        libc="glibc" if glibc else find_musl(root),
        libstdcxx=find_library(root, "libstdc++.so.6", folders, cached),
        libgcc=find_library(root, "libgcc_s.so.1", folders, cached), release=read_release(root), wsl=wsl, jetson=jetson,
        container=find_container(root, environ), modules=read_modules(environ),
        slurm_job=environ.get("SLURM_JOB_ID") or None, driver=driver, toolkits=toolkits,
        cudnn=find_cudnn(root, folders, toolkits), variables=telling(environ),
        undecided=tuple(find_undecided(root, driver, glibc, smi, tegra=jetson is not None, wsl=wsl is not None)),
    )


def telling(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Variables that reach the loader, CUDA or Python; none whose name speaks of a secret."""
    return tuple(sorted((name, value) for name, value in environ.items()
                        if TELLING.fullmatch(name) and not SECRET.search(name)))


def find_musl(root: Root) -> str | None:
    return "musl" if any(entry.name.startswith("ld-musl-") for entry in root.find_entries("/lib")) else None


def find_undecided(root: Root, driver: Driver, glibc: SystemLibrary | None, smi: tuple[SmiGpu, ...] | str, *,
                   tegra: bool, wsl: bool) -> Iterator[Undecided]:
    """What cannot be told here, each with its reason."""
    if glibc is None or glibc.version is None:
        yield Undecided(subject="glibc", reason="no libc.so.6 that states its version in the loader's folders")
    if driver.kernel_module is None:
        yield Undecided(subject="driver", reason=why_no_driver(root, driver, tegra=tegra, wsl=wsl))
    if not driver.gpus:
        where = "the kernel module lists no GPU" if driver.kernel_module else "no kernel module lists GPUs"
        why = smi if isinstance(smi, str) else "nvidia-smi lists none"
        yield Undecided(subject="gpus", reason=f"{where}, and {why}")
    elif any(each.capability is None for each in driver.gpus):
        yield Undecided(subject="compute-capability",
                        reason=smi if isinstance(smi, str) else "nvidia-smi does not state it for every GPU")


def why_no_driver(root: Root, driver: Driver, *, tegra: bool, wsl: bool) -> str:
    """Why no version of a kernel module is known."""
    if not root.live:
        return "a tree has no running kernel, so which driver it will meet cannot be told"
    if wsl:
        return "under WSL the driver is Windows' own, and no file of Linux states its version"
    if tegra:
        return "a Tegra board's driver is part of its L4T release and states no version of its own"
    if driver.nouveau:
        return "nouveau drives the cards; NVIDIA's kernel module is not loaded"
    if driver.pci:
        return "an NVIDIA card is on the bus, but NVIDIA's kernel module is not loaded"
    return "no NVIDIA card and no kernel module of NVIDIA on this machine"
