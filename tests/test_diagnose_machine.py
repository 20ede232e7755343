"""What is said of the driver's libraries and devices, on trees and on descriptions of running machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.machine import check_machine
from stackfix.inspect.machine_records import Gpu, PciGpu, Wsl
from tests.diagnose_machines import DOCKER, NODES, found, gpu, install_driver, load_module, running, undecided
from tests.diagnose_world import SYSTEM, World, lib

STUBS = "/usr/local/cuda/lib64/stubs"
COMPAT = "/usr/local/cuda/compat"
H100, GEFORCE = gpu("NVIDIA H100 PCIe", "9.0"), gpu("NVIDIA GeForce RTX 3090", "8.6")


def torch(world: World, version: str = "2.3.1+cu121") -> World:
    world.wheel("torch", version, {"torch/lib/libc10.so": lib(), "torch/lib/libc10_cuda.so": lib()})
    return world


def driven(folder: Path, version: str = "550.54.15", module: str | None = None) -> World:
    """A machine with a driver and a torch."""
    world = torch(World(folder))
    install_driver(world, version)
    load_module(world, module or version)
    return world


def put_stub(world: World, *names: str) -> None:
    world.toolkit("/usr/local/cuda", "12.1.1")
    for name in names:
        world.library(f"{STUBS}/{name}", lib(soname="libcuda.so.1", offers=("cuInit",)))


def test_a_healthy_machine_with_a_gpu_has_nothing(tmp_path: Path) -> None:
    view = running(driven(tmp_path).view(), H100)
    assert list(check_machine(view)) == []


def test_a_machine_without_a_driver_leaves_it_undecided(tmp_path: Path) -> None:
    """No finding, whatever the variables say."""
    world = torch(World(tmp_path)).environ(CUDA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="utility",
                                           NVIDIA_VISIBLE_DEVICES="void")
    for view in (world.view(), running(world.view(), nodes=()), running(world.view(), nodes=(), container=DOCKER)):
        answers = list(check_machine(view))
        assert found(answers) == {}
        assert undecided(answers).keys() == {"libcuda.so.1"}
    assert "tree" in undecided(check_machine(world.view()))["libcuda.so.1"]


def test_a_torch_for_the_cpu_does_not_ask_for_the_driver(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.3.1+cpu", {"torch/lib/libc10.so": lib()})
    assert list(check_machine(world.view())) == []


# --- SF803 ---

def test_a_stub_on_the_path_wins_over_the_driver(tmp_path: Path) -> None:
    """What `-devel` images invite to: a link libcuda.so.1 in stubs, and stubs on LD_LIBRARY_PATH."""
    world = driven(tmp_path).environ(LD_LIBRARY_PATH=STUBS)
    put_stub(world, "libcuda.so")
    world.link(f"{STUBS}/libcuda.so.1", "libcuda.so")
    finding = found(check_machine(running(world.view(), H100)))["SF803"]
    assert (finding.severity, finding.kind, finding.level) == ("error", "stub-library", "driver")
    assert (finding.winner, finding.loser) == (f"{STUBS}/libcuda.so.1", f"{SYSTEM}/libcuda.so.1")
    assert finding.culprit.path == f"{STUBS}/libcuda.so.1"
    assert finding.culprit.variable == "LD_LIBRARY_PATH"
    assert "CUDA driver is a stub library" in (finding.error or "")
    assert finding.repairable
    assert STUBS in finding.cure[0]


def test_a_stub_in_the_cache_names_the_file_that_put_it_there(tmp_path: Path) -> None:
    world = torch(World(tmp_path))
    load_module(world, "550.54.15")
    put_stub(world, "libcuda.so")
    world.link(f"{STUBS}/libcuda.so.1", "libcuda.so").cached(f"{STUBS}/libcuda.so.1", conf="stubs.conf")
    finding = found(check_machine(running(world.view(), H100)))["SF803"]
    assert finding.severity == "error"
    assert "/etc/ld.so.conf.d/stubs.conf" in finding.cure[0]
    assert not finding.repairable


def test_a_stub_for_the_unversioned_name_may_do_harm(tmp_path: Path) -> None:
    """cuDNN 8 and numba open `libcuda.so`; the stub's soname is libcuda.so.1, which it then stands for."""
    world = driven(tmp_path).environ(LD_LIBRARY_PATH=STUBS)
    put_stub(world, "libcuda.so")
    finding = found(check_machine(running(world.view(), H100)))["SF803"]
    assert (finding.severity, finding.winner) == ("warning", f"{STUBS}/libcuda.so")


def test_a_stub_out_of_the_way_is_nothing(tmp_path: Path) -> None:
    world = driven(tmp_path)
    put_stub(world, "libcuda.so")
    assert found(check_machine(running(world.view(), H100))) == {}


def test_a_stub_without_a_driver_is_how_images_are_built(tmp_path: Path) -> None:
    world = torch(World(tmp_path)).environ(LD_LIBRARY_PATH=STUBS)
    put_stub(world, "libcuda.so", "libcuda.so.1")
    assert found(check_machine(running(world.view(), nodes=())))["SF803"].severity == "note"
    assert found(check_machine(world.view()))["SF803"].severity == "warning"    # the tree will meet a driver


# --- SF804 ---

def compat(folder: Path, version: str = "555.42.06", module: str = "535.104.05") -> World:
    world = driven(folder, module).environ(LD_LIBRARY_PATH=COMPAT)
    world.toolkit("/usr/local/cuda", "12.5.1")
    install_driver(world, version, COMPAT, cached=False)
    world.host(f"{COMPAT}/libnvidia-ml.so.1").unlink()      # the package has none
    return world


@pytest.mark.parametrize(("name", "severity"), [
    ("NVIDIA GeForce RTX 3090", "error"), ("NVIDIA RTX A6000", "warning"), ("Quadro RTX 8000", "warning"),
    ("NVIDIA H100 PCIe", "note"), ("Tesla T4", "note"), ("NVIDIA L40S", "note"), ("NVIDIA A100-SXM4-80GB", "note"),
    ("NVIDIA GH200 480GB", "note"), ("NVIDIA TITAN RTX", "error"),
])
def test_forward_compatibility_depends_on_the_card(tmp_path: Path, name: str, severity: str) -> None:
    answers = list(check_machine(running(compat(tmp_path).view(), gpu(name))))
    finding = found(answers)["SF804"]
    assert (finding.severity, finding.winner) == (severity, f"{COMPAT}/libcuda.so.1")
    assert finding.loser == f"{SYSTEM}/libcuda.so.1"
    assert (finding.error or "").startswith("Error 804: forward compatibility was attempted on non supported HW")
    assert undecided(answers) == {}
    assert "SF1001" not in found(answers)       # another version than the kernel's is what the package is for


def test_forward_compatibility_of_an_unknown_card_is_undecided(tmp_path: Path) -> None:
    answers = list(check_machine(running(compat(tmp_path).view(), gpu("NVIDIA Graphics Device"))))
    assert found(answers)["SF804"].severity == "note"
    assert "NVIDIA Graphics Device" in undecided(answers)["cuda-compat"]


def test_forward_compatibility_without_a_driver_is_undecided(tmp_path: Path) -> None:
    world = torch(World(tmp_path)).environ(LD_LIBRARY_PATH=COMPAT)
    install_driver(world, "555.42.06", COMPAT, cached=False)
    answers = list(check_machine(world.view()))
    assert found(answers) == {}
    assert COMPAT in undecided(answers)["cuda-compat"]


def test_a_compat_library_older_than_the_driver_fails_on_every_card(tmp_path: Path) -> None:
    finding = found(check_machine(running(compat(tmp_path, "535.54.03", "550.54.15").view(), H100)))["SF804"]
    assert finding.severity == "error"
    assert (finding.error or "").startswith("Error 803")


def test_a_compat_folder_behind_the_driver_is_nothing(tmp_path: Path) -> None:
    world = compat(tmp_path).environ(LD_LIBRARY_PATH=f"{SYSTEM}:{COMPAT}")
    assert found(check_machine(running(world.view(), GEFORCE))) == {}


# --- SF1001 ---

def test_a_driver_that_was_upgraded_without_a_reboot(tmp_path: Path) -> None:
    finding = found(check_machine(running(driven(tmp_path, "550.54.15", "535.104.05").view(), H100)))["SF1001"]
    assert (finding.severity, finding.culprit.path) == ("error", f"{SYSTEM}/libcuda.so.1")
    assert "550.54.15" in finding.summary
    assert "535.104.05" in finding.summary
    assert finding.cure[0] == "sudo reboot"
    assert (finding.error or "").startswith("Error 803")
    assert not finding.repairable
    assert any("libnvidia-ml" in line for line in finding.evidence)


def test_only_nvml_differs(tmp_path: Path) -> None:
    world = driven(tmp_path)
    world.host(f"{SYSTEM}/libnvidia-ml.so.1").unlink()
    world.link(f"{SYSTEM}/libnvidia-ml.so.1", "libnvidia-ml.so.535.104.05")
    world.library(f"{SYSTEM}/libnvidia-ml.so.535.104.05", lib(soname="libnvidia-ml.so.1"))
    finding = found(check_machine(running(world.view(), H100)))["SF1001"]
    assert finding.severity == "warning"
    assert finding.error == "Failed to initialize NVML: Driver/library version mismatch"


def test_an_image_with_driver_libraries_of_its_own(tmp_path: Path) -> None:
    """The container toolkit mounted the right ones, and the image's come before them."""
    world = driven(tmp_path, "550.54.15")
    install_driver(world, "515.65.01", "/opt/driver", cached=False)
    world.environ(LD_LIBRARY_PATH="/opt/driver")
    finding = found(check_machine(running(world.view(), H100, container=DOCKER)))["SF1001"]
    assert (finding.winner, finding.loser) == ("/opt/driver/libcuda.so.1", f"{SYSTEM}/libcuda.so.1")
    assert "image" in finding.cure[0]
    assert any("docker" in line for line in finding.evidence)


def test_a_kernel_module_without_its_libraries(tmp_path: Path) -> None:
    world = torch(World(tmp_path))
    load_module(world, "550.54.15")
    finding = found(check_machine(running(world.view(), H100)))["SF1001"]
    assert (finding.severity, finding.culprit.path) == ("warning", "libcuda.so.1")


# --- SF1002 ---

@pytest.mark.parametrize(("nodes", "container", "asked", "severity"), [
    (NODES, True, None, None),
    (NODES[:2], True, None, "error"),           # no nvidia-uvm: CUDA unknown error
    (NODES[1:], True, None, "error"),
    ((), True, None, "note"),                   # a container that nobody meant to have a GPU
    ((), True, "all", "warning"),
    (NODES[:2], False, None, "note"),           # a host just booted: nvidia-modprobe makes them at first use
    ((), False, None, "note"),
])
def test_device_nodes(tmp_path: Path, nodes: tuple[str, ...], container: bool, asked: str | None,
                      severity: str | None) -> None:
    world = driven(tmp_path)
    if asked:
        world.environ(NVIDIA_VISIBLE_DEVICES=asked)
    view = running(world.view(), H100, nodes=nodes, container=DOCKER if container else None)
    finding = found(check_machine(view)).get("SF1002")
    assert (finding.severity if finding else None) == severity
    if finding is not None:
        assert finding.culprit.path in NODES
        assert finding.culprit.path not in nodes


def test_nodes_that_may_not_be_opened(tmp_path: Path) -> None:
    finding = found(check_machine(running(driven(tmp_path).view(), H100, closed=["/dev/nvidia0"])))["SF1002"]
    assert (finding.severity, finding.culprit.path) == ("error", "/dev/nvidia0")
    more = (*NODES, "/dev/nvidia1")
    view = running(driven(tmp_path / "2").view(), H100, H100, nodes=more, closed=["/dev/nvidia1"])
    assert found(check_machine(view)) == {}     # a job's own GPU is enough


def test_a_tree_has_no_device_nodes_to_miss(tmp_path: Path) -> None:
    assert found(check_machine(driven(tmp_path).view())) == {}


# --- SF1003 ---

@pytest.mark.parametrize(("value", "severity", "text"), [
    ("0", None, ""), ("0,1", None, ""), (" 1 , 0 ", None, ""), ("GPU-1234", None, ""), ("MIG-77", None, ""),
    ("GPU-1234abcd,GPU-5678", None, ""),
    ("", "warning", "hides every GPU"), ("-1", "warning", "hides every GPU"), ("NoDevFiles", "warning", "hides"),
    ("2", "error", "'2'"), ("2,0", "error", "'2'"), ("0,2", "warning", "'2'"), ("0,-1", "warning", "'-1'"),
    ("GPU-9", "error", "GPU-9"), ("all", "error", "'all'"), ("cuda:0", "error", "cuda:0"), ("GPU-", "error", "GPU-"),
])
def test_visible_devices(tmp_path: Path, value: str, severity: str | None, text: str) -> None:
    world = driven(tmp_path).environ(CUDA_VISIBLE_DEVICES=value)
    view = running(world.view(), H100, gpu(uuid="GPU-5678ef", bus="0000:c1:00.0"), nodes=(*NODES, "/dev/nvidia1"))
    finding = found(check_machine(view)).get("SF1003")
    assert (finding.severity if finding else None) == severity
    if finding is not None:
        assert text in finding.summary
        assert finding.culprit.variable == "CUDA_VISIBLE_DEVICES"
        assert finding.cure[0] == "unset CUDA_VISIBLE_DEVICES"


# --- SF1004 ---

@pytest.mark.parametrize(("variables", "nodes", "code"), [
    ({"NVIDIA_DRIVER_CAPABILITIES": "utility,graphics", "NVIDIA_VISIBLE_DEVICES": "all"}, NODES, "SF1004"),
    ({"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}, (), "SF1002"),
    ({"NVIDIA_VISIBLE_DEVICES": "void"}, (), "SF1004"),
    ({"NVIDIA_VISIBLE_DEVICES": "void"}, NODES, None),      # a device plugin hands them over by itself
    ({}, (), "SF1002"),
])
def test_a_container_without_the_compute_driver(tmp_path: Path, variables: dict[str, str], nodes: tuple[str, ...],
                                                code: str | None) -> None:
    world = torch(World(tmp_path)).environ(**variables)
    load_module(world, "550.54.15")
    findings = found(check_machine(running(world.view(), H100, nodes=nodes, container=DOCKER)))
    assert set(findings) == ({code} if code else set())
    if code == "SF1004":
        assert findings[code].culprit.variable in variables


def test_capabilities_do_not_count_where_libcuda_is_there(tmp_path: Path) -> None:
    world = driven(tmp_path).environ(NVIDIA_DRIVER_CAPABILITIES="utility")
    assert found(check_machine(running(world.view(), H100, container=DOCKER))) == {}


# --- SF1006, SF1007 ---

@pytest.mark.parametrize(("gpus", "instances", "nodes", "severity"), [
    ((gpu(mig=True),), (), NODES, "error"),
    ((gpu(mig=True), gpu(mig=False, bus="2")), (), NODES, "warning"),
    ((gpu(mig=True),), ("gpu0/mig/gi1",), NODES, None),
    ((gpu(mig=True),), (), (*NODES, "/dev/nvidia-caps/nvidia-cap21"), None),
    ((gpu(mig=True),), (), (*NODES, "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"), "error"),
    ((gpu(mig=False),), (), NODES, None),
])
def test_mig_without_an_instance(tmp_path: Path, gpus: tuple[Gpu, ...], instances: tuple[str, ...],
                                 nodes: tuple[str, ...], severity: str | None) -> None:
    view = running(driven(tmp_path).view(), *gpus, nodes=nodes, driver={"mig_instances": instances})
    finding = found(check_machine(view)).get("SF1006")
    assert (finding.severity if finding else None) == severity


@pytest.mark.parametrize(("by", "version", "severity"), [
    (None, "2.3.1+cu121", "warning"), ("nouveau", "2.3.1+cu121", "warning"), ("nouveau", "2.3.1+cpu", "note"),
    ("vfio-pci", "2.3.1+cu121", None),
])
def test_a_card_without_nvidias_module(tmp_path: Path, by: str | None, version: str, severity: str | None) -> None:
    view = running(torch(World(tmp_path), version).view(), nodes=(),
                   driver={"pci": (PciGpu(bus="0000:01:00.0", device="0x2204", driver=by),)})
    finding = found(check_machine(view)).get("SF1007")
    assert (finding.severity if finding else None) == severity
    if finding is not None and by == "nouveau":
        assert "nouveau" in finding.why


def test_wsl_has_its_own_ways(tmp_path: Path) -> None:
    """No kernel module, no nodes but /dev/dxg, and a libcuda without a version: nothing of it is a fault."""
    world = torch(World(tmp_path))
    world.library("/usr/lib/wsl/lib/libcuda.so.1", lib()).cached("/usr/lib/wsl/lib/libcuda.so.1", conf="ld.wsl.conf")
    view = running(world.view(), H100, nodes=["/dev/dxg"],
                   wsl=Wsl(version=2, library_folder="/usr/lib/wsl/lib", found_via="kernel release"))
    assert list(check_machine(view)) == []
