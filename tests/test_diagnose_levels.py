"""The pyramid of an environment: what it says, and how findings show in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.finding_records import Culprit, Finding, Level
from stackfix.diagnose.levels import describe_levels
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from tests.diagnose_machines import gpu, install_driver, load_module, running
from tests.diagnose_world import World, lib


def pyramid(view: View, *findings: Finding) -> dict[str, Level]:
    return {each.name: each for each in describe_levels(view, findings)}


def finding(code: str, severity: str, level: str) -> Finding:
    return make_finding(code, severity, summary="x", why="x", culprit=Culprit(path="/x"), level=level)


def stack(folder: Path) -> World:
    world = World(folder)
    world.wheel("nvidia-cuda-runtime-cu12", "12.1.105", {"nvidia/cuda_runtime/lib/libcudart.so.12": lib()})
    world.wheel("nvidia-nvjitlink-cu12", "12.1.105").wheel("nvidia-cudnn-cu12", "8.9.2.26")
    world.wheel("torch", "2.3.1", {
        "torch/lib/libc10.so": lib(), "torch/lib/libc10_cuda.so": lib(needs=("libcudart.so.12",))},
        requires=('nvidia-cuda-runtime-cu12==12.1.105 ; platform_system == "Linux"',))
    world.wheel("flash-attn", "2.5.8", {"flash_attn_2_cuda.so": lib()}, requires=("torch", "einops"))
    return world.wheel("transformers", "4.40", requires=("torch>=1.11",)).wheel("numpy", "1.26")


def test_a_whole_stack(tmp_path: Path) -> None:
    world = stack(tmp_path)
    install_driver(world, "550.54.15")
    load_module(world, "550.54.15")
    levels = pyramid(running(world.view(), gpu(), gpu(bus="2"), gpu("NVIDIA T400", None)))
    assert list(levels) == ["driver", "cuda", "cudnn", "torch", "extensions", "environment"]
    assert {name: each.verdict for name, each in levels.items()} == dict.fromkeys(levels, "ok")
    assert levels["driver"].text == ("NVIDIA driver 550.54.15; 2 x NVIDIA A100-SXM4-80GB (compute capability 8.0), "
                                     "NVIDIA T400")
    assert levels["cuda"].text == ("CUDA runtime 12.1.105 (nvidia-cuda-runtime-cu12), nvJitLink 12.1.105 "
                                   "(nvidia-nvjitlink-cu12)")
    assert levels["cudnn"].text == "cuDNN 8.9.2.26 (nvidia-cudnn-cu12)"
    assert levels["torch"].text == "torch 2.3.1 for CUDA 12.1"
    assert levels["extensions"].text == "flash-attn 2.5.8"
    assert levels["environment"].text == ("Python 3.11.2 in /venv; glibc 2.36; libstdc++ up to GLIBCXX_3.4.30; x86_64")


def test_findings_show_the_worst(tmp_path: Path) -> None:
    view = stack(tmp_path).view()
    levels = pyramid(view, finding("SF102", "note", "cuda"), finding("SF101", "error", "cuda"),
                     finding("SF501", "warning", "extensions"), finding("SF1007", "note", "driver"))
    assert (levels["cuda"].verdict, levels["extensions"].verdict) == ("error", "warning")
    assert levels["driver"].verdict == "cannot-tell"        # a note does not hide it
    assert levels["driver"].text.startswith("a tree has no running kernel")
    assert pyramid(view, finding("SF804", "error", "driver"))["driver"].verdict == "error"


def test_an_empty_environment(tmp_path: Path) -> None:
    levels = pyramid(World(tmp_path).view())
    assert {name: each.verdict for name, each in levels.items()} == {
        "driver": "cannot-tell", "cuda": "absent", "cudnn": "absent", "torch": "absent", "extensions": "absent",
        "environment": "ok"}
    assert levels["torch"].text == "torch is not installed"


@pytest.mark.parametrize(("version", "text", "cuda"), [
    ("2.3.1+cu118", "torch 2.3.1+cu118 for CUDA 11.8", "cannot-tell"),
    ("2.3.1+cpu", "torch 2.3.1+cpu for the CPU", "absent"), ("2.3.1+rocm6.0", "torch 2.3.1+rocm6.0", "absent"),
])
def test_variants_of_torch(tmp_path: Path, version: str, text: str, cuda: str) -> None:
    levels = pyramid(World(tmp_path).wheel("torch", version).view())
    assert levels["torch"].text == text
    assert levels["cuda"].verdict == cuda


def test_cuda_inside_torch(tmp_path: Path) -> None:
    """Wheels of the cu118 index carry their own libraries, with hashes in their names."""
    world = World(tmp_path).wheel("torch", "2.3.1+cu118", {
        "torch/lib/libcudart-d0da41ae.so.11.0": lib(), "torch/lib/libcudnn.so.8": lib(),
        "torch/lib/libtorch.so": lib(needs=("libcudart-d0da41ae.so.11.0", "libcudnn.so.8"), runpath="$ORIGIN")})
    levels = pyramid(world.opens("torch/lib/libtorch.so", project="torch").view())
    assert levels["cuda"].text == "CUDA runtime 11.0 in torch 2.3.1+cu118"
    assert levels["cudnn"].text == "cuDNN 8 in torch 2.3.1+cu118"


def test_conda(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True).conda("cuda-cudart", "12.1.105").conda("cudnn", "8.9.2.26")
    info = "lib/python3.11/site-packages/torch-2.3.1.dist-info"
    world.conda("pytorch", "2.3.1", {f"{info}/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.3.1\n",
                                     f"{info}/INSTALLER": "conda\n"}, build="py3.11_cuda12.1_cudnn8.9.2_0")
    levels = pyramid(world.view())
    assert levels["torch"].text == ("torch 2.3.1 for CUDA 12.1 (conda pytorch 2.3.1 py3.11_cuda12.1_cudnn8.9.2_0)")
    assert levels["cuda"].text == "CUDA runtime 12.1.105 (conda cuda-cudart)"
    assert levels["cudnn"].text == "cuDNN 8.9.2.26 (conda cudnn)"
