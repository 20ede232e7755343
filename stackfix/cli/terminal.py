"""Colour: what the terminals on stderr and stdout can take."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

import click

from stackfix.report.style import Style, plain

COLOURS: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    "red": {"fg": "red", "bold": True},
    "yellow": {"fg": "yellow", "bold": True},
    "green": {"fg": "green"},
    "dim": {"dim": True},
}
_choice = "auto"


def choose_colour(choice: str) -> None:
    """Remember --color for this process: auto, always or never."""
    global _choice  # noqa: PLW0603 - a process has one terminal
    _choice = choice


def colour_wanted(stream: TextIO | None = None) -> bool:
    """Whether a stream, stderr without one, gets colour: --color, then NO_COLOR, then whether it is a terminal."""
    if _choice != "auto":
        return _choice == "always"
    return (not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
            and is_terminal(sys.stderr if stream is None else stream))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at a stream; Python has None for one that was closed when it started."""
    return stream is not None and stream.isatty()


def stderr_style() -> Style:
    """The style function for text on stderr."""
    return _styled if colour_wanted() else plain


def stdout_style() -> Style:
    """The style function for text on stdout; its lines are echoed with `color=colour_wanted(sys.stdout)`."""
    return _styled if colour_wanted(sys.stdout) else plain


def stdout_width() -> int | None:
    """Columns of the terminal on stdout; None where it is none: a pipe gets whole lines."""
    if not is_terminal(sys.stdout):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _styled(text: str, style: str) -> str:
    return click.style(text, **COLOURS[style])
