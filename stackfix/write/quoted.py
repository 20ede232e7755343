"""A line of a file, as it is told."""

from __future__ import annotations


def quoted(line: str | None) -> str:
    """The line in quotes that it does not have itself, what cannot be printed escaped."""
    if not line:
        return "an empty line"
    text = repr(line)
    return text if "\\'" not in text else f"`{text[1:-1]}`".replace("\\'", "'")
