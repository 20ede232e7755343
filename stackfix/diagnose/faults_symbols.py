"""Whose a symbol is, by its name alone: torch's, the C++ library's, or that of a family of libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stackfix.abi.names import is_of_another, is_standard_symbol, is_torch_library, is_torch_symbol
from stackfix.matrix.library_records import LibraryFamily

if TYPE_CHECKING:
    from stackfix.diagnose.situation import View

LIBSTDCXX = "libstdc++.so.6"


def family_of_symbol(name: str, families: Iterable[LibraryFamily]) -> LibraryFamily | None:
    """The family that has the longest of the prefixes that fit; a prefix ends where another word begins."""
    found: tuple[int, LibraryFamily | None] = (0, None)
    for family in families:
        for prefix in family.symbols:
            if len(prefix) > found[0] and name.startswith(prefix) and not name[len(prefix):len(prefix) + 1].islower():
                found = len(prefix), family
    return found[1]


def is_asked_of_torch(view: View, name: str) -> bool:
    """Whether a symbol that is missing is torch's to have.

    `helper::twice(at::Tensor)` speaks of torch and is another library's, unless a release of torch exports it.
    """
    return is_torch_symbol(name) and (not is_of_another(name) or bool(view.books.torch.minors(name)))


def speaks_of_torch(name: str) -> bool:
    """Whether a name of another project has types of torch's in it: its library was built against some torch."""
    return is_torch_symbol(name) and is_of_another(name)


__all__ = ["LIBSTDCXX", "family_of_symbol", "is_asked_of_torch", "is_standard_symbol", "is_torch_library",
           "speaks_of_torch"]
