"""Lines of a text by the words in them: a log of megabytes is gone through once for a word, not line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from stackfix.explain.records import Line, Text


class Words:
    """A text that is asked which lines hold a word. Answers are remembered."""

    def __init__(self, text: Text) -> None:
        self.lines: tuple[Line, ...] = text.lines
        # one character may become two in lower case: places are those of the lowered text
        lowered = [line.text.lower() for line in text.lines]
        self._whole = "\n".join(lowered)
        self._starts = [0, *accumulate(len(each) + 1 for each in lowered)]
        self._found: dict[str, tuple[int, ...]] = {}

    def places(self, words: Iterable[str]) -> list[int]:
        """Numbers of the lines (in `lines`, from 0) with any of these words, which are in lower case; in order."""
        return sorted({place for word in words for place in self._places(word)})

    def _places(self, word: str) -> tuple[int, ...]:
        if word not in self._found:
            self._found[word] = tuple(self._search(word))
        return self._found[word]

    def _search(self, word: str) -> Iterable[int]:
        at = self._whole.find(word)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            yield place
            at = self._whole.find(word, self._starts[place + 1])
