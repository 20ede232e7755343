"""Whoever sits at the terminal is asked; off a terminal nobody is."""

from __future__ import annotations

import sys

import click

from stackfix.cli.terminal import is_terminal
from stackfix.errors import BadInput


def must_be_answered(command: str) -> None:
    """Raises BadInput where a question would reach nobody."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise BadInput(f"stackfix {command}", "asks before it changes anything, and there is no terminal to ask on",
                       "add --yes, or look at the plan with --dry-run")


def ask(question: str) -> bool:
    """The answer; asked on stderr, so that stdout is the command's alone."""
    return click.confirm(question, default=False, err=True)
