"""A line of a file, as it is told."""

from __future__ import annotations


def quoted(line: str | None) -> str:
    """The line in quotes that it does not have itself, what cannot be printed escaped."""
    if not line:
        return "an empty line"
    text = line if line.isprintable() else repr(line)[1:-1].replace("\\'", "'")
    mark = next((mark for mark in "'\"" if mark not in line), "`")
    return f"{mark}{text}{mark}"
