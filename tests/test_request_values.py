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
    check_platform,
    check_python,
)

Check = Callable[[str, str], str]
CHECKS = (check_cuda, check_driver, check_glibc, check_gpu_arch, check_platform, check_python)


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
        (check_platform, "win-64", "known: linux-64, linux-aarch64"), (check_platform, "osx-arm64", "known"),
        (check_platform, "osx-64", "known"), (check_platform, "x86_64", "known"), (check_platform, "../x", "known"),
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
    with pytest.raises(BadInput, match="no rows for this platform yet"):
        check_platform("win-64")
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
