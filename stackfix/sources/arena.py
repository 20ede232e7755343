"""Memory that two processes share: one puts the text of pages there, the other reads single entries out of it.

A page is unpacked and searched by the process that asks for it (asking.py); sent as a message, its text would be copied
four times, of which a hundredth is looked at.
"""

from __future__ import annotations

import mmap


class Arena:
    """One piece of memory, filled from its beginning. Made before the process divides."""

    def __init__(self, size: int) -> None:
        self._map, self._used = mmap.mmap(-1, size), 0

    def put(self, content: bytes) -> int | None:
        """Where the content is from now on; None where there is no room for it."""
        begin = self._used
        if begin + len(content) > len(self._map):
            return None
        self._used += len(content)
        self._map[begin:self._used] = content
        return begin

    def text(self, begin: int, size: int) -> ArenaText:
        """The text that was put there. It is ASCII."""
        return ArenaText(self._map, begin, size)


class ArenaText:
    """Fills page_text.Text and page_text.HeldText."""

    __slots__ = ("_begin", "_map", "_size")

    def __init__(self, memory: mmap.mmap, begin: int, size: int) -> None:
        self._map, self._begin, self._size = memory, begin, size

    def get(self) -> ArenaText:
        """Itself: the memory stays."""
        return self

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> str:
        start, end, _ = part.indices(self._size)
        return self._map[self._begin + start:self._begin + max(start, end)].decode("ascii")

    def __str__(self) -> str:
        return self[:]

    def index(self, sought: str, start: int) -> int:
        """As of a str. Raises ValueError."""
        return self._there(self._map.find(sought.encode(), self._begin + start, self._begin + self._size))

    def rindex(self, sought: str, start: int, end: int) -> int:
        """As of a str. Raises ValueError."""
        return self._there(self._map.rfind(sought.encode(), self._begin + start, self._begin + end))

    def rfind(self, sought: str, start: int, end: int) -> int:
        """As of a str."""
        found = self._map.rfind(sought.encode(), self._begin + start, self._begin + end)
        return found if found < 0 else found - self._begin

    def _there(self, found: int) -> int:
        if found < 0:
            raise ValueError("not found")
        return found - self._begin
