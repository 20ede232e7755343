"""The text of pages while it is used: it is kept as it travelled, a tenth of its size, and unpacked again when wanted.

The pages of a large lock have 70 MB of text, of which a part is looked at more than once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol

from stackfix.sources.wire import gunzipped

MOST = 24 * 1024 * 1024             # characters that are held at once, of pages that can be unpacked again


class Text(Protocol):
    """What is used of a page's text; a str has it."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> str: ...
    def index(self, sought: str, start: int, /) -> int: ...
    def rindex(self, sought: str, start: int, end: int, /) -> int: ...
    def rfind(self, sought: str, start: int, end: int, /) -> int: ...


class HeldText(Protocol):
    """Has a text."""

    def get(self) -> Text: ...


class PageText:
    """One page's text. `packed`: the same, gzipped; None where it did not travel so, and then the text stays.

    A text that is not here yet is told by its size.
    """

    __slots__ = ("_packed", "_size", "_text")

    def __init__(self, text: str | None, packed: bytes | None, size: int | None = None) -> None:
        self._text = text
        self._packed, self._size = packed, len(text or "") if size is None else size
        if packed is not None and text is not None:
            HELD.hold(self, self._size)

    def get(self) -> str:
        """The text."""
        text = self._text
        if self._packed is not None:
            if text is None:
                # as large as it was: four bytes are the most that one character takes
                text = b"".join(gunzipped(iter((self._packed,)), 4 * self._size)).decode("utf-8")
                self._text = text
            HELD.hold(self, self._size)
        return text or ""

    def drop(self) -> None:
        """Lets the text go."""
        self._text = None


class Held:
    """The texts that were used last, up to a size in all."""

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._lock = threading.Lock()
        self._texts: OrderedDict[PageText, int] = OrderedDict()

    def limit(self, most: int) -> None:
        """Holds so much from now on."""
        self._most = most

    def hold(self, text: PageText, size: int) -> None:
        """Counts a text as used now, and drops those that were not used for longest."""
        with self._lock:
            if text in self._texts:
                self._texts.move_to_end(text)
                return
            self._texts[text] = size
            self._total += size
            while self._total > self._most and len(self._texts) > 1:
                oldest, freed = self._texts.popitem(last=False)
                self._total -= freed
                oldest.drop()


HELD = Held(MOST)
