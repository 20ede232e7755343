"""Torch builds of channels are read off their real records, and what contradicts itself is no build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.conda.bounds import lower_bound, parse_line
from stackfix.conda.builds import as_torch_build, torch_builds, unread_builds
from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import flash_attn_wheels_for
from tests.conda_channels import bundled_channels
from tests.conda_shelf import record, shelf

CASES = {
    # file name: CUDA, cuDNN, linked in, new C++ ABI, Python
    "linux-64/pytorch-1.13.0-cuda112py310he33e0d6_200.conda": ("11.2", "8.4.1.50", False, True, "3.10"),
    "linux-64/pytorch-2.0.0-cuda118py39h06e0762_304.conda": ("11.8", "8.8.0.121", False, True, "3.9"),
    "linux-64/pytorch-2.1.0-cuda120py311h513d03c_301.conda": ("12.0", "8.8.0.121", False, True, "3.11"),
    "linux-64/pytorch-2.3.1-cuda120_py311hf6aebf0_300.conda": ("12.0", "8.9.7.29", False, True, "3.11"),
    "linux-64/pytorch-2.4.1-cpu_generic_py311h71636e0_0.conda": ("cpu", None, False, True, "3.11"),
    "linux-64/pytorch-2.5.1-cuda126_mkl_py312_hdbe889e_310.conda": ("12.6", "9.3.0.75", False, True, "3.12"),
    "linux-64/pytorch-2.5.1-cuda126_py313hae2543e_306.conda": ("12.6", "9.3.0.75", False, True, "3.13"),
    "linux-64/pytorch-2.10.0-cuda130_mkl_py313_h06a2bf6_301.conda": ("13.0", "9.18.0.77", False, True, "3.13"),
    "linux-64/pytorch-2.12.0-cpu_mkl_py314_h94e416f_100.conda": ("cpu", None, False, True, "3.14"),
    "linux-aarch64/pytorch-2.5.1-cuda126_generic_py311_h4601b60_212.conda": ("12.6", "9.3.0.75", False, True, "3.11"),
    "linux-64/pytorch-1.7.1-py3.8_cuda11.0.221_cudnn8.0.5_0.tar.bz2": ("11.0", "8.0.5", True, False, "3.8"),
    "linux-64/pytorch-1.13.1-py3.10_cuda11.7_cudnn8.5.0_0.tar.bz2": ("11.7", "8.5.0", True, False, "3.10"),
    "linux-64/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2": ("12.1", "8.9.2", True, False, "3.11"),
    "linux-64/pytorch-2.5.1-py3.12_cpu_0.tar.bz2": ("cpu", None, False, False, "3.12"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_real_record_tells_its_build(name: str) -> None:
    (torch,) = torch_builds([shelf()[name]])
    assert (torch.cuda, torch.cudnn, torch.cudnn_linked, torch.cxx11_abi, torch.python) == CASES[name]
    assert torch.record.file_name in torch.source


def test_every_torch_record_of_the_shelf_is_read_newest_first() -> None:
    builds = torch_builds(shelf().values())
    assert len(builds) == sum(one.name == "pytorch" for one in shelf().values())
    assert [torch.record.version for torch in builds][:3] == ["2.12.0", "2.12.0", "2.12.0"]
    assert builds[-1].record.version == "1.7.1"
    assert unread_builds(shelf().values()) == ()


@pytest.mark.parametrize(
    ("build", "depends", "reason"),
    [
        ("cuda120_py311hf6aebf0_300", ("cuda-version >=12.6,<13",), "says CUDA 12.0, and it depends on cuda-version"),
        ("py3.11_cuda12.1_cudnn8.9.2_0", ("pytorch-cuda >=11.8,<11.9",), "depends on pytorch-cuda >=11.8,<11.9"),
        ("cpu_mkl_py311hf6aebf0_100", ("cuda-version >=12.6,<13",), "names no CUDA, and it depends on one"),
        ("cpu_mkl_py311hf6aebf0_100", ("__cuda",), "names no CUDA, and it depends on one"),
        ("cuda120_py311hf6aebf0_300", ("python_abi 3.12.*",), "says Python 3.11, and its dependencies 3.12"),
        ("0", (), "has none of the forms that are known"),
        ("cuda126_mkl_py313_h0123456_300", ("cuda-version >=12.6,<13", "python_abi 3.13.* *_cp313t"), "free-threaded"),
    ],
)
def test_a_record_that_contradicts_itself_is_no_build(build: str, depends: tuple[str, ...], reason: str) -> None:
    odd = record("pytorch", "2.3.1", build, depends=depends)
    assert torch_builds([odd]) == ()
    (unread,) = unread_builds([odd])
    assert reason in unread.reason
    assert unread.record is odd


def test_a_version_that_the_index_cannot_have_is_no_build() -> None:
    (unread,) = unread_builds([record("pytorch", "2.3_1", "cpu_py311hf6aebf0_0")])
    assert "2.3_1" in unread.reason


def test_a_build_of_anaconda_defaults_is_read_as_well() -> None:
    (torch,) = torch_builds([record("pytorch", "2.3.0", "gpu_cuda118py311hda6c2a6_0")])
    assert (torch.cuda, torch.cxx11_abi, torch.python) == ("11.8", True, "3.11")


def test_flash_attn_wheels_are_those_of_the_builds_own_abi() -> None:
    matrix = load_matrix()
    for name, flag in (("pytorch-2.3.1-cuda120_py311hf6aebf0_300.conda", "TRUE"),
                       ("pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2", "FALSE")):
        (torch,) = torch_builds([shelf()[f"linux-64/{name}"]])
        wheels = flash_attn_wheels_for(matrix, as_torch_build(torch, matrix), "3.11", "linux-64")
        assert wheels
        assert all(f"torch2.3cxx11abi{flag}-cp311" in wheel.file for wheel in wheels)


def test_a_build_as_a_row_of_the_matrix() -> None:
    matrix = load_matrix()
    (torch,) = torch_builds([shelf()["linux-64/pytorch-2.3.1-cuda120_py311hf6aebf0_300.conda"]])
    row = as_torch_build(torch, matrix)
    assert (row.version, row.platform, row.cuda, row.cudnn, row.nccl, row.glibc, row.toolkit) == (
        "2.3.1", "linux-64", "12.0", "8.9.7.29", "2.21.5.1", "2.17", "12.0.0")
    assert (row.requires, row.index) == ((), torch.record.channel)
    odd = replace(torch, record=replace(torch.record, depends=("libcublas >=12.0.9.9",)))
    assert as_torch_build(odd, matrix).toolkit is None


@pytest.mark.parametrize(
    ("text", "bound"),
    [(">=8.9.7.29,<9.0a0", "8.9.7.29"), ("12.1.*", "12.1"), ("==2.3.1", "2.3.1"), ("=2.3", "2.3"),
     ("3.4.*|3.5.*", None), ("<9", None), ("*", None), ("!=1.5", None), ("2.3.1", "2.3.1")],
)
def test_lower_bounds(text: str, bound: str | None) -> None:
    assert lower_bound(text) == bound


def test_a_line_keeps_its_build() -> None:
    line = parse_line("libtorch 2.10.0 cuda130_mkl_hfedd1fc_301")
    assert (line.name, line.version, line.build) == ("libtorch", "2.10.0", "cuda130_mkl_hfedd1fc_301")
    assert parse_line("__cuda").version == "*"


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_every_torch_build_of_the_bundled_records_is_read(platform: str, tmp_path: Path) -> None:
    channels = bundled_channels(tmp_path, "conda-forge", "pytorch")
    records = channels.records(channels.channels, platform, "pytorch")
    assert len(records) > 20
    assert unread_builds(records) == ()
    for torch in torch_builds(records):
        assert (torch.cuda == "cpu") or torch.cudnn is not None
        assert torch.cxx11_abi is (not torch.record.build.startswith("py"))
