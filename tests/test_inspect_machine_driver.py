"""NVIDIA's driver over trees: healthy, mismatched, in containers, under WSL, absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.inspect.driver import SmiGpu, parse_smi, read_smi
from stackfix.inspect.machine_driver import DRIVER_FOLDERS, merged, read_driver
from stackfix.inspect.machine_records import DeviceNode, Driver, DriverLibrary, Gpu, KernelModule, PciGpu
from stackfix.inspect.machine_system import library_folders
from stackfix.inspect.places import Root
from tests.inspect_trees import link, write

NVRM = "NVRM version: NVIDIA UNIX {kind}  {version}  Thu May  2 14:37:44 UTC 2024\nGCC version:  gcc 12.2.0\n"
TRIPLE = "usr/lib/x86_64-linux-gnu"


def driver_of(tree: Path, smi: tuple[SmiGpu, ...] = (), cache: dict[str, str] | None = None,
              toolkits: tuple[str, ...] = ()) -> Driver:
    return read_driver(Root(str(tree)), library_folders("x86_64"), cache or {}, toolkits, smi)


def install(tree: Path, folder: str, version: str) -> None:
    for name in ("libcuda", "libnvidia-ml"):
        write(tree, f"{folder}/{name}.so.{version}", "x")
        link(tree, f"{folder}/{name}.so.1", f"{name}.so.{version}")
        link(tree, f"{folder}/{name}.so", f"{name}.so.1")


@pytest.mark.parametrize(("kind", "open_"), [
    ("x86_64 Kernel Module", False), ("Open Kernel Module for x86_64", True),
])
def test_the_kernel_module(tmp_path: Path, kind: str, open_: bool) -> None:
    assert driver_of(tmp_path).kernel_module is None
    write(tmp_path, "sys/module/nvidia/version", "550.54.15\n")
    assert driver_of(tmp_path).kernel_module == KernelModule(
        version="550.54.15", open=None, found_via="/sys/module/nvidia/version")
    write(tmp_path, "proc/driver/nvidia/version", NVRM.format(kind=kind, version="550.54.15"))
    assert driver_of(tmp_path).kernel_module == KernelModule(
        version="550.54.15", open=open_, found_via="/proc/driver/nvidia/version")


def test_libraries_and_kernel_module_may_differ(tmp_path: Path) -> None:
    """After an upgrade without a reboot: `Driver/library version mismatch`."""
    write(tmp_path, "sys/module/nvidia/version", "535.104.05\n")
    install(tmp_path, TRIPLE, "550.54.15")
    link(tmp_path, "lib", "usr/lib")
    driver = driver_of(tmp_path)
    assert driver.kernel_module is not None
    assert driver.kernel_module.version == "535.104.05"
    assert driver.libraries == tuple(DriverLibrary(
        path=f"/lib/x86_64-linux-gnu/{name}.so.1", real_path=f"/{TRIPLE}/{name}.so.550.54.15", version="550.54.15",
        origin="system") for name in ("libcuda", "libnvidia-ml"))


def test_every_copy_is_told_in_the_order_of_the_search(tmp_path: Path) -> None:
    install(tmp_path, "usr/local/nvidia/lib64", "550.54.15")
    install(tmp_path, TRIPLE, "535.104.05")
    install(tmp_path, "usr/local/cuda/compat", "555.42.06")
    write(tmp_path, "usr/local/cuda/lib64/stubs/libcuda.so", "x")
    driver = driver_of(tmp_path, cache={"libcuda.so.1": "/usr/local/cuda/compat/libcuda.so.1"},
                       toolkits=("/usr/local/cuda/compat", "/usr/local/cuda/lib64/stubs"))
    found = [(each.path, each.version, each.origin) for each in driver.libraries if "libcuda" in each.path]
    assert found == [
        ("/usr/local/cuda/compat/libcuda.so.1", "555.42.06", "compat"),
        (f"/{TRIPLE}/libcuda.so.1", "535.104.05", "system"),
        ("/usr/local/nvidia/lib64/libcuda.so.1", "550.54.15", "system"),
        ("/usr/local/cuda/lib64/stubs/libcuda.so", None, "stub")]


def test_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    """A container toolkit that mounted nothing leaves the image's own dangling links."""
    link(tmp_path, f"{TRIPLE}/libcuda.so.1", "libcuda.so.550.54.15")
    assert driver_of(tmp_path).libraries == (DriverLibrary(
        path=f"/{TRIPLE}/libcuda.so.1", real_path=None, version=None, origin="system"),)


def test_wsl_has_one_folder_and_no_versions(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/wsl/lib/libcuda.so.1", "x")
    write(tmp_path, "dev/dxg")
    driver = driver_of(tmp_path)
    assert "/usr/lib/wsl/lib" in DRIVER_FOLDERS
    assert [(each.version, each.origin) for each in driver.libraries] == [(None, "wsl")]
    assert driver.devices == (DeviceNode(path="/dev/dxg", accessible=None),)


def test_devices_gpus_and_mig(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1", "null", "nvme0"):
        write(tmp_path, f"dev/{name}")
    for number, (bus, uuid) in enumerate((("0000:41:00.0", "GPU-1234"), ("0000:c1:00.0", "GPU-????????"))):
        write(tmp_path, f"proc/driver/nvidia/gpus/{bus}/information",
              f"Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 24{number}\n"
              f"GPU UUID: \t {uuid}\nBus Location: \t {bus}\n")
        write(tmp_path, f"sys/bus/pci/devices/{bus}/vendor", "0x10de\n")
        write(tmp_path, f"sys/bus/pci/devices/{bus}/class", "0x030200\n")
        write(tmp_path, f"sys/bus/pci/devices/{bus}/device", "0x20b2\n")
    link(tmp_path, "sys/bus/pci/devices/0000:41:00.0/driver", "../../../bus/pci/drivers/nvidia")
    write(tmp_path, "sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n")
    write(tmp_path, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n")
    smi = SmiGpu(bus="00000000:41:00.0", uuid="GPU-1234", name="x", capability="8.0", mig=True)
    driver = driver_of(tmp_path, (smi,))
    assert [each.path for each in driver.devices] == [
        "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1"]
    assert driver.gpus == (
        Gpu(name="NVIDIA A100-SXM4-80GB", uuid="GPU-1234", bus="0000:41:00.0", capability="8.0", mig=True,
            found_via="/proc/driver/nvidia"),
        Gpu(name="NVIDIA A100-SXM4-80GB", uuid=None, bus="0000:c1:00.0", capability=None, mig=None,
            found_via="/proc/driver/nvidia"))
    assert driver.pci == (PciGpu(bus="0000:41:00.0", device="0x20b2", driver="nvidia"),
                          PciGpu(bus="0000:c1:00.0", device="0x20b2", driver=None))
    assert driver.mig_instances == ("gpu0/mig/gi1",)


def test_nouveau_is_told(tmp_path: Path) -> None:
    (tmp_path / "sys/module/nouveau").mkdir(parents=True)
    assert driver_of(tmp_path).nouveau


def test_gpus_that_only_nvidia_smi_sees() -> None:
    smi = SmiGpu(bus="00000000:01:00.0", uuid="GPU-1", name="NVIDIA GeForce RTX 4090", capability="8.9", mig=None)
    assert merged((), (smi,)) == (Gpu(name=smi.name, uuid="GPU-1", bus="0000:01:00.0", capability="8.9", mig=None,
                                      found_via="nvidia-smi"),)


def test_the_table_of_nvidia_smi() -> None:
    text = ("00000000:41:00.0, GPU-1, 9.0, Enabled, NVIDIA H100, 80GB\n"
            "00000000:C1:00.0, , [N/A], [N/A], NVIDIA T4\nNo devices were found\n\n")
    assert parse_smi(text) == (
        SmiGpu(bus="00000000:41:00.0", uuid="GPU-1", name="NVIDIA H100, 80GB", capability="9.0", mig=True),
        SmiGpu(bus="00000000:C1:00.0", uuid=None, name="NVIDIA T4", capability=None, mig=None))


@pytest.mark.parametrize(("script", "expected"), [
    (None, "there is no nvidia-smi"),
    ("#!/none/at/all\n", "there is no nvidia-smi"),
    ("#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n",
     "nvidia-smi ended with status 18: Failed to initialize NVML: Driver/library version mismatch"),
])
def test_why_nvidia_smi_lists_none(tmp_path: Path, script: str | None, expected: str) -> None:
    path = tmp_path / "nvidia-smi"
    if script is not None:
        path.write_text(script)
        path.chmod(0o755)
    assert read_smi(str(path)) == expected
    path.write_text("#!/bin/sh\nsleep 60\n")
    path.chmod(0o644)
    assert read_smi(str(path)) == "nvidia-smi cannot be started: Permission denied"


def test_a_wedged_nvidia_smi_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.inspect.driver.SMI_TIMEOUT", 0.2)
    path = write(tmp_path, "nvidia-smi", "#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    assert read_smi(str(path)) == "nvidia-smi did not answer within 0.2 s"
