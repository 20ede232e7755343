"""What a derivation may ask, each part read when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.abi.records import Books
    from stackfix.matrix.code_records import Codes
    from stackfix.matrix.library_records import Libraries
    from stackfix.matrix.records import Companion, FlashAttnRelease, FlashAttnWheel, Frameworks, Matrix, TorchBuild

class MatrixFacts:
    """Fills explain.records.Facts from one matrix folder, ours where none is named."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._releases: dict[tuple[str, str], frozenset[str]] = {}

    @cached_property
    def matrix(self) -> Matrix:
        from stackfix.matrix.lazy import open_matrix

        return open_matrix(self._directory)

    @property
    def torch(self) -> tuple[TorchBuild, ...]:
        return self.matrix.torch

    def has_wheel(self, build: TorchBuild) -> bool:
        if build.index == "default":
            return True
        key = build.index, build.platform
        if key not in self._releases:
            from stackfix.matrix.torch_index import torch_releases

            self._releases[key] = torch_releases(*key, self._directory)
        return build.version in self._releases[key]

    @property
    def companions(self) -> tuple[Companion, ...]:
        return self.matrix.companions

    @property
    def flash_attn(self) -> tuple[FlashAttnRelease, ...]:
        return self.matrix.flash_attn

    @property
    def flash_attn_wheels(self) -> tuple[FlashAttnWheel, ...]:
        return self.matrix.flash_attn_wheels

    @cached_property
    def codes(self) -> Codes:
        from stackfix.matrix.codes import load_codes

        return load_codes(self._directory)

    @property
    def frameworks(self) -> Frameworks:
        return self.matrix.frameworks

    @cached_property
    def libraries(self) -> Libraries:
        from stackfix.matrix.libraries import load_libraries

        return load_libraries(self._directory)

    @cached_property
    def books(self) -> Books:
        from stackfix.abi.books import open_books

        return open_books(None if self._directory is None else self._directory / "abi")
