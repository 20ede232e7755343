"""How lines are made for people: labels in a column, text in the terminal's width, commands and paths whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.report.style import Style

INDENT = 12             # width of the column of labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How much is said, and how."""

    style: Style
    verbose: bool = False
    quiet: bool = False
    fail_on: str = "error"          # of -q: what is still said
    width: int | None = None        # of the terminal; None: no line is broken


def wrapped(text: str, indent: str, manner: Manner, *, hanging: str | None = None) -> Iterator[str]:
    """The text indented, in lines of the terminal's width; words stay whole."""
    yield from led([(indent, "")], text, indent if hanging is None else hanging, manner)


def led(lead: Sequence[tuple[str, str]], text: str, hanging: str, manner: Manner) -> Iterator[str]:
    """The text behind a lead of (text, style), in lines of the terminal's width; words stay whole."""
    plain = "".join(each for each, _ in lead)
    shown = "".join(manner.style(each, style) if style and each else each for each, style in lead)
    if manner.width is None:
        yield shown + text
        return
    import textwrap

    # a place is kept for the lead: colours have no width, and what is put before a long word would be dropped
    first, *rest = textwrap.wrap(text, max(manner.width, 60), initial_indent="x" * len(plain),
                                 subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False) or [plain]
    yield shown + first[len(plain):]
    yield from rest
