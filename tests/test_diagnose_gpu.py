"""Whether drivers and binaries fit the GPU: real cases' facts, on described machines, with the real matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.gpu import check_gpus
from stackfix.diagnose.situation import View
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs, UnreadableFatbin
from stackfix.inspect.machine_records import Jetson
from tests.diagnose_machines import found, gpu, install_driver, load_module, running, undecided
from tests.diagnose_world import World, lib

H100 = gpu("NVIDIA H100 PCIe", "9.0")
GTX1050 = gpu("NVIDIA GeForce GTX 1050", "6.1")
RTX5090 = gpu("NVIDIA GeForce RTX 5090", "12.0")
COMPAT = "/usr/local/cuda/compat"
FLASH = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def torch(world: World, version: str, *requires: str) -> World:
    return world.wheel("torch", version, {
        "torch/lib/libc10.so": lib(), "torch/lib/libc10_cuda.so": lib(needs=("libcudart.so.12",)),
        "torch/lib/libtorch_cuda.so": lib(needs=("libc10_cuda.so",), runpath="$ORIGIN"),
    }, requires=requires)


def driven(folder: Path, driver: str, version: str, *requires: str) -> World:
    world = torch(World(folder), version, *requires)
    install_driver(world, driver)
    load_module(world, driver)
    return world


def archs(**files: str) -> Callable[[str], GpuArchs | UnreadableFatbin | None]:
    """What is read of GPU code: "80 90 +90" by the beginning of the file name; "+" is PTX, "?" cannot be read."""
    def read(path: str) -> GpuArchs | UnreadableFatbin | None:
        text = next((text for name, text in files.items() if path.rpartition("/")[2].startswith(name)), None)
        if text is None or text == "?":
            return UnreadableFatbin(path=path, reason="truncated") if text else None
        cubins = tuple(f"sm_{each}" for each in text.split() if each[0] != "+")
        ptx = tuple(f"compute_{each[1:]}" for each in text.split() if each[0] == "+")
        return GpuArchs(path=path, cubins=cubins, ptx=ptx, others=(), empty=0,
                        sets=(CodeSet(archs=(*cubins, *ptx), fatbins=40),))
    return read


def reading(view: View, **files: str) -> View:
    return replace(view, archs=archs(**files))


def never(path: str) -> GpuArchs | None:
    raise AssertionError(path)


# --- SF901 ---

def test_driver_470_under_cuda_12(tmp_path: Path) -> None:
    """torch 2.1.0 for CUDA 12.1 on driver 470.86: `found version 11040`."""
    view = running(driven(tmp_path, "470.86", "2.1.0", "nvidia-cuda-runtime-cu12==12.1.105").view(), H100)
    finding = found(check_gpus(view))["SF901"]
    assert (finding.severity, finding.kind) == ("error", "driver-too-old")
    assert finding.culprit.package == "NVIDIA driver 470.86"
    assert finding.requester is not None
    assert finding.requester.package == "torch 2.1.0"
    assert finding.error == ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).")
    assert "525.60.13" in finding.why
    assert "upgrade the driver to 525.60.13 or newer" in finding.cure
    assert "stackfix lock --torch 2.1.0 --cuda 11.8 --driver 470.86" in finding.cure
    assert not finding.repairable


@pytest.mark.parametrize(("driver", "version", "severity"), [
    ("470.86", "2.1.0+cu118", None),            # minor-version compatibility: 11.8 on a driver of 11.4 ...
    ("525.60.12", "2.1.0+cu121", "error"), ("525.60.13", "2.1.0+cu121", "note"), ("530.30.02", "2.1.0+cu121", None),
    ("570.26", "2.8.0+cu128", None), ("575.57.08", "2.9.1+cu130", "error"), ("580.65.06", "2.9.1+cu130", None),
    ("470.86", "2.1.0+cpu", None),
])
def test_drivers_and_cuda(tmp_path: Path, driver: str, version: str, severity: str | None) -> None:
    view = running(driven(tmp_path, driver, version).view(), H100)
    finding = found(check_gpus(reading(view, libtorch_cuda="90"))).get("SF901")
    if (driver, version) == ("470.86", "2.1.0+cu118"):
        assert finding is not None
        assert finding.severity == "note"       # ... and PTX of 11.8 is refused
        assert "11.4" in finding.summary
    else:
        assert (finding.severity if finding else None) == severity


def test_forward_compatibility_counts_as_the_driver(tmp_path: Path) -> None:
    world = driven(tmp_path, "470.86", "2.3.1+cu121").environ(LD_LIBRARY_PATH=COMPAT)
    install_driver(world, "530.30.02", COMPAT, cached=False)
    assert "SF901" not in found(check_gpus(reading(running(world.view(), H100), libtorch_cuda="90")))


def test_cuda_wheels_without_torch_ask_for_a_driver_too(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cuda-runtime-cu12", "12.4.127")
    load_module(world, "470.86")
    finding = found(check_gpus(running(world.view(), H100)))["SF901"]
    assert finding.requester is not None
    assert finding.requester.package == "nvidia-cuda-runtime-cu12 12.4.127"


def test_without_a_driver_nothing_is_decided(tmp_path: Path) -> None:
    view = replace(torch(World(tmp_path), "2.3.1+cu121").view(), archs=never)
    for each in (view, running(view, nodes=())):
        answers = list(check_gpus(each))
        assert found(answers) == {}
        assert undecided(answers).keys() == {"driver-too-old", "gpu-code"}
    assert list(check_gpus(World(tmp_path / "2").view())) == []


def test_a_cuda_that_nobody_knows_is_undecided(tmp_path: Path) -> None:
    answers = list(check_gpus(running(driven(tmp_path, "900.10", "9.0.0+cu240").view(), H100)))
    assert found(answers) == {}
    assert "24.0" in undecided(answers)["driver-too-old"]


# --- SF902 ---

def test_pascal_was_dropped_in_cu128(tmp_path: Path) -> None:
    """torch 2.8.0+cu128 on a GTX 1050: nothing below sm_70, no PTX."""
    world = driven(tmp_path, "570.86.10", "2.8.0+cu128")
    view = reading(running(world.view(), GTX1050), libtorch_cuda="70 75 80 86 90 100 120")
    finding = found(check_gpus(view))["SF902"]
    assert (finding.severity, finding.level) == ("error", "torch")
    assert finding.culprit.package == "torch 2.8.0+cu128"
    assert finding.culprit.path == f"{world.site}/torch/lib/libtorch_cuda.so"
    assert "no kernel image is available for execution on the device" in (finding.error or "")
    assert "GTX 1050 (6.1)" in finding.summary
    assert any("sm_70, sm_75" in line for line in finding.evidence)
    assert finding.cure[0] == "stackfix lock --torch 2.8.0 --cuda 12.6 --gpu-arch sm_61"


def test_the_matrix_answers_where_the_binary_cannot_be_read(tmp_path: Path) -> None:
    world = driven(tmp_path, "570.86.10", "2.8.0", "nvidia-cuda-runtime-cu12==12.8.90")
    view = running(world.view(), GTX1050)
    for each in (view, replace(view, archs=lambda path: UnreadableFatbin(path=path, reason="truncated"))):
        finding = found(check_gpus(each))["SF902"]
        assert finding.severity == "error"
        assert any("the matrix" in line for line in finding.evidence)
    assert "SF902" not in found(check_gpus(running(world.view(), H100)))


def test_a_build_that_nobody_read_is_undecided(tmp_path: Path) -> None:
    view = running(driven(tmp_path, "570.86.10", "2.9.1+cu129").view(), GTX1050)
    answers = list(check_gpus(view))
    assert "SF902" not in found(answers)
    assert "torch 2.9.1+cu129" in undecided(answers).get("gpu-code", "")


@pytest.mark.parametrize(("code", "capability", "severity"), [
    ("50 60 70 75 80 86 90", "6.1", None), ("50 60 70 75 80 86 90", "8.9", None),
    ("50 60 70 75 80 86 90", "12.0", "error"), ("75 80 86 90 100 120 +120", "12.1", None), ("80 90", "7.5", "error"),
    ("90a", "9.0", None), ("90a", "10.0", "error"),
])
def test_code_and_capability(tmp_path: Path, code: str, capability: str, severity: str | None) -> None:
    view = running(driven(tmp_path, "580.82.07", "2.8.0+cu128").view(), gpu("NVIDIA X", capability))
    finding = found(check_gpus(reading(view, libtorch_cuda=code))).get("SF902")
    assert (finding.severity if finding else None) == severity


def test_ptx_of_a_newer_cuda_is_refused_by_the_driver(tmp_path: Path) -> None:
    view = running(driven(tmp_path, "550.54.15", "2.8.0+cu128").view(), gpu("NVIDIA X", "12.1"))
    finding = [each for each in check_gpus(reading(view, libtorch_cuda="90 +90"))
               if isinstance(each, Finding) and each.code == "SF901" and each.severity == "error"]
    assert len(finding) == 1
    assert "unsupported toolchain" in (finding[0].error or "")
    newer = running(driven(tmp_path / "2", "575.57.08", "2.8.0+cu128").view(), gpu("NVIDIA X", "12.1"))
    assert found(check_gpus(reading(newer, libtorch_cuda="90 +90"))) == {}


def test_one_gpu_of_two_can_be_used(tmp_path: Path) -> None:
    view = running(driven(tmp_path, "575.57.08", "2.8.0+cu128").view(), GTX1050, H100)
    finding = found(check_gpus(reading(view, libtorch_cuda="70 75 80 86 90 100 120")))["SF902"]
    assert finding.severity == "warning"
    assert "H100" not in finding.summary


def flash(folder: Path, code: Mapping[str, str], version: str = "2.8.3") -> View:
    world = driven(folder, "575.57.08", "2.9.0+cu128")
    world.wheel("flash-attn", version, {FLASH: lib(needs=("libc10_cuda.so",), runpath="$ORIGIN/torch/lib")})
    world.library("/usr/lib/x86_64-linux-gnu/libcudart.so.12", lib())
    world.opens(f"{world.site}/{FLASH}", project="flash-attn", phase="module")
    return reading(running(world.view(), RTX5090), libtorch_cuda="75 80 86 90 100 120", **code)


def test_flash_attn_without_code_for_a_5090(tmp_path: Path) -> None:
    """torch has sm_120, the extension has not: only the attention kernel fails."""
    view = flash(tmp_path, {"flash_attn": "80 90"})
    finding = found(check_gpus(view))["SF902"]
    assert (finding.severity, finding.level) == ("error", "extensions")
    assert finding.culprit.package == "flash-attn 2.8.3"
    assert (finding.culprit.path or "").endswith(FLASH)
    assert finding.error == "CUDA error: no kernel image is available for execution on the device"
    assert "FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS=120" in finding.cure[0]
    assert found(check_gpus(flash(tmp_path / "2", {"flash_attn": "80 90 120"}))) == {}


def test_flash_attn_that_cannot_be_read_is_judged_by_its_release(tmp_path: Path) -> None:
    """A build of one's own may have other code than the release's wheels: a warning."""
    finding = found(check_gpus(flash(tmp_path, {"flash_attn": "?"}, "2.5.8")))["SF902"]
    assert finding.severity == "warning"
    assert "SF902" not in found(check_gpus(flash(tmp_path / "2", {"flash_attn": "?"}, "2.8.3")))


def test_a_package_may_bring_files_for_other_gpus(tmp_path: Path) -> None:
    """vllm has kernels for Hopper alone in a file of their own, and does not use it elsewhere."""
    world = driven(tmp_path, "575.57.08", "2.9.0+cu128")
    world.library("/usr/lib/x86_64-linux-gnu/libcudart.so.12", lib())
    names = ("vllm/_C.abi3.so", "vllm/_vllm_fa3_C.abi3.so")
    world.wheel("vllm", "0.11.0", {name: lib(needs=("libcudart.so.12",)) for name in names})
    for name in names:
        world.opens(name, project="vllm", phase="module")
    view = running(world.view(), gpu())
    code = {"libtorch_cuda": "80", "_C": "80 90", "_vllm": "90a"}
    assert found(check_gpus(reading(view, **code))) == {}
    finding = found(check_gpus(reading(view, **(code | {"_C": "90"}))))["SF902"]
    assert finding.culprit.package == "vllm 0.11.0"


def test_files_are_read_only_where_a_gpu_asks(tmp_path: Path) -> None:
    view = driven(tmp_path, "575.57.08", "2.8.0+cu128").view()
    assert found(check_gpus(replace(running(view, gpu(capability=None)), archs=never))) == {}
    assert found(check_gpus(replace(running(torch(World(tmp_path / "2"), "2.8.0+cpu").view(), H100),
                                    archs=never))) == {}


# --- SF1005, Jetson ---

def test_a_cpu_torch_beside_a_gpu(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.1.0+cpu", {"torch/lib/libc10.so": lib()})
    load_module(world, "550.54.15")
    finding = found(check_gpus(running(world.view(), H100)))["SF1005"]
    assert (finding.severity, finding.level, finding.culprit.package) == ("warning", "torch", "torch 2.1.0+cpu")
    assert finding.cure == ("stackfix lock --torch 2.1.0 --cuda 12.1 --driver 550.54.15",)
    assert found(check_gpus(running(world.view()))) == {}


def test_a_torch_without_a_local_version_is_told_by_its_libraries(tmp_path: Path) -> None:
    """The default index for Arm: torch 2.8.0 is a CPU build there."""
    world = World(tmp_path).wheel("torch", "2.8.0", {"torch/lib/libc10.so": lib()})
    load_module(world, "550.54.15")
    finding = found(check_gpus(running(world.view(), H100)))["SF1005"]
    assert any("libc10_cuda.so" in line for line in finding.evidence)
    world.wheel("torch", "2.8.0", {"torch/lib/libc10.so": lib(), "torch/lib/libc10_cuda.so": lib()})
    world.remove("torch/lib/libc10_cuda.so")        # its RECORD still has it
    assert "SF1005" not in found(check_gpus(running(world.view(), H100)))


@pytest.mark.parametrize(("version", "release", "severity"), [
    ("2.8.0+cu128", "36.3.0", "warning"), ("2.8.0+cu128", None, "warning"), ("2.9.1+cu130", "38.2.0", None),
    ("2.3.0+nv24.5", "36.3.0", None),
])
def test_a_server_wheel_on_a_jetson(tmp_path: Path, version: str, release: str | None, severity: str | None) -> None:
    jetson = Jetson(model="NVIDIA Jetson AGX Orin", release=release, found_via="/etc/nv_tegra_release")
    view = running(torch(World(tmp_path), version).view(), nodes=(), jetson=jetson)
    finding = found(check_gpus(view)).get("SF902")
    assert (finding.severity if finding else None) == severity
