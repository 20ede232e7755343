"""How the commands that change an environment speak: talk on stderr, what was done on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from stackfix.cli.common import CommonOptions
from stackfix.cli.terminal import colour_wanted, stderr_style, stdout_style, stdout_width

if TYPE_CHECKING:
    from stackfix.report.lines import Manner


def tell(text: str, common: CommonOptions) -> None:
    """One line on stderr, not with -q."""
    if not common.quiet:
        say(text)


def say(text: str) -> None:
    """One line on stderr."""
    from stackfix.report.printable import printable
    from stackfix.report.redact import redacted

    click.echo(f"stackfix: {redacted(printable(text))}", err=True)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout."""
    for line in lines:
        click.echo(line, color=colour_wanted(sys.stdout))


def tell_manner(common: CommonOptions) -> Manner:
    """For lines on stdout."""
    from stackfix.report.lines import Manner

    return Manner(style=stdout_style(), verbose=bool(common.verbose), quiet=common.quiet, width=stdout_width())


def talk_manner(*, verbose: bool) -> Manner:
    """For lines on stderr."""
    from stackfix.report.lines import Manner

    return Manner(style=stderr_style(), verbose=verbose)
