"""Parts of a file at their own offsets, and what lies between them as zeros: opened, it is as large as the file."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stackfix.inspect.records import BadElf

Extent: TypeAlias = tuple[int, int]     # begin and end in the file
NEAR = 64                       # bytes between two extents that are kept rather than told apart
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)   # Python 3.10 has no name for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What is kept of one file."""

    size: int                       # of the file
    extents: tuple[Extent, ...]     # in order, apart from one another
    content: bytes | memoryview     # theirs, one behind the other


def joined(parts: Iterable[Extent], size: int) -> tuple[Extent, ...]:
    """The parts in order, those that overlap or are near as one, none past `size`."""
    found: list[Extent] = []
    for begin, end in sorted((max(0, begin), min(end, size)) for begin, end in parts):
        if end <= begin:
            continue
        if found and begin <= found[-1][1] + NEAR:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return tuple(found)


def fits(size: int, extents: Sequence[Extent], content: int) -> bool:
    """Whether these extents lie in a file of `size` bytes, in order, and have `content` bytes in all."""
    before = 0
    for begin, end in extents:
        if not before <= begin < end <= size:
            return False
        before = end
    return sum(end - begin for begin, end in extents) == content


def open_image(image: Image, name: str) -> mmap.mmap:
    """The file as memory, of which only what was kept takes any. Raises BadElf where there is no room for it."""
    try:
        opened = mmap.mmap(-1, image.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    except (OSError, ValueError, OverflowError) as error:
        raise BadElf(name, f"cannot be mapped: {error}", crash="cannot tell") from error
    place, content = 0, memoryview(image.content)
    for begin, end in image.extents:
        opened[begin:end] = content[place:place + end - begin]
        place += end - begin
    return opened


__all__ = ["Extent", "Image", "fits", "joined", "open_image"]
