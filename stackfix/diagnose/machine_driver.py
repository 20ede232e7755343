"""The driver's libraries as the loader would find them: stubs, other versions, none at all."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.installed_torch import CPU, installed_torch
from stackfix.diagnose.machine_compat import check_compat
from stackfix.diagnose.machine_libraries import (
    CUDA,
    NVML,
    OUTSIDE,
    Copy,
    driver_copies,
    found_where,
    leave_out,
)
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided


def check_driver_libraries(view: View) -> Iterator[Finding | Undecided]:
    """SF803, SF804 and SF1001; without a driver libcuda.so.1 is undecided."""
    cuda = driver_copies(view, CUDA)
    yield from check_stubs(view, cuda)
    if cuda and cuda[0].origin == "compat":
        yield from check_compat(view, cuda)
    yield from check_versions(view, cuda)
    torch = installed_torch(view)
    if not cuda and torch is not None and torch.cuda != CPU:
        yield from check_absence(view)


def check_absence(view: View) -> Iterator[Finding | Undecided]:
    """libcuda.so.1 is nowhere: no question without a driver, a fault with one."""
    machine = view.machine
    if machine.driver.kernel_module is None:
        why = ("it comes from the machine that the tree will run on" if not machine.live else
               "it comes with NVIDIA's driver, and there is none on this machine")
        yield Undecided(subject=CUDA, reason=why)
    elif machine.live and machine.container is None:
        version = machine.driver.kernel_module.version
        yield make_finding(
            "SF1001", "warning", summary=f"The kernel module of driver {version} is loaded, but {CUDA} is not found",
            why="The driver's libraries are another package than its kernel module, and it is not installed or not "
                "where the loader looks.",
            culprit=Culprit(path=CUDA), error="RuntimeError: Found no NVIDIA driver on your system",
            evidence=(f"kernel module {version} ({machine.driver.kernel_module.found_via})",
                      *(f"{each.path} is there, but the loader does not come to it"
                        for each in machine.driver.libraries if each.origin == "system")),
            cure=(f"install the driver's libraries of version {version} (libnvidia-compute, nvidia-driver-libs)",
                  "sudo ldconfig"), why_not=OUTSIDE)


def check_stubs(view: View, cuda: tuple[Copy, ...]) -> Iterator[Finding]:
    """SF803: a library that is only for linking answers in the driver's place."""
    folders = set[str]()        # one finding for each: the folder is the root
    for name, copies in ((CUDA, cuda), ("libcuda.so", driver_copies(view, "libcuda.so")),
                         (NVML, driver_copies(view, NVML))):
        folder = copies[0].path.rpartition("/")[0] if copies else ""
        if copies and copies[0].origin == "stub" and folder not in folders:
            folders.add(folder)
            yield stub(view, name, copies)


def stub(view: View, name: str, copies: tuple[Copy, ...]) -> Finding:
    winner, machine = copies[0], view.machine
    loser = next((each for each in copies if each.origin in {"system", "wsl"}), None)
    folder = winner.path.rpartition("/")[0]
    driver = machine.driver.kernel_module is not None or machine.wsl is not None
    if name == CUDA:
        severity = "error" if driver else "note" if machine.live else "warning"
    else:
        severity = "warning" if driver else "note"
    return make_finding(
        "SF803", severity, summary=f"{winner.path}, a stub for linking, is found for {name}",
        why=f"{winner.via} leads to it{' before the driver itself' if loser else ''}. A stub has the functions and "
            "does nothing: every call returns an error." + ("" if name.endswith(".1") else
            f" Its soname is {CUDA}, so it also answers for that name once it is loaded."),
        culprit=Culprit(path=winner.path, variable="LD_LIBRARY_PATH" if winner.via.startswith("LD_LIB") else None),
        evidence=found_where(copies), winner=winner.path, loser=loser.path if loser else None,
        error="RuntimeError: CUDA error: CUDA driver is a stub library" if name != NVML else None,
        cure=leave_out(view, winner, folder), why_not=None if winner.via.startswith("LD_LIB") else OUTSIDE)


def check_versions(view: View, cuda: tuple[Copy, ...]) -> Iterator[Finding]:
    """SF1001: libraries of another version than the kernel module's. They belong to exactly one driver."""
    module = view.machine.driver.kernel_module
    if module is None:
        return
    differ = [(name, copies) for name, copies in ((CUDA, cuda), (NVML, driver_copies(view, NVML)))
              if copies and copies[0].origin == "system" and copies[0].version not in {None, module.version}]
    if not differ:
        return
    name, copies = differ[0]
    winner = copies[0]
    right = next((each for each in copies if each.version == module.version), None)
    container = view.machine.container
    cure: tuple[str, ...]
    if right is not None:
        why = f"{winner.via} leads to {winner.path} before {right.path}, which is the driver's own."
        cure = ("remove the driver's libraries from the image: they come with the machine's driver",) \
            if container else (f"remove the libraries of driver {winner.version}, then run: sudo ldconfig",)
    elif container is not None:
        why = "The container has libraries of another driver than the machine's: of its image, or of before an upgrade."
        cure = ("start the container anew", "remove the driver's libraries from its image")
    else:
        why = "The driver was upgraded, and its old kernel module is still loaded."
        cure = ("sudo reboot", "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia")
    yield make_finding(
        "SF1001", "error" if name == CUDA else "warning",
        summary=f"{name} is of driver {winner.version}, the kernel module of {module.version}", why=why,
        culprit=Culprit(path=winner.path), winner=winner.path, loser=right.path if right else None,
        error="Error 803: system has unsupported display driver / cuda driver combination" if name == CUDA else
              "Failed to initialize NVML: Driver/library version mismatch",
        evidence=(f"kernel module {module.version} ({module.found_via})",
                  *(line for _, each in differ for line in found_where(each)),
                  *((f"in a container ({container.kind}, by {container.found_via})",) if container else ())),
        cure=cure, why_not=OUTSIDE)
