"""A wheel reduced to what a proof asks of it, as the cache keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.prove.records import WheelTables


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The image of one library, compressed."""

    size: int                       # of the library
    extents: int                    # how many there are
    length: int                     # of what is compressed: the extents' bounds, then their content
    content: bytes | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedWheel:
    """Tables of one wheel with the images that its symbols are read from."""

    tables: WheelTables
    images: Mapping[str, Packed]    # by path; a library that the loader refuses has none
