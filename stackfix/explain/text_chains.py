"""Which tracebacks of a text belong together: an exception and those that it led to."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.text_words import Words

BEGINS = "traceback (most recent call last)"
GOES_ON = ("the above exception was the direct cause of", "during handling of the above exception",
           "the above exception was the direct cause")


def chains(words: Words) -> Mapping[int, int]:
    """For each line (by its place) of tracebacks that are chained: the place where the first of them begins.

    Lines outside of a chain are left out. In a chain the first exception is the root, and later ones follow from it.
    """
    begins, marks = words.places((BEGINS,)), set(words.places(GOES_ON))
    found: dict[int, int] = {}
    start = None
    for place, end in zip(begins, [*begins[1:], len(words.lines)], strict=False):
        linked = start is not None and any(each in marks for each in range(max(place - 2, 0), place))
        start = start if linked and start is not None else place
        if linked:
            found.update(dict.fromkeys(range(start, end), start))
    return found
