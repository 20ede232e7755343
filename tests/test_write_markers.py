"""What tells some targets of a lockfile from its others, evaluated by packaging."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS
from stackfix.resolve.records import Target
from stackfix.write.markers import environment_marker, marker_of
from tests.judges.pylock import environment_of

PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.14")


def target(python: str, platform: str, variant: str = "") -> Target:
    return Target(python=python, platform=platform, glibc="2.28", variant=variant)


EVERY = tuple(target(*point) for point in product(PYTHONS, PLATFORMS))


def holds(marker: str, one: Target) -> bool:
    return Marker(marker).evaluate(cast("dict[str, str]", environment_of(one.python, one.platform)))


@st.composite
def files(draw: st.DrawFn) -> tuple[list[Target], list[Target]]:
    """The targets of a file, and some of them."""
    every = draw(st.lists(st.sampled_from(EVERY), min_size=1, unique=True))
    return every, draw(st.lists(st.sampled_from(every), min_size=1, unique=True))


@given(files())
def test_a_marker_holds_for_its_targets_alone(drawn: tuple[list[Target], list[Target]]) -> None:
    every, some = drawn
    marker = marker_of(some, every)
    assert (marker is None) == (set(some) == set(every))
    if marker is not None:
        assert [one for one in every if holds(marker, one)] == [one for one in every if one in some]


@given(files())
def test_the_order_that_targets_are_asked_in_is_no_matter(drawn: tuple[list[Target], list[Target]]) -> None:
    every, some = drawn
    assert marker_of(some, every) == marker_of(some[::-1], every[::-1])


@pytest.mark.parametrize(("some", "every", "marker"), [
    ("linux-64", "linux-64 osx-arm64", "sys_platform == 'linux'"),
    ("linux-64", "linux-64 linux-aarch64", "platform_machine == 'x86_64'"),
    ("linux-64", "linux-64 linux-aarch64 win-64", "platform_machine == 'x86_64'"),
    ("linux-64 linux-aarch64", "linux-64 linux-aarch64 win-64", "sys_platform == 'linux'"),
    ("linux-64 win-64", "linux-64 win-64 osx-arm64", "sys_platform != 'darwin'"),
    ("linux-64 osx-arm64", "linux-64 linux-aarch64 win-64 osx-arm64",
     "sys_platform == 'darwin' or platform_machine == 'x86_64'"),
])
def test_platforms(some: str, every: str, marker: str) -> None:
    assert marker_of([target("3.11", one) for one in some.split()],
                     [target("3.11", one) for one in every.split()]) == marker


@pytest.mark.parametrize(("some", "every", "marker"), [
    ("3.11", "3.11 3.12", "python_version == '3.11'"),
    ("3.12", "3.11 3.12", "python_version == '3.12'"),
    ("3.9 3.10", "3.9 3.10 3.11", "python_version < '3.11'"),
    ("3.11 3.12", "3.9 3.10 3.11 3.12", "python_version >= '3.11'"),
    ("3.10 3.11", "3.9 3.10 3.11 3.12", "python_version == '3.10' or python_version == '3.11'"),
    ("3.10 3.11 3.12", "3.9 3.10 3.11 3.12 3.14", "python_version >= '3.10' and python_version < '3.14'"),
    ("3.9 3.11", "3.9 3.10 3.11", "python_version != '3.10'"),
])
def test_pythons(some: str, every: str, marker: str) -> None:
    assert marker_of([target(one, "linux-64") for one in some.split()],
                     [target(one, "linux-64") for one in every.split()]) == marker


def test_both() -> None:
    square = [target(*point) for point in product(("3.11", "3.12"), ("linux-64", "osx-arm64"))]
    assert marker_of(square[:1], square) == "python_version == '3.11' and sys_platform == 'linux'"
    assert marker_of(square[:3], square) == "python_version == '3.11' or sys_platform == 'linux'"
    assert marker_of([square[0], square[3]], square) == (
        "python_version == '3.11' and sys_platform == 'linux'"
        " or python_version == '3.12' and sys_platform == 'darwin'")


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.python} {one.platform}")
def test_the_marker_of_an_environment(one: Target) -> None:
    assert [other for other in EVERY if holds(environment_marker(one), other)] == [one]


def test_a_platform_without_a_marker_is_refused() -> None:
    with pytest.raises(BadInput, match="osx-64"):
        environment_marker(target("3.11", "osx-64"))
