"""Driver and GPU readers, over trees that stand for a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.inspect.driver import parse_compute_capabilities, read_driver_version, read_gpu_archs

NVRM = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\nGCC version:  12.2.0\n"
)


def write(root: Path, relative: str, text: str) -> None:
    path = root / relative
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_version_comes_from_the_kernel_module(tmp_path: Path) -> None:
    write(tmp_path, "proc/driver/nvidia/version", NVRM)
    assert read_driver_version(tmp_path) == "470.256.02"
    write(tmp_path, "sys/module/nvidia/version", "550.54.15\n")
    assert read_driver_version(tmp_path) == "550.54.15"


def test_no_driver_is_none(tmp_path: Path) -> None:
    assert read_driver_version(tmp_path) is None


def test_open_kernel_module_line_is_read(tmp_path: Path) -> None:
    write(tmp_path, "proc/driver/nvidia/version", NVRM.replace("Kernel Module ", "Open Kernel Module for x86_64"))
    assert read_driver_version(tmp_path) == "470.256.02"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("9.0\n8.6\n9.0\n", ("sm_86", "sm_90")), ("12.0\n", ("sm_120",)), ("[N/A]\n", ()), ("", ())],
)
def test_capabilities_are_distinct_and_sorted(text: str, expected: tuple[str, ...]) -> None:
    assert parse_compute_capabilities(text) == expected


def test_no_nvidia_smi_is_no_gpu(tmp_path: Path) -> None:
    assert read_gpu_archs(str(tmp_path / "nvidia-smi")) == ()


def test_a_failing_nvidia_smi_is_no_gpu(tmp_path: Path) -> None:
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 9.0\nexit 9\n")
    script.chmod(0o755)
    assert read_gpu_archs(str(script)) == ()
