"""Colour and progress: what the terminal on stderr can take. Quiet off a terminal, with --json and with -q."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from stackfix.report.console import Style, plain

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


def colour_wanted() -> bool:
    """Whether stderr gets colour: --color, then NO_COLOR, then whether it is a terminal."""
    if _choice != "auto":
        return _choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stderr.isatty()


def stderr_style() -> Style:
    """The style function for text on stderr."""
    return _styled if colour_wanted() else plain


def _styled(text: str, style: str) -> str:
    return click.style(text, **COLOURS[style])
