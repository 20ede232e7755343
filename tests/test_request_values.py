"""Single values: what is taken, and what the user is told to write instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.request.names import normalise
from stackfix.request.values import (
    check_cuda,
    check_driver,
    check_glibc,
    check_gpu_arch,
    check_macos,
    check_platform,
    check_python,
)

Check = Callable[[str, str], str]
CHECKS = (check_cuda, check_driver, check_glibc, check_gpu_arch, check_macos, check_platform, check_python)


@pytest.mark.parametrize(
    ("check", "text", "value"),
    [
        (check_cuda, "12.1", "12.1"), (check_cuda, "12", "12"), (check_cuda, "cpu", "cpu"), (check_cuda, "CPU", "cpu"),
        (check_python, "3.11", "3.11"), (check_python, " 3.9 ", "3.9"),
        (check_platform, "linux-64", "linux-64"), (check_platform, "linux-aarch64", "linux-aarch64"),
        (check_driver, "550.54.15", "550.54.15"), (check_driver, "470", "470"), (check_driver, "auto", "auto"),
        (check_gpu_arch, "sm_90", "sm_90"), (check_gpu_arch, "9.0", "sm_90"), (check_gpu_arch, "12.0", "sm_120"),
        (check_gpu_arch, "SM_120", "sm_120"), (check_gpu_arch, "sm_90a", "sm_90a"), (check_gpu_arch, "auto", "auto"),
        (check_glibc, "2.28", "2.28"),
        (check_platform, "win-64", "win-64"), (check_platform, " osx-arm64", "osx-arm64"),
        (check_platform, "linux-64-cpu", "linux-64-cpu"), (check_platform, "osx-arm64-cpu", "osx-arm64-cpu"),
        (check_macos, "14.0", "14.0"), (check_macos, "14", "14.0"), (check_macos, "11.3", "11.3"),
        (check_macos, "26.10", "26.10"),
    ],
)
def test_what_is_taken(check: Check, text: str, value: str) -> None:
    assert check(text, "--option") == value


@pytest.mark.parametrize(
    ("check", "text", "hint"),
    [
        (check_cuda, "cu121", "write `12.1`"), (check_cuda, "12.1.1", "write `12.1`"),
        (check_cuda, "cuda-11.8", "write `11.8`"),
        (check_cuda, "none", "`cpu`"), (check_cuda, "", "`cpu`"), (check_cuda, "012", "`cpu`"),
        (check_python, "311", "write `3.11`"), (check_python, "cp311", "write `3.11`"),
        (check_python, "3.11.4", "write `3.11`"), (check_python, "3.13t", "free-threaded"),
        (check_python, "2.7", "3.11"), (check_python, "3", "3.11"), (check_python, ">=3.9", "3.11"),
        (check_platform, "osx-64", "known: linux-64, linux-aarch64, win-64, osx-arm64, each with -cpu"),
        (check_platform, "osx-64-cpu", "known"), (check_platform, "../x", "known"), (check_platform, "", "known"),
        (check_platform, "linux-64-cpu-cpu", "known"), (check_platform, "linux-64-gpu", "known"),
        (check_platform, "cpu", "known"), (check_platform, "-cpu", "known"), (check_platform, "Linux-64", "`linux-64`"),
        (check_platform, "x86_64", "write `linux-64`"), (check_platform, "windows-cpu", "write `win-64-cpu`"),
        (check_platform, "macOS", "write `osx-arm64`"), (check_platform, "linux-64\x1b[2J", "known"),
        (check_macos, "10.15", "write `11.0`"), (check_macos, "14.5.1", "write `14.5`"), (check_macos, "9", "sw_vers"),
        (check_macos, "Sonoma", "write `14.0`"), (check_macos, "macOS 15", "sw_vers"), (check_macos, "", "sw_vers"),
        (check_macos, "14.05", "sw_vers"), (check_macos, "140", "sw_vers"), (check_macos, "-14", "sw_vers"),
        (check_macos, "\u0661\u0664.0", "sw_vers"), (check_macos, "14.0rc1", "sw_vers"),
        (check_driver, "550.54-1", "nvidia-smi"), (check_driver, "12.1", "nvidia-smi"),
        (check_gpu_arch, "compute_90", "`sm_90`"), (check_gpu_arch, "H100", "`sm_90`"),
        (check_glibc, "3", "ldd"), (check_glibc, "2.28.1", "ldd"),
    ],
)
def test_what_is_refused(check: Check, text: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(text, "--option")
    assert caught.value.thing == f"--option {text}".rstrip()
    assert hint in (caught.value.hint or "")


def test_a_platform_without_rows_is_told_apart_from_nonsense() -> None:
    with pytest.raises(BadInput, match="no rows for this platform"):
        check_platform("win-arm64")
    with pytest.raises(BadInput, match="is not a platform"):
        check_platform("beos")


@pytest.mark.parametrize("check", CHECKS)
@given(text=st.text(max_size=12))
def test_any_text_is_taken_or_refused(check: Check, text: str) -> None:
    try:
        value = check(text, "--option")
    except BadInput:
        return
    assert check(value, "--option") == value
    assert value.split() == [value]


@pytest.mark.parametrize("name", ["flash_attn", "Flash.Attn", "flash-_.attn", "flash-attn"])
def test_a_projects_name(name: str) -> None:
    assert normalise(name) == "flash-attn"
