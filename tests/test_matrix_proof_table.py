"""`matrices/proof.toml`: what ships is read, every fault of a copy is named with its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.proof_table import load_proof_table
from stackfix.matrix.toml_files import matrix_directory

Spoil = Callable[[str], str]


def swap(old: str, new: str) -> Spoil:
    def spoil(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)
    return spoil


def test_what_ships_is_read_whole() -> None:
    table = load_proof_table()
    assert {"clean"} & {each.name for each in table.surroundings} == set(), "the clean one is no row"
    assert [each.glibc for each in table.levels] == ["2.17", "2.24", "2.27", "2.28", "2.31", "2.34", "2.35", "2.39"]
    assert next(each for each in table.libraries if "libc.so.6" in each.sonames).versions == ("GLIBC",)
    driver = next(each for each in table.libraries if "libcuda.so.1" in each.sonames)
    assert not driver.open
    sources = [each.source for each in table.libraries] + [each.source for each in table.levels]
    assert all([*sources, *(each.source for each in table.surroundings)])


def test_what_environments_bring_is_known() -> None:
    projects = {project for each in load_libraries().families for project in each.projects}
    for each in load_proof_table().surroundings:
        assert set(each.brings) - {"toolkit"} <= projects, each.name


@pytest.mark.parametrize(("spoil", "told"), [
    (swap('release = "older minor"', 'release = "oldest"'), ("environment older-toolkit, release: 'oldest' is none",)),
    (swap('variable = "LD_PRELOAD"', 'variable = "LD_LIBRARY_PATH"'), ("environment preloaded-nvjitlink: preload",)),
    (swap('variable = "LD_LIBRARY_PATH"', 'variable = "PATH"'), ("'PATH' is none of",)),
    (swap('name = "newer-toolkit"', 'name = "older-toolkit"'), ("environment: older-toolkit is given twice",)),
    (swap('glibc = "2.24"', 'glibc = "2.17"'), ("level: 2.17 is given twice",)),
    (swap('glibc = "2.24"', 'glibc = "newest"'), ("'newest' is not a version",)),
    (swap("libatomic.so.1", "libc.so.6"), ("library: libc.so.6 is given twice",)),
    (swap('part = "glibc"', 'party = "glibc"'), ("no part", "unknown key 'party'")),
    (swap('folder = "/usr/local/cuda/lib64"', 'place = "x"'), ("no folder", "unknown key 'place'")),
    (swap('without = "libcuda.so.1', 'with = "libcuda.so.1'), ("neither brings nor lacks anything",)),
    (swap('source = "driver"', 'source = "rumour"'), ("source 'rumour' is not in [sources]",)),
    (lambda _: "[[library]", ("not TOML",)),
])
def test_faults_are_named(spoil: Spoil, told: tuple[str, ...], tmp_path: Path) -> None:
    copy = tmp_path / "proof.toml"
    shutil.copy(matrix_directory() / "proof.toml", copy)
    copy.write_text(spoil(copy.read_text()))
    with pytest.raises(BadInput) as raised:
        load_proof_table(tmp_path)
    assert raised.value.thing == str(copy)
    for word in told:
        assert word in raised.value.reason


def test_a_copy_of_the_matrix_without_the_file_takes_what_ships(tmp_path: Path) -> None:
    assert load_proof_table(tmp_path) == load_proof_table()
