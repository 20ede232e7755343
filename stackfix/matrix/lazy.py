"""The matrix file by file: a row is read when the first of its file is asked for.

For those that ask for one kind of row and must answer at once; whoever decides by the matrix loads all of it, with its
digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import cast

from stackfix.matrix.faults import Faults
from stackfix.matrix.parsed import parsed_once
from stackfix.matrix.records import (
    Companion,
    DriverFamily,
    FlashAttnRelease,
    FlashAttnWheel,
    Frameworks,
    Matrix,
    Rule,
    ToolkitComponent,
    ToolkitDriver,
    TorchBuild,
)
from stackfix.matrix.toml_files import FILES, Parsed, matrix_directory, parse_file, read_file


def open_matrix(directory: Path | None = None) -> Matrix:
    """A matrix for the functions of `query`. Its attributes raise BadInput where their file has faults."""
    return cast("Matrix", LazyMatrix(matrix_directory() if directory is None else directory))


class LazyMatrix:
    """The rows of Matrix, each file parsed once and when it is needed; no closures, no sources, no digest."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory
        self.directory = str(directory)

    def _parsed(self, name: str, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
        path = self._folder / name
        return parse_file(str(path), read_file(path, FILES), parse)

    @cached_property
    def torch(self) -> tuple[TorchBuild, ...]:
        from stackfix.matrix.parse_torch import parse_torch

        if self._folder != matrix_directory():
            return self._parsed("torch.toml", parse_torch)
        digest = hashlib.sha256(read_file(self._folder / "torch.toml", FILES)).hexdigest()
        return parsed_once("torch", f"{digest} {self._folder}", lambda: self._parsed("torch.toml", parse_torch))

    @cached_property
    def _cuda(self) -> tuple[tuple[ToolkitComponent, ...], tuple[DriverFamily, ...], tuple[ToolkitDriver, ...]]:
        from stackfix.matrix.parse_cuda import parse_cuda

        rows = self._parsed("cuda.toml", parse_cuda)
        return rows.components, rows.families, rows.drivers

    @property
    def components(self) -> tuple[ToolkitComponent, ...]:
        return self._cuda[0]

    @property
    def driver_families(self) -> tuple[DriverFamily, ...]:
        return self._cuda[1]

    @property
    def toolkit_drivers(self) -> tuple[ToolkitDriver, ...]:
        return self._cuda[2]

    @cached_property
    def companions(self) -> tuple[Companion, ...]:
        from stackfix.matrix.parse_companions import parse_companions

        return self._parsed("companions.toml", parse_companions)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        from stackfix.matrix.parse_companions import parse_rules

        return self._parsed("rules.toml", parse_rules)

    @cached_property
    def _flash(self) -> tuple[tuple[FlashAttnRelease, ...], tuple[FlashAttnWheel, ...]]:
        from stackfix.matrix.parse_flash_attn import parse_flash_attn

        rows = self._parsed("flash_attn.toml", parse_flash_attn)
        return rows.releases, rows.wheels

    @property
    def flash_attn(self) -> tuple[FlashAttnRelease, ...]:
        return self._flash[0]

    @property
    def flash_attn_wheels(self) -> tuple[FlashAttnWheel, ...]:
        return self._flash[1]

    @cached_property
    def frameworks(self) -> Frameworks:
        from stackfix.matrix.frameworks import parse_frameworks

        return self._parsed("frameworks.toml", parse_frameworks)
