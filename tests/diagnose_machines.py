"""NVIDIA drivers, GPUs and containers for the small machines of `diagnose_world`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Container, DeviceNode, Gpu, Undecided
from tests.diagnose_world import SYSTEM, World, lib

DOCKER = Container(kind="docker", found_via="/.dockerenv")
NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")


def install_driver(world: World, version: str, folder: str = SYSTEM, *, cached: bool = True) -> None:
    """libcuda and libnvidia-ml of a driver, with the names that its installer makes."""
    for name in ("libcuda", "libnvidia-ml"):
        world.library(f"{folder}/{name}.so.{version}", lib(soname=f"{name}.so.1", offers=("cuInit",)))
        world.link(f"{folder}/{name}.so.1", f"{name}.so.{version}")
        world.link(f"{folder}/{name}.so", f"{name}.so.1")
    if cached:
        world.cached(f"{folder}/libcuda.so.1", f"{folder}/libnvidia-ml.so.1", conf="nvidia.conf")


def load_module(world: World, version: str) -> None:
    """NVIDIA's kernel module, as /proc tells it."""
    world.write("/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu\n")


def gpu(name: str = "NVIDIA A100-SXM4-80GB", capability: str | None = "8.0", *, uuid: str | None = "GPU-1234abcd",
        bus: str = "0000:41:00.0", mig: bool | None = None) -> Gpu:
    """One GPU as nvidia-smi would complete it."""
    return Gpu(name=name, uuid=uuid, bus=bus, capability=capability, mig=mig, found_via="/proc/driver/nvidia")


def running(view: View, *gpus: Gpu, nodes: Iterable[str] = NODES, closed: Iterable[str] = (),
            driver: dict[str, Any] | None = None, **machine: Any) -> View:
    """The view as if its tree were the running machine, with these GPUs and device nodes."""
    devices = tuple(DeviceNode(path=path, accessible=path not in set(closed)) for path in nodes)
    changed = replace(view.machine.driver, gpus=gpus, devices=devices, **(driver or {}))
    return with_machine(view, live=True, driver=changed, **machine)


def with_machine(view: View, **changes: Any) -> View:
    """The view of another machine."""
    return replace(view, situation=replace(view.situation, machine=replace(view.machine, **changes)))


def found(answers: Iterable[Finding | Undecided]) -> dict[str, Finding]:
    """Findings by code; each code once."""
    findings = [each for each in answers if isinstance(each, Finding)]
    by_code = {each.code: each for each in findings}
    assert len(by_code) == len(findings), findings
    return by_code


def undecided(answers: Iterable[Finding | Undecided]) -> dict[str, str]:
    """Reasons by subject."""
    return {each.subject: each.reason for each in answers if isinstance(each, Undecided)}
