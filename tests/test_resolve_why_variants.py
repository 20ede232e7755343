"""`matrix why` about builds of the torch index says what `lock` would do with them."""

from __future__ import annotations

import pytest

from stackfix.abi.books import open_books
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.why_symbols import symbol_points

MATRIX, BOOKS = load_matrix(), open_books()


def build_of(version: str, index: str) -> TorchBuild:
    return next(each for each in query.builds(MATRIX, platform="linux-64", index=index) if each.version == version)


def test_what_was_read_of_the_default_build_is_not_held_against_a_variants_pins() -> None:
    """torch 2.13 for CUDA 13.0 uses a function of NCCL that 2.29.3 lacks; the build for 12.6 pins 2.29.3."""
    points = list(symbol_points(MATRIX, BOOKS, build_of("2.13.0", "cu126"), {}))
    assert [point.text for point in points if point.holds is False] == []
    usual = list(symbol_points(MATRIX, BOOKS, build_of("2.13.0", "default"), {"nvidia-nccl-cu13": "2.27.7"}))
    assert any(point.holds is False and "nvidia-nccl-cu13" in point.text for point in usual)


@pytest.mark.parametrize(("version", "index"), [
    (build.version, build.index) for build in query.builds(MATRIX, platform="linux-64")
    if build.index != query.DEFAULT_INDEX and build.cuda != query.CPU
])
def test_no_variant_of_the_matrix_breaks_a_floor(version: str, index: str) -> None:
    broken = [point.text for point in symbol_points(MATRIX, BOOKS, build_of(version, index), {})
              if point.holds is False]
    assert broken == []


def test_libraries_of_a_variant_are_judged_among_themselves() -> None:
    said = [point.text for point in symbol_points(MATRIX, BOOKS, build_of("2.6.0", "cu126"), {
        "nvidia-nvjitlink-cu12": "12.4.127"}) if point.holds is False]
    assert any(text.startswith("nvidia-cusparse-cu12 12.5.4.2 needs nvidia-nvjitlink-cu12>=") for text in said)


def test_a_cpu_build_is_not_held_against_libraries_that_it_does_not_use() -> None:
    libraries = {"nvidia-nccl-cu12": "2.20.5"}
    point, = symbol_points(MATRIX, BOOKS, build_of("2.8.0", "cpu"), libraries)
    assert (point.holds, point.text) == (True, "torch 2.8.0 for the CPU uses none of NVIDIA's libraries")
    assert any(point.holds is False for point in symbol_points(MATRIX, BOOKS, build_of("2.8.0", "default"), libraries))
    among = {"nvidia-cusparse-cu12": "12.5.8.93", "nvidia-nvjitlink-cu12": "12.4.127"}
    assert [point.holds for point in symbol_points(MATRIX, BOOKS, build_of("2.8.0", "cpu"), among)] == [False]
