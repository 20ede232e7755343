"""Whose a symbol is, by its name alone: torch's, the C++ library's, or that of a family of libraries."""

from __future__ import annotations

from collections.abc import Iterable

from stackfix.abi.names import is_standard_symbol, is_torch_library, is_torch_symbol
from stackfix.matrix.library_records import LibraryFamily

LIBSTDCXX = "libstdc++.so.6"


def family_of_symbol(name: str, families: Iterable[LibraryFamily]) -> LibraryFamily | None:
    """The family that has the longest of the prefixes that fit; a prefix ends where another word begins."""
    found: tuple[int, LibraryFamily | None] = (0, None)
    for family in families:
        for prefix in family.symbols:
            if len(prefix) > found[0] and name.startswith(prefix) and not name[len(prefix):len(prefix) + 1].islower():
                found = len(prefix), family
    return found[1]


__all__ = ["LIBSTDCXX", "family_of_symbol", "is_standard_symbol", "is_torch_library", "is_torch_symbol"]
