"""The books of the almanac together, each opened when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from stackfix.abi.records import Books, JudgedWheels, NvidiaBook, TorchBook, TorchNames


class LazyBooks(Books):
    """The books in one folder. Reading an attribute raises BadInput where that book is damaged."""

    def __init__(self, directory: Path | None = None) -> None:
        object.__setattr__(self, "_directory", directory)
        self._directory: Path | None

    @cached_property
    def torch(self) -> TorchBook:
        from stackfix.abi.book import open_torch_book

        return open_torch_book(self._directory)

    @cached_property
    def nvidia(self) -> NvidiaBook:
        from stackfix.abi.nvidia_book import open_nvidia_book

        return open_nvidia_book(self._directory)

    @cached_property
    def judged(self) -> JudgedWheels:
        from stackfix.abi.judged import open_judged_wheels

        return open_judged_wheels(self._directory)

    @cached_property
    def names(self) -> TorchNames:
        from stackfix.abi.torch_names import TorchNameList

        return TorchNameList(self._directory, tuple(each.minor for each in self.torch.releases))


def open_books(directory: Path | None = None) -> Books:
    """The books in `directory`, ours where none is named; a book that nobody asks is not opened."""
    return LazyBooks(directory)


__all__ = ["open_books"]
