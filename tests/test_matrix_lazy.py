"""A matrix that is read file by file has the same rows, and reads no file that nobody asks for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.lazy import open_matrix
from stackfix.matrix.load import load_matrix
from stackfix.matrix.toml_files import matrix_directory

ROWS = ("torch", "components", "companions", "rules", "flash_attn", "flash_attn_wheels", "driver_families",
        "toolkit_drivers", "frameworks")


@pytest.mark.parametrize("name", ROWS)
def test_the_rows_are_those_of_the_whole(name: str) -> None:
    assert getattr(open_matrix(), name) == getattr(load_matrix(), name)


def test_a_fault_is_told_by_those_alone_who_ask_for_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "matrices"
    shutil.copytree(matrix_directory(), folder, ignore=shutil.ignore_patterns("abi", "conda"))
    (folder / "torch.toml").write_text("[sources]\ncolour = 3\n")
    matrix = open_matrix(folder)
    assert matrix.driver_families
    with pytest.raises(BadInput, match=r"torch\.toml"):
        _ = matrix.torch
