"""GPUs that programs cannot see: device nodes, variables, containers, MIG, no kernel module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.installed_torch import CPU, installed_torch
from stackfix.diagnose.machine_libraries import CUDA, OUTSIDE, driver_copies
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import DeviceNode, Gpu

VISIBLE, GIVEN, CAPABILITIES = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"
NO_GPU = "RuntimeError: No CUDA GPUs are available"
UNKNOWN = "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment"
MODPROBE = "sudo nvidia-modprobe -c 0 -u"
GPU_NODE = re.compile(r"/dev/nvidia\d+")
INSTANCE_NODE = re.compile(r"/dev/nvidia-caps/nvidia-cap(\d+)")
FIRST_INSTANCE_NODE = 3         # cap1 and cap2 configure and monitor MIG


def check_devices(view: View) -> Iterator[Finding]:
    """SF1002, SF1003, SF1004, SF1006 and SF1007. Without a kernel module only SF1007 can be told."""
    if view.machine.driver.kernel_module is None:
        yield from check_module(view)
        return
    if view.machine.live and view.machine.wsl is None:
        given = list(check_container(view))
        yield from given or check_nodes(view)
    yield from check_visible(view)
    yield from check_mig(view)


def check_module(view: View) -> Iterator[Finding]:
    """SF1007: an NVIDIA card that NVIDIA's kernel module does not drive."""
    machine, torch = view.machine, installed_torch(view)
    cards = [each for each in machine.driver.pci if each.driver != "vfio-pci"]      # handed to a virtual machine
    if not machine.live or not cards or machine.wsl is not None or machine.jetson is not None:
        return
    nouveau = machine.driver.nouveau or any(each.driver == "nouveau" for each in cards)
    yield make_finding(
        "SF1007", "warning" if torch is not None and torch.cuda != CPU else "note",
        summary="An NVIDIA card is there, and NVIDIA's kernel module is not loaded",
        why="nouveau drives it, and with nouveau there is no CUDA." if nouveau else
            "The driver is not installed, was not built for this kernel, or is not allowed to be loaded (Secure Boot).",
        culprit=Culprit(path="/sys/module/nouveau" if nouveau else f"/sys/bus/pci/devices/{cards[0].bus}"),
        evidence=tuple(f"PCI {each.bus}: device {each.device}, driven by {each.driver or 'nobody'}" for each in cards),
        error="RuntimeError: Found no NVIDIA driver on your system",
        cure=("install NVIDIA's driver for this kernel, then: sudo modprobe nvidia",
              *(("keep nouveau from being loaded (blacklist nouveau), then reboot",) if nouveau else
                ("sudo dmesg | grep -i -e nvidia -e nvrm",))), why_not=OUTSIDE)


def check_container(view: View) -> Iterator[Finding]:
    """SF1004: a container that was started without the GPU's libraries. What was put in anyway counts, not words."""
    machine, variables = view.machine, view.variables
    if machine.container is None or driver_copies(view, CUDA):
        return
    capabilities = [each.strip() for each in variables.get(CAPABILITIES, "").split(",")]
    without = bool(variables.get(CAPABILITIES)) and not {"compute", "all"} & set(capabilities)
    given = variables.get(GIVEN)
    # device plugins write "void" where they hand the devices over by themselves
    none_given = given in {"void", "none", ""} and not gpu_nodes(machine.driver.devices)
    if not without and not none_given:
        return
    variable = CAPABILITIES if without else GIVEN
    yield make_finding(
        "SF1004", "warning", summary=f"{variable}={variables[variable]}: the container was not given {CUDA}",
        why="The container toolkit puts the driver's compute libraries in only where the capability 'compute' is "
            "asked for." if without else "The container toolkit was told to hand no GPU over.",
        culprit=Culprit(variable=variable), error="RuntimeError: Found no NVIDIA driver on your system",
        evidence=(f"container: {machine.container.kind} ({machine.container.found_via})", f"{CUDA} is nowhere",
                  *(f"{name}={variables[name]}" for name in (GIVEN, CAPABILITIES) if name in variables)),
        cure=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",), why_not=OUTSIDE)


def gpu_nodes(devices: Sequence[DeviceNode]) -> list[DeviceNode]:
    """Nodes of whole GPUs."""
    return [each for each in devices if GPU_NODE.fullmatch(each.path)]


def check_nodes(view: View) -> Iterator[Finding]:
    """SF1002: nodes that are missing or closed. On a host the driver's own helper may still make them."""
    machine = view.machine
    nodes = {each.path: each for each in machine.driver.devices}
    gpus = gpu_nodes(machine.driver.devices)
    wanted = ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    missing = [path for path in wanted if path not in nodes] + ([] if gpus else ["/dev/nvidia0"])
    closed = [nodes[path] for path in wanted if path in nodes and nodes[path].accessible is False]
    if gpus and not any(each.accessible for each in gpus):
        closed += gpus
    container = machine.container
    if closed:
        yield make_finding(
            "SF1002", "error", summary=f"{closed[0].path} cannot be opened",
            why="The node is there, but this user may not read and write it.", culprit=Culprit(path=closed[0].path),
            evidence=tuple(f"{each.path}: no permission" for each in closed), error=UNKNOWN,
            cure=("add the user to the group that owns the node (ls -l /dev/nvidia*), or ask an administrator",),
            why_not=OUTSIDE)
    elif missing and container is not None:
        yield no_nodes_in_container(view, missing, container.kind)
    elif missing:
        yield make_finding(
            "SF1002", "note", summary=f"{', '.join(missing)}: not there yet",
            why="nvidia-modprobe makes them when a program first uses the GPU, where it is installed setuid.",
            culprit=Culprit(path=missing[0]), evidence=tuple(f"{path}: no such file" for path in missing),
            error=UNKNOWN, cure=(MODPROBE, "sudo systemctl enable --now nvidia-persistenced"), why_not=OUTSIDE)


def no_nodes_in_container(view: View, missing: list[str], kind: str) -> Finding:
    """Some nodes missing is a fault; none at all, and nobody asked for a GPU, is how containers start."""
    asked = view.variables.get(GIVEN, "") not in {"", "void", "none"}
    nodes = [each.path for each in view.machine.driver.devices]
    severity = "error" if nodes else "warning" if asked else "note"
    return make_finding(
        "SF1002", severity, summary=f"The container has no {', '.join(missing)}",
        why="The machine has a GPU driver, and the container was started without its devices." if not nodes else
            "The container was given some of the driver's devices, and not all.",
        culprit=Culprit(path=missing[0]),
        evidence=(f"container: {kind}", *(f"{path}: there" for path in nodes),
                  *(f"{path}: no such file" for path in missing)),
        error="RuntimeError: Found no NVIDIA driver on your system" if not nodes else UNKNOWN,
        cure=("docker run --gpus all …", f"if nodes are missing on the machine itself: {MODPROBE}"), why_not=OUTSIDE)


def check_visible(view: View) -> Iterator[Finding]:
    """SF1003: a CUDA_VISIBLE_DEVICES that hides the GPUs. CUDA stops at the first element that it does not know."""
    value, gpus = view.variables.get(VISIBLE), view.machine.driver.gpus
    if value is None or not gpus:
        return
    elements = [each.strip() for each in value.split(",")]
    known = 0
    while known < len(elements) and names_gpu(elements[known], gpus):
        known += 1
    if known == len(elements):
        return
    wrong = elements[known]
    on_purpose = known == 0 and wrong in {"", "-1", "NoDevFiles"}
    if on_purpose:
        summary, why = f"{VISIBLE}={value!r} hides every GPU", "So programs are told that there is no GPU."
    else:
        summary = f"{VISIBLE}={value} names {wrong!r}, which this machine does not have"
        why = "CUDA leaves out that element and all behind it: " + (
            f"only {', '.join(elements[:known])} is seen." if known else "no GPU is seen.")
    yield make_finding(
        "SF1003", "error" if not known and not on_purpose else "warning", summary=summary, why=why,
        culprit=Culprit(variable=VISIBLE), error=NO_GPU if not known else None,
        evidence=(f"{VISIBLE}={value}", *(f"GPU {number}: {each.name or 'no name'} {each.uuid or ''}".rstrip()
                                          for number, each in enumerate(gpus))),
        cure=(f"unset {VISIBLE}", f"export {VISIBLE}=0"), why_not="it is set outside of the environment")


def names_gpu(element: str, gpus: Sequence[Gpu]) -> bool:
    """Whether an element names a GPU: a number, or the beginning of a UUID. MIG instances cannot be looked up here."""
    if element.isdecimal():
        return int(element) < len(gpus)
    if element.startswith("MIG-"):
        return True
    if element.startswith("GPU-") and len(element) > len("GPU-"):
        return any(each.uuid is None or each.uuid.startswith(element) for each in gpus)
    return False


def check_mig(view: View) -> Iterator[Finding]:
    """SF1006: MIG mode without an instance. CUDA offers nothing of such a GPU."""
    driver = view.machine.driver
    empty = [each for each in driver.gpus if each.mig]
    instances = [node.path for node in driver.devices if (match := INSTANCE_NODE.fullmatch(node.path))
                 and int(match[1]) >= FIRST_INSTANCE_NODE]
    if not empty or driver.mig_instances or instances:
        return
    whole = len(empty) == len(driver.gpus)
    which = "every GPU" if whole else f"{len(empty)} of {len(driver.gpus)} GPUs"
    yield make_finding(
        "SF1006", "error" if whole else "warning",
        summary=f"MIG is on and has no instance on {which}",
        why="A GPU in MIG mode is used through its instances alone.", culprit=Culprit(path="/proc/driver/nvidia"),
        evidence=tuple(f"{each.name or 'GPU'} ({each.bus or 'no bus'}): MIG on, no instance listed" for each in empty),
        error=NO_GPU, cure=("sudo nvidia-smi mig -cgi 0 -C", "sudo nvidia-smi -mig 0"), why_not=OUTSIDE)
