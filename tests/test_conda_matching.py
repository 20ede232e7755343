"""Lines of records come from a channel: whatever they hold, the answer is yes, no, or that it cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.conda.bounds import lower_bound, parse_line
from stackfix.conda.builds import torch_builds, unread_builds
from stackfix.conda.matching import admits, admits_version, newer
from tests.conda_shelf import ODD, record


@pytest.mark.parametrize(("line", "version", "admitted"), [
    ("libcublas >=12.1.0.26,<12.1.3.1", "12.1.3.1", False), ("libcublas >=12.1.0.26,<12.1.3.1", "12.1.0.26", True),
    ("cudnn", "1", True), ("cudnn 8.9.*", "8.9.7.29", True), ("python 3.8.*|3.11.*", "3.11.9", True),
    ("x >>1", "1", None), ("x >1", "no version!", None),
])
def test_versions(line: str, version: str, *, admitted: bool | None) -> None:
    assert admits_version(line, version) is admitted


def test_builds_are_matched_too() -> None:
    torch = record("libtorch", "2.10.0", "cuda130_mkl_hfedd1fc_301", build_number=301)
    assert admits("libtorch 2.10.0 cuda130_mkl_hfedd1fc_301", torch) is True
    assert admits("libtorch 2.10.0 cuda129*", torch) is False
    assert admits("libtorch * cuda130*", torch) is True


def test_order() -> None:
    assert newer("12.10", "12.9") is True
    assert newer("12.9", "12.9.0") is False
    assert newer("?", "1") is None


@given(line=ODD, version=ODD, build=ODD)
def test_hostile_lines_never_raise(line: str, version: str, build: str) -> None:
    assert admits_version(line, version) in {True, False, None}
    assert admits(line, replace(record("x"), version=version, build=build)) in {True, False, None}
    parse_line(line)
    lower_bound(line)


@given(build=ODD, version=ODD, depends=st.lists(ODD, max_size=3).map(tuple))
def test_a_hostile_torch_is_a_build_or_none(build: str, version: str, depends: tuple[str, ...]) -> None:
    odd = record("pytorch", version, build, depends=depends)
    assert len(torch_builds([odd])) + len(unread_builds([odd])) == 1
