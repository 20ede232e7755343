"""How much was searched for so far, in counted steps: the same on every machine, however busy it is."""

from __future__ import annotations


class Effort:
    """Steps of a search, over all solves of one decision: a stack looked at, candidates asked for."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0
