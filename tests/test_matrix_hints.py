"""What is asked for first: the likely torch's own libraries, and no project twice."""

from __future__ import annotations

import pytest

from stackfix.matrix.hints import follow, torch_needs
from stackfix.matrix.load import load_matrix

MATRIX = load_matrix()


@pytest.mark.parametrize(("torch", "cuda", "expected", "left_out"), [
    ("==2.3.1", None, "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), ("==2.3.*", "12.1", "nvidia-cublas-cu12", "mkl"),
    (None, None, "nvidia-nvjitlink", "nvidia-cublas-cu12"), (None, None, "nvidia-cuda-runtime", "nvidia-npp"),
])
def test_the_libraries_of_the_likely_torch(torch: str | None, cuda: str | None, expected: str, left_out: str) -> None:
    found = torch_needs(MATRIX, torch=torch, cuda=cuda, platforms=("linux-64",))
    assert expected in found
    assert left_out not in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("torch", "platform"), [("==99.1", "linux-64"), (">=2.3,<2.4", "linux-64"), (None, "osx-64")])
def test_what_is_not_understood_hints_at_nothing(torch: str | None, platform: str) -> None:
    assert torch_needs(MATRIX, torch=torch, cuda=None, platforms=(platform,)) == ()


@pytest.mark.parametrize("platform", ["win-64", "osx-arm64", "linux-aarch64"])
def test_a_build_for_the_cpu_needs_no_libraries_of_another_platform(platform: str) -> None:
    found = torch_needs(MATRIX, torch="==2.3.1", cuda=None, platforms=(platform,))
    assert {"sympy", "jinja2"} <= set(found)
    assert not [name for name in found if name.startswith(("nvidia", "cuda", "triton"))]
    assert ("mkl" in found) == (platform == "win-64")


def test_closures_are_followed_once() -> None:
    assert follow({"a": ("b", "c"), "b": ("a", "d")}, ("a", "x")) == ("a", "b", "d", "c", "x")
