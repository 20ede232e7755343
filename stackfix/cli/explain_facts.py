"""What a derivation may ask, each part read when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from stackfix.abi.records import Books
    from stackfix.matrix.faults import Faults
    from stackfix.matrix.library_records import Libraries
    from stackfix.matrix.parse_flash_attn import FlashAttnRows
    from stackfix.matrix.records import Companion, FlashAttnRelease, FlashAttnWheel, Matrix, TorchBuild

Parsed = TypeVar("Parsed")


class MatrixFacts:
    """Fills explain.records.Facts from one matrix folder, ours where none is named."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    @cached_property
    def matrix(self) -> Matrix:
        from stackfix.matrix.load import load_matrix

        return load_matrix(self._directory)

    @cached_property
    def torch(self) -> tuple[TorchBuild, ...]:
        from stackfix.matrix.parse_torch import parse_torch

        return self._part("torch.toml", parse_torch)

    @cached_property
    def companions(self) -> tuple[Companion, ...]:
        from stackfix.matrix.parse_companions import parse_companions

        return self._part("companions.toml", parse_companions)

    @property
    def flash_attn(self) -> tuple[FlashAttnRelease, ...]:
        return self._flash_attn.releases

    @property
    def flash_attn_wheels(self) -> tuple[FlashAttnWheel, ...]:
        return self._flash_attn.wheels

    @cached_property
    def _flash_attn(self) -> FlashAttnRows:
        from stackfix.matrix.parse_flash_attn import parse_flash_attn

        return self._part("flash_attn.toml", parse_flash_attn)

    def _part(self, name: str, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
        from stackfix.matrix.toml_files import FILES, matrix_directory, parse_file, read_file

        path = (self._directory or matrix_directory()) / name
        return parse_file(str(path), read_file(path, FILES), parse)

    @cached_property
    def libraries(self) -> Libraries:
        from stackfix.matrix.libraries import load_libraries

        return load_libraries(self._directory)

    @cached_property
    def books(self) -> Books:
        from stackfix.abi.books import open_books

        return open_books(None if self._directory is None else self._directory / "abi")
