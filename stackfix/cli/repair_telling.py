"""How the commands that change an environment speak: talk on stderr, what was done on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackfix.cli.common import CommonOptions
from stackfix.cli.terminal import stderr_style, stdout_style, stdout_width

if TYPE_CHECKING:
    from stackfix.report.check import Manner


def tell(text: str, common: CommonOptions) -> None:
    """One line on stderr, not with -q."""
    from stackfix.report.printable import printable
    from stackfix.report.redact import redacted

    if not common.quiet:
        click.echo(f"stackfix: {redacted(printable(text))}", err=True)


def tell_manner(common: CommonOptions) -> Manner:
    """For lines on stdout."""
    from stackfix.report.check import Manner

    return Manner(style=stdout_style(), verbose=bool(common.verbose), quiet=common.quiet, width=stdout_width())


def talk_manner(common: CommonOptions) -> Manner:
    """For lines on stderr."""
    from stackfix.report.check import Manner

    return Manner(style=stderr_style(), verbose=bool(common.verbose), quiet=common.quiet)
