"""Whole machines: this one, and trees that stand for others."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from stackfix.inspect.machine import inspect_machine
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.places import Root
from stackfix.inspect.plain import from_json, to_json
from tests.inspect_trees import link, write


def reasons(machine: Machine) -> dict[str, str]:
    return {each.subject: each.reason for each in machine.undecided}


def survives(machine: Machine) -> bool:
    return from_json(json.loads(json.dumps(to_json(machine))), Machine) == machine


def test_this_machine() -> None:
    machine = inspect_machine(Root(), os.environ)
    assert machine.live
    assert machine.architecture == os.uname().machine
    assert machine.kernel == os.uname().release
    assert machine.libc in ("glibc", "musl")
    assert survives(machine)
    if machine.driver.kernel_module is None:
        assert reasons(machine)["driver"]
    if not machine.driver.gpus:
        assert reasons(machine)["gpus"]


def test_an_empty_tree_decides_nothing(tmp_path: Path) -> None:
    machine = inspect_machine(Root(str(tmp_path)), {})
    assert not machine.live
    assert (machine.architecture, machine.kernel, machine.libc, machine.glibc) == (None, None, None, None)
    assert (machine.driver.libraries, machine.driver.devices, machine.toolkits, machine.cudnn) == ((), (), (), ())
    assert reasons(machine).keys() == {"glibc", "driver", "gpus"}
    assert reasons(machine)["driver"].startswith("a tree has no running kernel")
    assert survives(machine)


def test_nvidia_smi_is_never_asked_about_a_tree(tmp_path: Path) -> None:
    witness = tmp_path / "asked"
    script = write(tmp_path, "bin/nvidia-smi", f"#!/bin/sh\ntouch {witness}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    inspect_machine(Root(str(tmp_path)), {"PATH": "/bin"}, nvidia_smi=str(script))
    assert not witness.exists()
    inspect_machine(Root(), {}, nvidia_smi=None)
    assert not witness.exists()
    inspect_machine(Root(), {}, nvidia_smi=str(script))
    assert witness.exists()


def test_a_driver_of_two_versions(tmp_path: Path) -> None:
    write(tmp_path, "sys/module/nvidia/version", "535.104.05\n")
    write(tmp_path, "lib64/libcuda.so.550.54.15")
    link(tmp_path, "lib64/libcuda.so.1", "libcuda.so.550.54.15")
    write(tmp_path, "proc/driver/nvidia/gpus/0000:41:00.0/information", "Model: NVIDIA L4\n")
    machine = inspect_machine(Root(str(tmp_path)), {})
    assert machine.driver.kernel_module is not None
    assert (machine.driver.kernel_module.version, machine.driver.libraries[0].version) == ("535.104.05", "550.54.15")
    assert reasons(machine).keys() == {"glibc", "compute-capability"}


def test_a_wsl(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
    write(tmp_path, "usr/lib/wsl/lib/libcuda.so.1")
    machine = inspect_machine(Root(str(tmp_path)), {})
    assert machine.wsl is not None
    assert (machine.wsl.version, machine.wsl.library_folder) == (2, "/usr/lib/wsl/lib")
    assert machine.driver.libraries[0].origin == "wsl"


def test_an_image_of_cuda(tmp_path: Path) -> None:
    """nvidia/cuda:12.4.1-runtime: libraries, a compat folder, no driver; the stub would be a -devel image's."""
    write(tmp_path, "etc/os-release", "ID=ubuntu\nVERSION_ID=22.04\n")
    write(tmp_path, "lib64/ld-linux-x86-64.so.2")
    write(tmp_path, "usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12")
    write(tmp_path, "usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    link(tmp_path, "usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
    environ = {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64", "CUDA_VERSION": "12.4.1",
               "NVIDIA_DRIVER_CAPABILITIES": "utility", "NVIDIA_VISIBLE_DEVICES": "all", "HOME": "/home/me"}
    machine = inspect_machine(Root(str(tmp_path)), environ)
    assert machine.architecture == "x86_64"
    assert [(each.version, each.origin) for each in machine.driver.libraries] == [("550.54.15", "compat")]
    assert [each.path for each in machine.toolkits] == ["/usr/local/cuda-12.4"]
    assert [name for name, _ in machine.variables] == [
        "CUDA_VERSION", "LD_LIBRARY_PATH", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(("name", "kept"), [
    ("LD_PRELOAD", True), ("LD_LIBRARY_PATH", True), ("PYTHONNOUSERSITE", True), ("CUDA_VISIBLE_DEVICES", True),
    ("CONDA_PREFIX", True), ("SLURM_JOB_ID", True), ("_LMFILES_", True), ("GLIBC_TUNABLES", True),
    ("CONDA_TOKEN", False), ("NVIDIA_API_KEY", False), ("CONDA_ACCESS_SECRET", False), ("HOME", False), ("PATH", False),
    ("PYTHONSTARTUP", False),
])
def test_variables_that_matter_and_no_secret(tmp_path: Path, name: str, kept: bool) -> None:
    machine = inspect_machine(Root(str(tmp_path)), {name: "x"})
    assert machine.variables == (((name, "x"),) if kept else ())
    assert machine.slurm_job == ("x" if name == "SLURM_JOB_ID" else None)


def test_musl_is_told(tmp_path: Path) -> None:
    write(tmp_path, "lib/ld-musl-x86_64.so.1")
    assert inspect_machine(Root(str(tmp_path)), {}).libc == "musl"


@pytest.mark.parametrize(("files", "word"), [
    ({"etc/nv_tegra_release": "# R36 (release), REVISION: 3.0\n"}, "tree"),
    ({"sys/module/nouveau/x": ""}, "tree"),
])
def test_a_tree_is_told_as_a_tree_whatever_is_in_it(tmp_path: Path, files: dict[str, str], word: str) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    assert word in reasons(inspect_machine(Root(str(tmp_path)), {}))["driver"]
