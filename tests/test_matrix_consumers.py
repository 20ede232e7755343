"""Which releases of other frameworks can use the CUDA libraries of a torch build."""

from __future__ import annotations

import pytest
from packaging.version import Version

from stackfix.matrix.consumers import between, consumer_misfit, row_of
from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import builds
from stackfix.matrix.records import TorchBuild

MATRIX = load_matrix()


def build(version: str, cuda: str, platform: str = "linux-64") -> TorchBuild:
    return next(each for each in builds(MATRIX, platform=platform) if (each.version, each.cuda) == (version, cuda))


@pytest.mark.parametrize(("package", "version", "torch", "cuda", "reason"), [
    # TensorFlow says "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0"
    ("tensorflow", "2.18.0", "2.6.0", "12.4", "was compiled with cuDNN 9.3.0.75 and needs"),
    ("tensorflow", "2.18.0", "2.7.1", "12.6", None),
    ("tensorflow", "2.17.0", "2.3.1", "12.1", None),            # 8.9.2 where 8.9.7 was compiled with: the same minor
    ("tensorflow", "2.18.0", "2.15.0", "13.2", "is built for CUDA 12, torch 2.15.0 for CUDA 13.2"),
    ("jax-cuda12-plugin", "0.4.33", "2.3.1", "12.1", "requires nvidia-cudnn-cu12<10.0,>=9.1, torch 2.3.1 pins"),
    ("jax-cuda12-plugin", "0.4.33", "2.5.1", "12.4", None),
    ("jax-cuda12-plugin", "0.6.0", "2.5.1", "12.4", "requires nvidia-cudnn-cu12<10.0,>=9.8, torch 2.5.1 pins 9.1.0.70"),
    ("onnxruntime-gpu", "1.26.0", "2.8.0", "12.8", None),
    ("onnxruntime-gpu", "1.27.0", "2.8.0", "12.8", "is built for CUDA 13, torch 2.8.0 for CUDA 12.8"),
    ("onnxruntime-gpu", "1.18.1", "2.3.1", "12.1", "is built for CUDA 11, torch 2.3.1 for CUDA 12.1"),
    ("ctranslate2", "4.4.0", "2.6.0", "12.4", "requires nvidia-cudnn-cu12<9,>=8, torch 2.6.0 pins 9.1.0.70"),
    ("ctranslate2", "4.8.5", "2.3.1", "12.1", None),            # uses no cuDNN
    ("cupy-cuda12x", "13.0.0", "2.11.0", "13.0", "is built for CUDA 12, torch 2.11.0 for CUDA 13.0"),
    ("bitsandbytes", "0.50.0", "2.8.0", "12.9", "has libraries for CUDA 11.8, 12.1"),
    ("bitsandbytes", "0.49.2", "2.8.0", "12.9", None),
    ("numpy", "2.3.0", "2.8.0", "12.8", None),
])
def test_a_release_beside_a_build(package: str, version: str, torch: str, cuda: str, reason: str | None) -> None:
    found = consumer_misfit(MATRIX, package, version, build(torch, cuda))
    assert (found is None) is (reason is None), found
    assert found is None or found[0].startswith(reason or "-"), found


@pytest.mark.parametrize(("package", "version", "torch", "cuda", "reason"), [
    ("tensorflow", "2.21.0", "2.10.0", "13.0", None),           # whose Windows wheels are for the CPU
    ("onnxruntime-gpu", "1.27.0", "2.8.0", "12.8", "is built for CUDA 13, torch 2.8.0 for CUDA 12.8"),
    ("onnxruntime-gpu", "1.26.0", "2.8.0", "12.8", None),
    ("bitsandbytes", "0.43.1", "2.5.1", "12.4", "has libraries for CUDA 11.7, 11.8, 12.0, 12.1, 12.2, 12.3, torch"),
    ("bitsandbytes", "0.49.2", "2.8.0", "12.9", None),
])
def test_a_release_beside_a_build_for_windows(
    package: str, version: str, torch: str, cuda: str, reason: str | None
) -> None:
    found = consumer_misfit(MATRIX, package, version, build(torch, cuda, "win-64"))
    assert (found is None) is (reason is None), found
    assert found is None or found[0].startswith(reason or "-"), found


def test_bitsandbytes_0_43_1_has_a_library_more_on_linux() -> None:
    assert consumer_misfit(MATRIX, "bitsandbytes", "0.43.1", build("2.5.1", "12.4")) is None


def test_a_cpu_build_has_no_cuda_to_share() -> None:
    assert consumer_misfit(MATRIX, "tensorflow", "2.18.0", build("2.6.0", "cpu", "linux-aarch64")) is None


def test_a_release_that_nobody_read_is_as_the_one_below_and_says_so() -> None:
    found = consumer_misfit(MATRIX, "onnxruntime-gpu", "1.99.0", build("2.8.0", "12.8"))
    assert found is not None
    assert found[0].endswith("(as read of onnxruntime-gpu 1.27 to 1.31)")
    older = consumer_misfit(MATRIX, "onnxruntime-gpu", "1.4.0", build("2.8.0", "12.8"))
    assert older is not None
    assert "as read of onnxruntime-gpu 1.8 to 1.18" in older[0]


def test_what_is_no_version_is_not_judged() -> None:
    assert consumer_misfit(MATRIX, "tensorflow", "nightly", build("2.6.0", "12.4")) is None


@pytest.mark.parametrize(("version", "inside"), [
    ("1.27", True), ("1.31.1", True), ("1.31.1.post1", True), ("1.32", False), ("1.26.9", False)])
def test_both_ends_belong_to_a_row(version: str, inside: object) -> None:
    assert between(Version(version), "1.27", "1.31") is inside


def test_rows_of_one_project_do_not_overlap() -> None:
    for project in {each.project for each in MATRIX.frameworks.frameworks}:
        rows = [each for each in MATRIX.frameworks.frameworks if each.project == project]
        for row in rows:
            assert row_of(rows, Version(row.first)) is row
            assert row_of(rows, Version(row.last)) is row
