"""runtime.toml is read as it stands, in order, and each fault of a copy is told with its place."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.proof_table import load_proof_table
from stackfix.matrix.runtime import FILE, load_run_times
from stackfix.matrix.toml_files import matrix_directory

TABLE = load_run_times()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_a_newer_release_of_a_distribution_has_nothing_older() -> None:
    for older, newer in pairwise(TABLE.distributions):
        if older.name == newer.name:
            assert numbers(older.release) < numbers(newer.release)
            assert all(numbers(getattr(older, each)) <= numbers(getattr(newer, each))
                       for each in ("glibc", "glibcxx", "cxxabi"))


def test_a_newer_gcc_has_newer_versions() -> None:
    for prefix in ("GLIBCXX_", "CXXABI_"):
        rows = [each for each in TABLE.gcc if each.version.startswith(prefix)]
        assert len(rows) >= 7
        for older, newer in pairwise(rows):
            assert numbers(older.version.removeprefix(prefix)) < numbers(newer.version.removeprefix(prefix))
            assert numbers(older.gcc) < numbers(newer.gcc)


def test_it_agrees_with_what_a_proof_takes_for_granted() -> None:
    """There the oldest libstdc++ of the distributions with a glibc is stated: none of them has an older one."""
    levels = {each.glibc: each.versions for each in load_proof_table().levels}
    compared = [each for each in TABLE.distributions if each.glibc in levels]
    assert len(compared) >= 8
    for each in compared:
        stated = dict(version.rsplit("_", 1) for version in levels[each.glibc])
        assert numbers(each.glibcxx) >= numbers(stated["GLIBCXX"])
        assert numbers(each.cxxabi) >= numbers(stated["CXXABI"])


@pytest.mark.parametrize(("old", "new", "reason"), [
    ('"22.04 2.35 3.4.30 1.3.13"', '"22.04 2.35 3.4.30"', 'is not "release glibc GLIBCXX CXXABI"'),
    ('"22.04 2.35 3.4.30 1.3.13"', '"jammy 2.35 3.4.30 1.3.13"', "in digits and dots"),
    ('"20.04 2.31 3.4.28 1.3.12"', '"22.04 2.31 3.4.28 1.3.12"', "distribution Ubuntu 22.04: given twice"),
    ("GLIBCXX_3.4.30 12.1.0", "GLIBC_3.4.30 12.1.0", "is not a version of libstdc++"),
    ("GLIBCXX_3.4.30 12.1.0", "GLIBCXX_3.4.29 12.1.0", "gcc GLIBCXX_3.4.29: given twice"),
    ('gone = "2024.1"', 'gone = "soon"', "soon"),
    ('functions = "iJIT_NotifyEvent"', 'function = "iJIT_NotifyEvent"', "no functions"),
    ('name = "Debian"', 'title = "Debian"', "no name"),
])
def test_faults_are_told_with_their_place(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text = (matrix_directory() / FILE).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / FILE).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        load_run_times(tmp_path)
    assert reason in str(caught.value)


def test_a_copy_without_the_file_takes_ours(tmp_path: Path) -> None:
    shutil.copy(matrix_directory() / "cuda.toml", tmp_path)
    assert load_run_times(tmp_path) == TABLE
