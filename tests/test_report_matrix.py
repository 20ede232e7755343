"""The table of the matrix: which builds a place has, and where others are."""

from __future__ import annotations

import pytest
from packaging.version import Version

from stackfix.errors import BadInput
from stackfix.matrix.load import load_matrix
from stackfix.report.matrix import show_lines, show_rows

REAL = load_matrix()


@pytest.mark.parametrize(("place", "index"), [
    ("linux-64-cpu", "cpu"), ("linux-aarch64-cpu", "default"), ("win-64-cpu", "default"), ("osx-arm64-cpu", "default"),
])
def test_a_place_for_the_cpu_has_the_build_that_a_lock_takes(place: str, index: str) -> None:
    rows = show_rows(REAL, {"torch": "2.8", "platform": place})
    assert [(row.version, row.cuda, row.platform, row.index) for row in rows] == [
        ("2.8.0", "cpu", place.removesuffix("-cpu"), index)]
    versions = [Version(row.version) for row in show_rows(REAL, {"platform": place})]
    assert versions == sorted(set(versions), reverse=True)
    assert len(versions) > 1


def test_an_index_that_is_named_is_the_only_one() -> None:
    rows = show_rows(REAL, {"torch": "2.8", "platform": "win-64-cpu", "index": "cpu"})
    assert [row.index for row in rows] == ["cpu"]


@pytest.mark.parametrize(("written", "hint"), [("macos", "write `osx-arm64`"), ("windows-cpu", "write `win-64-cpu`")])
def test_a_platform_of_another_name_is_told_by_ours(written: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        show_rows(REAL, {"platform": written})
    assert (caught.value.reason, caught.value.hint) == ("is not a platform", hint)


def test_builds_of_the_torch_index_are_named_beside_those_of_the_default_one() -> None:
    *_, last = show_lines(REAL, {"torch": "2.8", "platform": "win-64"})
    assert last == "builds of the torch index, by index=…: cpu, cu126, cu128, cu129"
    assert list(show_lines(REAL, {"torch": "2.8", "cuda": "12.8", "platform": "win-64"})) == [
        "no build of the default index meets this", "builds of the torch index, by index=…: cu128"]
    assert list(show_lines(REAL, {"cuda": "12.8", "platform": "osx-arm64"})) == ["no build of the matrix meets this"]
    assert not any("by index" in line for line in show_lines(REAL, {"torch": "2.8", "index": "cu128"}))
