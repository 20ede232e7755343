"""NVIDIA's driver on a machine: kernel module, libraries, device nodes, GPUs. No library is loaded, none is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.inspect.driver import VERSION, SmiGpu
from stackfix.inspect.machine_records import DeviceNode, Driver, DriverLibrary, Gpu, KernelModule, PciGpu
from stackfix.inspect.places import Root

NAMES = ("libcuda.so.1", "libnvidia-ml.so.1")
# Debian and Ubuntu alternatives, Fedora, Kubernetes device plugins, NixOS; behind what the loader searches by itself
DRIVER_FOLDERS = ("/usr/lib/wsl/lib", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia",
                  "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/nvidia", "/run/opengl-driver/lib")
TEGRA_FOLDERS = ("/usr/lib/aarch64-linux-gnu/nvidia", "/usr/lib/aarch64-linux-gnu/tegra")
LIBRARY_VERSION = re.compile(r"\.so\.(\d{3}\.\d{1,3}(?:\.\d{1,3})?)$")
DEVICE = re.compile(r"nvidia(?:\d+|ctl|-uvm|-uvm-tools|-modeset)|dxg|nvhost-(?:gpu|ctrl-gpu)|nvmap|nvidia-cap\d+")
NVIDIA_VENDOR = "0x10de"


def read_driver(root: Root, folders: Sequence[str], cache: Mapping[str, str], toolkits: Iterable[str],
                smi: Sequence[SmiGpu]) -> Driver:
    """All that is there. `folders`: what the loader searches; `toolkits`: folders of stubs and compat libraries."""
    return Driver(
        kernel_module=read_kernel_module(root), nouveau=root.is_folder("/sys/module/nouveau"),
        libraries=tuple(find_libraries(root, folders, cache, toolkits)), devices=tuple(find_devices(root)),
        gpus=merged(tuple(read_gpus(root)), smi), pci=tuple(find_pci(root)), mig_instances=tuple(find_mig(root)),
    )


def read_kernel_module(root: Root) -> KernelModule | None:
    """The loaded module, by /proc (which also tells the open one) or /sys."""
    proc, sys = "/proc/driver/nvidia/version", "/sys/module/nvidia/version"
    lines = (root.find_text(proc, 4096) or "").splitlines()
    line = next((each for each in lines if each.startswith("NVRM version")), "")
    if match := VERSION.search(line):
        return KernelModule(version=match[1], open="Open Kernel Module" in line, found_via=proc)
    match = VERSION.search(root.find_text(sys, 4096) or "")
    return KernelModule(version=match[1], open=None, found_via=sys) if match else None


def find_libraries(root: Root, folders: Sequence[str], cache: Mapping[str, str],
                   toolkits: Iterable[str]) -> Iterator[DriverLibrary]:
    """Each libcuda and libnvidia-ml, once for each real file, the order of a search kept."""
    seen = set()
    for path, origin in places(root, folders, cache, toolkits):
        real = root.find(path)
        if not root.lexists(path) or (real or path) in seen:
            continue
        seen.add(real or path)
        match = LIBRARY_VERSION.search(real or "")
        yield DriverLibrary(path=path, real_path=real, version=match[1] if match else None, origin=origin)


def places(root: Root, folders: Sequence[str], cache: Mapping[str, str],
           toolkits: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path, origin) of each name that may be there."""
    for name in NAMES:
        if name in cache:
            yield cache[name], origin_of(cache[name])
        for folder in (*folders, *DRIVER_FOLDERS, *TEGRA_FOLDERS):
            yield f"{folder}/{name}", origin_of(f"{folder}/{name}")
    for folder in toolkits:
        for entry in root.find_entries(folder):
            if entry.name in (*NAMES, "libcuda.so", "libnvidia-ml.so"):
                yield f"{folder}/{entry.name}", origin_of(f"{folder}/{entry.name}")


def origin_of(path: str) -> str:
    parts = path.split("/")
    if "stubs" in parts:
        return "stub"
    return "wsl" if "/wsl/" in path else "compat" if any(each.startswith("compat") for each in parts) else "system"


def find_devices(root: Root) -> Iterator[DeviceNode]:
    """Nodes of the driver in /dev, those of MIG included. A tree has none, or they mean nothing there."""
    for folder in ("/dev", "/dev/nvidia-caps"):
        for entry in root.find_entries(folder):
            if DEVICE.fullmatch(entry.name) and entry.kind != "folder":
                path = f"{folder}/{entry.name}"
                yield DeviceNode(path=path, accessible=os.access(path, os.R_OK | os.W_OK) if root.live else None)


def read_gpus(root: Root) -> Iterator[Gpu]:
    """GPUs that the kernel module drives."""
    folder = "/proc/driver/nvidia/gpus"
    for entry in root.find_entries(folder):
        text = root.find_text(f"{folder}/{entry.name}/information")
        if text is not None:
            keys = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
            uuid = keys.get("GPU UUID")
            yield Gpu(name=keys.get("Model") or None, uuid=uuid if uuid and "?" not in uuid else None,
                      bus=bus_of(keys.get("Bus Location") or entry.name), capability=None, mig=None,
                      found_via="/proc/driver/nvidia")


def bus_of(text: str) -> str:
    """`0000:41:00.0`: nvidia-smi writes eight digits for the domain, the kernel four."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def merged(known: Sequence[Gpu], smi: Sequence[SmiGpu]) -> tuple[Gpu, ...]:
    """The kernel module's GPUs with what nvidia-smi adds; those that only nvidia-smi sees (WSL) behind them."""
    by_bus = {bus_of(each.bus): each for each in smi}
    found = [Gpu(name=each.name, uuid=each.uuid, bus=each.bus, found_via=each.found_via,
                 capability=more.capability if more else None, mig=more.mig if more else None)
             for each in known for more in (by_bus.pop(each.bus or "", None),)]
    return (*found, *(Gpu(name=each.name, uuid=each.uuid, bus=bus, capability=each.capability, mig=each.mig,
                          found_via="nvidia-smi") for bus, each in by_bus.items()))


def find_pci(root: Root) -> Iterator[PciGpu]:
    """NVIDIA's display controllers (PCI class 03) on the bus."""
    folder = "/sys/bus/pci/devices"
    for entry in root.find_entries(folder):
        place = f"{folder}/{entry.name}"
        vendor, kind, device = ((root.find_text(f"{place}/{name}", 64) or "").strip()
                                for name in ("vendor", "class", "device"))
        if vendor == NVIDIA_VENDOR and kind.startswith("0x03"):
            driver = root.link_target(f"{place}/driver")
            yield PciGpu(bus=entry.name, device=device, driver=driver.rpartition("/")[2] if driver else None)


def find_mig(root: Root) -> Iterator[str]:
    """GPU instances as /proc/driver/nvidia/capabilities lists them: `gpu0/mig/gi1`."""
    folder = "/proc/driver/nvidia/capabilities"
    for gpu in root.find_entries(folder):
        for instance in root.find_entries(f"{folder}/{gpu.name}/mig") if gpu.name.startswith("gpu") else ():
            if instance.name.startswith("gi"):
                yield f"{gpu.name}/mig/{instance.name}"
