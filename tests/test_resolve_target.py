"""Targets: the markers' environment, and which wheel files fit in which order, beside packaging's own answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag, parse_tag
from packaging.utils import parse_wheel_filename

from stackfix.errors import BadInput
from stackfix.resolve.records import Target
from stackfix.resolve.target import TargetView, supported_tags

VIEW = TargetView(Target(python="3.11", platform="linux-64", glibc="2.28"))
ARM = TargetView(Target(python="3.12", platform="linux-aarch64", glibc="2.28"))


@pytest.mark.parametrize(("line", "holds"), [
    ("x ; python_full_version >= '3.11.1'", False), ("x ; python_full_version == '3.11.0'", True),
    ("x ; platform_system == 'Linux' and platform_machine == 'x86_64'", True),
    ("x ; platform_machine == 'aarch64'", False), ("x ; sys_platform == 'darwin'", False),
    ("x ; platform_python_implementation == 'CPython'", True), ("x ; implementation_name == 'pypy'", False),
    ("x ; extra == 'big'", False), ("x", True), ("x ; os_name == 'posix'", True),
    ("x ; platform_release >= '1'", False), ("x ; python_version < '3.9' or extra == 'big'", False),
])
def test_markers_are_those_of_the_target(line: str, holds: bool) -> None:
    assert VIEW.applies(line, None) is holds


@pytest.mark.parametrize(("line", "extra", "holds"), [
    ("x ; extra == 'Big_One'", "big-one", True), ('x ; extra == "big"', "small", False),
    ("x ; python_version < '3.9' or extra == 'big'", "big", True),
    ("x ; python_version > '3.9' and extra == 'big'", "big", True),
    ("x ; python_version < '3.9' and extra == 'big'", "big", False),
    ("x ; (python_version > '3.9' or os_name == 'nt') and extra == 'big'", "big", True), ("x", "big", True),
])
def test_markers_under_an_extra(line: str, extra: str, holds: bool) -> None:
    assert VIEW.applies(line, extra) is holds


def test_nothing_of_the_running_machine_is_in_the_environment() -> None:
    assert VIEW.environment["platform_release"] == VIEW.environment["platform_version"] == ""
    assert VIEW.environment["python_full_version"] == "3.11.0"


BEST_FIRST = (
    "torch-2.10.0-3-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.10.0-1-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.10.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "torch-2.10.0-cp311-cp311-manylinux1_x86_64.whl",
    "torch-2.10.0-cp311-cp311-linux_x86_64.whl",
    "torch-2.10.0-cp38-abi3-manylinux_2_17_x86_64.whl",
    "torch-2.10.0-py2.py3-none-any.whl",
)
MISFITS = (
    "torch-2.10.0-cp311-cp311-manylinux_2_31_x86_64.whl", "torch-2.10.0-cp313-cp313t-manylinux_2_17_x86_64.whl",
    "torch-2.10.0-cp311-cp311-manylinux_2_17_aarch64.whl", "torch-2.10.0-cp312-cp312-manylinux_2_17_x86_64.whl",
    "torch-2.10.0-cp311-cp311-musllinux_1_2_x86_64.whl", "torch-2.10.0-cp312-abi3-manylinux_2_17_x86_64.whl",
    "torch-2.10.0-pp310-pypy310_pp73-manylinux_2_17_x86_64.whl", "torch-2.10.0-py2-none-any.whl", "x.whl",
    "a-b-c-d-e-f-g.whl", "-.whl", "torch-2.10.0-cp311-cp311-win_amd64.whl",
)


def test_files_in_the_order_of_an_installer() -> None:
    worst_first = BEST_FIRST[::-1]
    ranked = sorted(worst_first, key=lambda name: VIEW.rank(name) or (10**6, 0, ""))
    assert tuple(ranked) == BEST_FIRST
    assert [name for name in MISFITS if VIEW.rank(name) is not None] == []


def test_other_architecture() -> None:
    assert ARM.rank("torch-2.10.0-cp312-cp312-manylinux2014_aarch64.whl") is not None
    assert ARM.rank("torch-2.10.0-cp312-cp312-manylinux2014_x86_64.whl") is None
    assert ARM.rank("torch-2.10.0-cp312-cp312-manylinux_2_5_aarch64.whl") is None


INTERPRETERS = ("cp311", "cp310", "cp38", "cp312", "py3", "py2.py3", "py311", "pp310")
ABIS = ("cp311", "abi3", "none", "cp311t", "cp38.abi3")
PLATFORMS = (
    "any", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linux_x86_64", "manylinux_2_34_x86_64", "win_amd64", "manylinux_2_17_aarch64",
    "manylinux_2_5_x86_64.manylinux1_x86_64",
)


@given(st.sampled_from(INTERPRETERS), st.sampled_from(ABIS), st.sampled_from(PLATFORMS))
def test_rank_agrees_with_packaging(interpreter: str, abi: str, platform: str) -> None:
    name = f"x-1.0-{interpreter}-{abi}-{platform}.whl"
    supported = [Tag(*tag.split("-")) for tag in supported_tags(VIEW.target)]
    places = [supported.index(tag) for tag in parse_wheel_filename(name)[3] if tag in supported]
    rank = VIEW.rank(name)
    assert (rank[0] if rank else None) == min(places, default=None)


def test_the_set_of_tags_is_that_of_packaging_for_such_a_machine() -> None:
    tags = set(supported_tags(VIEW.target))
    assert {str(tag) for tag in parse_tag("cp311-cp311-manylinux_2_28_x86_64")} <= tags
    assert not any("cp311t" in tag or "musllinux" in tag or "win" in tag for tag in tags)
    assert len(tags) == len(list(supported_tags(VIEW.target)))


@pytest.mark.parametrize(("target", "thing"), [
    (Target(python="3.11", platform="win-arm64", glibc="2.28"), "--platform win-arm64"),
    (Target(python="3.11", platform="osx-arm64", glibc="2.28", macos="10.15"), "--macos 10.15"),
    (Target(python="3.11", platform="osx-arm64", glibc="2.28", macos="14"), "--macos 14"),
    (Target(python="3.11", platform="osx-arm64", glibc="2.28", macos="14.0.post1"), "--macos 14.0.post1"),
    (Target(python="3.11", platform="osx-arm64", glibc="2.28", macos="x"), "--macos x"),
    (Target(python="3", platform="linux-64", glibc="2.28"), "--python 3"),
    (Target(python="3.x", platform="linux-64", glibc="2.28"), "--python 3.x"),
    (Target(python="3.11", platform="linux-64", glibc="musl"), "--glibc musl"),
    (Target(python="3.11", platform="linux-64", glibc="3.1"), "--glibc 3.1"),
])
def test_bad_target_is_one_clear_error(target: Target, thing: str) -> None:
    with pytest.raises(BadInput) as caught:
        TargetView(target).rank("x-1.0-py3-none-any.whl")
    assert caught.value.thing == thing


def test_requires_python_that_cannot_be_read_limits_nothing() -> None:
    assert VIEW.takes_python(">=3.8,<3.12")
    assert not VIEW.takes_python(">=3.12")
    assert VIEW.takes_python(">=3.6.*, what")
    assert VIEW.takes_python(None)
