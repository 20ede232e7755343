"""Public reports on drivers and GPUs: what cannot happen without the hardware is fed as the machine's files state it.

Trees stand for the machines: /proc of NVIDIA's driver, its libraries, /dev, and what nvidia-smi prints there. GPU code
lies in the files as the compiler puts it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.situation import View
from stackfix.inspect.driver import parse_smi
from stackfix.inspect.fatbin import read_gpu_archs
from stackfix.inspect.machine_driver import merged, read_gpus
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.report.check_json import check_document
from tests.case_worlds import (
    CHECK_NEW,
    STATE,
    TAG,
    Judged,
    install_nvidia,
    install_torch,
    is_clean,
    judge,
    linked,
    set_device,
)
from tests.cli_world import Say
from tests.diagnose_machines import DOCKER, NODES, install_driver, load_module, running
from tests.diagnose_world import World, lib
from tests.inspect_trees import record_hash
from tests.test_inspect_fatbin import CUBIN, PTX, entry, fatbin

BUS = "0000:01:00.0"


def put_gpu(world: World, name: str, driver: str, *, libraries: bool = True) -> World:
    """A GPU and the driver that runs it, as the kernel module tells of them."""
    load_module(world, driver)
    if libraries:
        install_driver(world, driver)
    return world.write(f"/proc/driver/nvidia/gpus/{BUS}/information",
                       f"Model: \t\t {name}\nIRQ:   \t\t 131\nGPU UUID: \t GPU-6f1c7d8e-0000-0000-0000-000000000001\n"
                       f"Bus Location: \t {BUS}\nDevice Minor: \t 0\n")


def smi(name: str, capability: str, mig: str = "[N/A]") -> str:
    """A line of `nvidia-smi --query-gpu=pci.bus_id,uuid,compute_cap,mig.mode.current,name --format=csv,noheader`."""
    return f"0000{BUS}, GPU-6f1c7d8e-0000-0000-0000-000000000001, {capability}, {mig}, {name}\n"


def machine(world: World, said: str, *, nodes: Sequence[str] = NODES, **facts: Any) -> View:
    """The tree as if it is the running machine, and nvidia-smi says this."""
    root = Root(str(world.folder))
    gpus = merged(tuple(read_gpus(root)), parse_smi(said))
    return replace(running(world.view(load_libraries()), *gpus, nodes=nodes, **facts),
                   archs=lambda path: read_gpu_archs(path, root))


def on_machine(world: World, said: str, *, nodes: Sequence[str] = NODES, **facts: Any) -> Judged:
    """All that is said of that machine."""
    view = machine(world, said, nodes=nodes, **facts)
    diagnosis = diagnose(view)
    document = check_document(diagnosis, view.environment, view.machine, projects=frozenset(), root=None)
    failed = any(each.severity == "error" for each in diagnosis.findings)
    return Judged(status=int(failed), document=json.loads(json.dumps(document)))


def put_code(world: World, path: str, *archs: str) -> World:
    """GPU code in a library: "80" is machine code, "+90" PTX. Its package's RECORD is written anew."""
    code = fatbin(*(entry(PTX, int(each[1:])) if each[0] == "+" else entry(CUBIN, int(each)) for each in archs))
    names = b"\0.shstrtab\0.nv_fatbin\0"
    file = world.host(world.inside(path))
    content = bytearray(file.read_bytes())
    content += bytes(-len(content) % 8)
    at = len(content)
    section = struct.Struct("<IIQQQQIIQQ")
    content += code + names
    content[0x28:0x30] = struct.pack("<Q", len(content))
    content[0x3A:0x40] = struct.pack("<HHH", section.size, 3, 1)
    content += bytes(section.size) + section.pack(1, 3, 0, 0, at + len(code), len(names), 0, 0, 1, 0) + section.pack(
        names.index(b".nv"), 1, 2, at, at, len(code), 0, 0, 8, 0)
    file.write_bytes(content)
    for record in world.host(world.site).glob("*.dist-info/RECORD"):
        rows = [f"{path},{record_hash(bytes(content))},{len(content)}" if row.startswith(f"{path},") else row
                for row in record.read_text().splitlines()]
        record.write_text("".join(f"{row}\n" for row in rows))
    return world


TORCH_CUDA = "torch/lib/libtorch_cuda.so"

# --- lllyasviel/Fooocus#1313: driver 470 under torch for CUDA 12.1 ---


@pytest.mark.parametrize(("driver", "torch", "cuda", "found", "floor", "other"), [
    ("470.86", "2.1.0", "12.1", "11040", "525.60.13", "--torch 2.1.0 --cuda 11.8"),
    ("515.43.04", "2.3.1", "12.1", "11070", "525.60.13", "--torch 2.3.1 --cuda 11.8"),
    ("550.54.15", "2.12.1", "13.0", "12040", "580.65.06", "--cuda 12"),
])
def test_a_driver_older_than_the_cuda_of_torch(driver: str, torch: str, cuda: str, found: str, floor: str, other: str,
                                               tmp_path: Path, say: Say) -> None:
    world = put_gpu(install_torch(World(tmp_path), torch), "NVIDIA GeForce RTX 3050 Laptop GPU", driver)
    world.toolkit("/usr/local/cuda-12.1", "12.1.1")         # makes no difference
    for judged in (judge(say, world), on_machine(world, smi("NVIDIA GeForce RTX 3050 Laptop GPU", "8.6"))):
        assert judged.status == 1
        finding = judged.only("SF901")
        assert (finding["kind"], finding["severity"], finding["level"]) == ("driver-too-old", "error", "driver")
        assert finding["culprit"] == {"path": None, "package": f"NVIDIA driver {driver}", "variable": None}
        assert finding["requester"]["package"] == f"torch {torch}"
        assert finding["symbols"] == []
        assert finding["error"] == ("RuntimeError: The NVIDIA driver on your system is too old "
                                    f"(found version {found}).")
        assert f"CUDA {cuda}" in finding["summary"]
        assert "toolkit on disk makes no difference" in finding["why"]
        assert finding["cure"][0] == f"upgrade the driver to {floor} or newer"
        assert any(other in each and f"--driver {driver}" in each for each in finding["cure"])
        assert not finding["repairable"]


@pytest.mark.parametrize(("driver", "torch"), [
    ("525.60.13", "2.1.0"), ("535.104.05", "2.3.1"), ("580.82.07", "2.12.1"),
])
def test_a_driver_that_is_new_enough(driver: str, torch: str, tmp_path: Path, say: Say) -> None:
    world = put_gpu(install_torch(World(tmp_path), torch), "NVIDIA GeForce RTX 3050 Laptop GPU", driver)
    assert is_clean(say, world)
    assert on_machine(world, smi("NVIDIA GeForce RTX 3050 Laptop GPU", "8.6")).codes == []


# --- bnsreenu/digitalsreeni-image-annotator#57: no code for Pascal in torch 2.8 for CUDA 12.8 ---

CODE_28, CODE_27 = ("70", "75", "80", "86", "90", "100", "120"), ("50", "60", "70", "75", "80", "86", "90")


@pytest.mark.parametrize(("name", "capability", "arch"), [
    ("NVIDIA GeForce GTX 1050", "6.1", "sm_61"), ("NVIDIA GeForce GTX 980", "5.2", "sm_52"),
    ("Tesla P100-PCIE-16GB", "6.0", "sm_60"),
])
def test_an_old_card_under_a_torch_without_its_code(name: str, capability: str, arch: str, tmp_path: Path) -> None:
    world = put_gpu(install_torch(World(tmp_path), "2.8.0", local="+cu128"), name, "550.54.15")
    judged = on_machine(put_code(world, TORCH_CUDA, *CODE_28), smi(name, capability))
    assert (judged.status, judged.codes) == (1, ["SF902"])
    finding = judged.only("SF902")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("gpu-not-supported", "error", "torch")
    assert finding["culprit"] == {"path": world.inside(TORCH_CUDA), "package": "torch 2.8.0+cu128", "variable": None}
    assert finding["error"] == ("torch.AcceleratorError: CUDA error: no kernel image is available for execution on "
                                "the device")
    assert f"{name} ({capability})" in finding["summary"]
    assert "is_available() is true" in finding["why"]
    assert any(", ".join(f"sm_{each}" for each in CODE_28) in each for each in finding["evidence"])
    assert finding["cure"][0] == f"stackfix lock --torch 2.8.0 --cuda 12.6 --gpu-arch {arch}"
    assert not any("driver" in each for each in finding["cure"])
    older = put_gpu(install_torch(World(tmp_path / "older"), "2.7.1"), name, "550.54.15")
    assert on_machine(put_code(older, TORCH_CUDA, *CODE_27), smi(name, capability)).codes == []


def test_a_card_that_the_wheel_has_code_for(tmp_path: Path) -> None:
    world = put_gpu(install_torch(World(tmp_path), "2.8.0", local="+cu128"), "Tesla T4", "570.86.10")
    assert on_machine(put_code(world, TORCH_CUDA, *CODE_28), smi("Tesla T4", "7.5")).codes == []


# --- NVIDIA/nvidia-docker#1515: cuda-compat's libcuda on a GeForce ---

COMPAT = "/usr/local/cuda-11.3/compat"


def with_compat(folder: Path, card: str, *, cached: bool) -> World:
    """A host with a driver of CUDA 11.2; the container's image has the compatibility package of 11.3."""
    world = World(folder).toolkit("/usr/local/cuda-11.3", "11.3.1")
    world.library(f"{COMPAT}/libcuda.so.465.19.01", lib(soname="libcuda.so.1", offers=("cuInit",)))
    world.link(f"{COMPAT}/libcuda.so.1", "libcuda.so.465.19.01")
    if cached:                      # by its name this file comes before all others of ld.so.conf.d
        world.cached(f"{COMPAT}/libcuda.so.1", conf="000_cuda_compat.conf")
    else:
        world.environ(LD_LIBRARY_PATH=COMPAT)
    return put_gpu(world, card, "460.27.04")


@pytest.mark.parametrize(("card", "severity"), [
    ("NVIDIA GeForce RTX 2080 Ti", "error"), ("NVIDIA TITAN Xp", "error"), ("NVIDIA A100-SXM4-40GB", "note"),
])
@pytest.mark.parametrize("cached", [False, True])
def test_forward_compatibility_on_a_card_that_has_none(card: str, severity: str, cached: bool, tmp_path: Path) -> None:
    world = with_compat(tmp_path, card, cached=cached)
    judged = on_machine(world, smi(card, "8.0" if "A100" in card else "7.5"), container=DOCKER)
    assert judged.status == int(severity == "error")
    finding = judged.only("SF804")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("compat-library", severity, "driver")
    assert finding["culprit"]["path"] == finding["winner"] == f"{COMPAT}/libcuda.so.1"
    assert finding["culprit"]["variable"] == (None if cached else "LD_LIBRARY_PATH")
    assert finding["error"] == "Error 804: forward compatibility was attempted on non supported HW"
    assert any("460.27.04" in each for each in finding["evidence"])
    assert any("cuda-compat" in each for each in finding["cure"])
    if cached:
        assert any("000_cuda_compat.conf" in each for each in (*finding["evidence"], *finding["cure"]))
    else:
        assert any("LD_LIBRARY_PATH" in each for each in finding["cure"])
    without = put_gpu(World(tmp_path / "without"), card, "460.27.04")
    assert on_machine(without, smi(card, "7.5"), container=DOCKER).findings == []


# --- facebookresearch/nougat#105: cuDNN 8 opens libcuda.so, and WSL's cache has libcuda.so.1 only ---

WSL = "/usr/lib/wsl/lib"
NO_LIBCUDA = "libcuda.so: cannot open shared object file: No such file or directory"


def on_wsl(world: World) -> World:
    """Windows' own driver: its folder is found for the versioned name."""
    world.write("/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
    world.library(f"{WSL}/libcuda.so.1", lib(soname="libcuda.so.1", offers=("cuInit",)))
    world.link(f"{WSL}/libcuda.so", "libcuda.so.1")
    return world.cached(f"{WSL}/libcuda.so.1", conf="ld.wsl.conf")


@pytest.mark.parametrize(("version", "caller"), [
    ("8.9.2.26", "ops_infer"), ("8.7.0.84", "cnn_infer"), ("8.5.0.96", "cnn_infer"),
])
def test_cudnn_8_opens_the_driver_by_its_bare_name(version: str, caller: str, tmp_path: Path, say: Say) -> None:
    world = World(tmp_path)
    if version == "8.9.2.26":
        install_torch(world, "2.1.2")
    else:                           # torch 1.13 and 2.0 have them; their front is enough here
        install_nvidia(world, "nvidia-cudnn-cu11", version)
        world.wheel("nougat-ocr", "0.1.17", linked({f"nougat/_ext.{TAG}": lib(
            needs=("libcudnn.so.8",), runpath="$ORIGIN/../nvidia/cudnn/lib")}))
    judged = judge(say, on_wsl(world))
    finding = judged.only("SF802")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("missing-unversioned-name", "warning", "driver")
    assert judge(say, world, "--fail-on", "warning").status == 1
    link = world.inside("nvidia/cudnn/lib/libcuda.so")
    assert finding["culprit"]["path"] == link
    assert finding["requester"]["path"].endswith(f"nvidia/cudnn/lib/libcudnn_{caller}.so.8")
    assert finding["error"] == NO_LIBCUDA
    assert finding["loser"] == f"{WSL}/libcuda.so.1"
    assert "WSL" in finding["why"]
    assert f"ln -s {WSL}/libcuda.so.1 {link}" in finding["cure"]
    assert any(f"export LD_LIBRARY_PATH={WSL}" in each for each in finding["cure"])
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=WSL))
    world.variables.clear()
    world.link(link, f"{WSL}/libcuda.so.1")
    assert judge(say, world).codes == []


def test_cudnn_9_opens_the_versioned_name(tmp_path: Path, say: Say) -> None:
    assert is_clean(say, on_wsl(install_torch(World(tmp_path), "2.4.1")))


# --- ostris/ai-toolkit#475: torch has code for the RTX 5090, the flash-attn that was built has none ---

FLASH = f"flash_attn_2_cuda.{TAG}"
LINKED = ("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libcudart.so.12", "libc10_cuda.so",
          "libtorch_cuda.so")


def with_flash_attn(folder: Path, card: str, *code: str, version: str = "2.8.3") -> World:
    world = put_gpu(install_torch(World(folder), "2.9.0"), card, "575.57.08")
    put_code(world, TORCH_CUDA, *CODE_28)
    world.wheel("einops", "0.8.0").wheel("flash-attn", version, linked({FLASH: lib(
        needs=LINKED, wants=(STATE, CHECK_NEW, set_device("2.9.0")))}), requires=("torch", "einops"))
    return put_code(world, FLASH, *code)


@pytest.mark.parametrize(("card", "capability", "code", "digits"), [
    ("NVIDIA GeForce RTX 5090", "12.0", ("80", "90"), "120"), ("NVIDIA B200", "10.0", ("80", "90"), "100"),
])
def test_flash_attn_without_code_for_the_card(card: str, capability: str, code: tuple[str, ...], digits: str,
                                              tmp_path: Path) -> None:
    world = with_flash_attn(tmp_path, card, *code)
    world.toolkit("/usr/local/cuda-12.8", "12.8.1")
    judged = on_machine(world, smi(card, capability))
    assert (judged.status, judged.codes) == (1, ["SF902"])
    finding = judged.only("SF902")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("gpu-not-supported", "error", "extensions")
    assert finding["culprit"] == {"path": world.inside(FLASH), "package": "flash-attn 2.8.3", "variable": None}
    assert finding["error"] == "CUDA error: no kernel image is available for execution on the device"
    assert any("sm_80, sm_90" in each for each in finding["evidence"])
    assert f"FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS={digits} " in finding["cure"][0]
    assert "--no-build-isolation" in finding["cure"][0]
    assert "--no-cache-dir" in finding["cure"][0]
    assert "TORCH_CUDA_ARCH_LIST" not in " ".join(finding["cure"])      # has no effect on it
    assert any("scaled_dot_product_attention" in each for each in finding["cure"])
    built = with_flash_attn(tmp_path / "built", card, *code, digits)
    assert on_machine(built, smi(card, capability)).codes == []


def test_a_card_that_it_has_code_for(tmp_path: Path) -> None:
    world = with_flash_attn(tmp_path, "NVIDIA H100 PCIe", "80", "90")
    assert on_machine(world, smi("NVIDIA H100 PCIe", "9.0")).codes == []
