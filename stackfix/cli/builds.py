"""Whose sdists may be built for their metadata, and how the user hears of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from stackfix.errors import BadInput
from stackfix.request.builds import check_allow_builds

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.cli.options import LockOptions
    from stackfix.sources.sdist_build import Allowed

LIMIT = "STACKFIX_BUILD_SECONDS"
LONGEST = 24 * 3600


def allowed_builds(options: LockOptions, common: CommonOptions) -> Allowed | None:
    """What --allow-builds says; None without it. Raises BadInput for a name or a time limit that makes no sense."""
    if not options.allow_builds:
        return None
    from stackfix.sources.sdist_build import SECONDS, Allowed

    text = os.environ.get(LIMIT)
    return Allowed(
        projects=frozenset(map(check_allow_builds, options.allow_builds)), environ=dict(os.environ),
        tell=lambda line: None if common.quiet else _echo(line), complain=_echo,
        seconds=SECONDS if text is None else _seconds(text),
        by=None if options.project_file is None else f"allow-builds in {options.project_file}",
    )


def _seconds(text: str) -> float:
    """The time limit of one build."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= LONGEST:
        raise BadInput(f"{LIMIT}={text}", "is no number of seconds above 0 and within a day", "write 1200, or unset it")
    return found


def _echo(line: str) -> None:
    click.echo(line, err=True)
