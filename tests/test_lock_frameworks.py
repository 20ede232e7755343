"""Several frameworks in one lock: each gets the cuDNN and CUDA that it needs, or the answer says why none can."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from tests.judges.command import Run, stackfix
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded


def lock(folder: Path, *words: str, index: ReplayServer, cache: Path) -> Run:
    return stackfix("lock", *words, "--json", "--python", "3.11", "--no-flash-attn", "--format", "requirements",
                    "--index-url", index.url, "-o", folder, cwd=folder, cache=cache)


def versions(run: Run) -> dict[str, Version]:
    assert run.status == 0, run
    return {package["name"]: Version(package["version"]) for package in run.json["targets"][0]["packages"]}


def test_torch_2_5_takes_a_jax_for_its_cudnn(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    found = versions(lock(tmp_path, "--torch", "2.5", "--with", "jax[cuda12]", index=index, cache=stackfix_cache))
    assert str(found["nvidia-cudnn-cu12"]) == "9.1.0.70"
    assert Version("0.4.33") <= found["jax-cuda12-plugin"] < Version("0.6")     # 0.6 asks for 9.8 or newer


def test_onnx_runtime_of_torchs_cuda_is_taken(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    found = versions(lock(tmp_path, "--torch", "2.6", "--with", "onnxruntime-gpu", index=index, cache=stackfix_cache))
    assert Version("1.19") <= found["onnxruntime-gpu"] < Version("1.27")        # 1.27 is built for CUDA 13


def test_four_frameworks_share_one_cuda(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    found = versions(lock(
        tmp_path, "--torch", "2.8", "--with", "jax[cuda12]", "--with", "tensorflow[and-cuda]", "--with",
        "onnxruntime-gpu[cuda,cudnn]", "--with", "bitsandbytes", index=index, cache=stackfix_cache))
    assert str(found["nvidia-cudnn-cu12"]) == "9.10.2.21"
    assert not [name for name in found if name.startswith("nvidia-") and name.endswith("-cu13")]
    assert found["onnxruntime-gpu"] < Version("1.27")


def test_tensorflow_and_torch_2_6_have_no_cudnn_in_common(
    tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    """Report: "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0"."""
    refused = lock(tmp_path, "--torch", "2.6", "--with", "tensorflow==2.18.*", index=index, cache=stackfix_cache)
    assert refused.status == 1, refused
    error = refused.json["error"]
    assert any("cuDNN 9.3.0.75" in each["text"] and "9.1.0.70" in each["text"] for each in error["causes"])
    assert any("--torch 2.7" in offer["command"] for offer in error["nearest"])


def test_an_open_torch_is_one_that_tensorflow_can_share(
    tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    found = versions(lock(tmp_path, "--with", "tensorflow[and-cuda]", index=index, cache=stackfix_cache))
    assert found["torch"] < Version("2.11")         # from there on the default wheel is for CUDA 13
    assert found["tensorflow"] >= Version("2.20")
