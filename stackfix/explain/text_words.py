"""Lines of a text by the words in them: a log of megabytes is gone through once for a word, not line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice

from stackfix.explain.records import Line, Text

BUDGET = 1_000_000_000          # squares of the lengths of lines looked at: what a pattern may take of a hostile line
SHORT = 512                     # characters of a line once that is spent; a log's lines are shorter
MOST_BROKEN = 400               # lines of a text in which a message is looked for over the ends of lines
FIRST, LAST = 1000, 4000        # of the lines with a word: how many of the first and of the last are looked at


class Words:
    """A text that is asked which lines hold a word. Answers are remembered."""

    def __init__(self, text: Text) -> None:
        self.lines: tuple[Line, ...] = text.lines
        # one character may become two in lower case: places are those of the lowered text
        lowered = [line.text.lower() for line in text.lines]
        self._whole = "\n".join(lowered)
        self._starts = [0, *accumulate(len(each) + 1 for each in lowered)]
        self._found: dict[str, tuple[int, ...]] = {}
        self._spent = 0

    def places(self, words: Iterable[str]) -> list[int]:
        """Numbers of the lines (in `lines`, from 0) with any of these words, which are in lower case; in order.

        Of very many those at the beginning and at the end.
        """
        return few(sorted({place for word in words for place in self._places(word)}))

    def look(self, place: int) -> str:
        """The line, to hold a pattern against it; its beginning where too much was looked at before."""
        text = self.lines[place].text
        self._spent += len(text) ** 2
        return text if self._spent <= BUDGET else text[:SHORT]

    def _places(self, word: str) -> tuple[int, ...]:
        if word not in self._found:
            first = tuple(islice(self._search(word), FIRST + LAST + 1))
            if len(first) > FIRST + LAST:
                last = tuple(islice(self._search_back(word), LAST))
                first = (*first[:FIRST], *(each for each in reversed(last) if each > first[FIRST - 1]))
            self._found[word] = first
        return self._found[word]

    def _search(self, word: str) -> Iterator[int]:
        at = self._whole.find(word)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            yield place
            at = self._whole.find(word, self._starts[place + 1])

    def _search_back(self, word: str) -> Iterator[int]:
        at = self._whole.rfind(word)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            yield place
            at = self._whole.rfind(word, 0, max(self._starts[place] - 1, 0))


def few(places: list[int]) -> list[int]:
    """All, or of too many the first and the last."""
    return places if len(places) <= FIRST + LAST else places[:FIRST] + places[-LAST:]
