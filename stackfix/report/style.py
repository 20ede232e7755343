"""How a text is coloured, and how it is left alone."""

from __future__ import annotations

from collections.abc import Callable

Style = Callable[[str, str], str]       # (text, "bold" | "red" | "yellow" | "green" | "dim") -> text


def plain(text: str, _style: str) -> str:
    """The text as it is: the style function for pipes and NO_COLOR."""
    return text
