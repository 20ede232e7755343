"""`stackfix sync`: install a lockfile, both steps."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars

if TYPE_CHECKING:
    from stackfix.sync.records import Plan


@click.command("sync")
@click.argument("lockfile", default="requirements.txt")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", "python", metavar="EXE", help="Its interpreter.")
@click.option("--flash-attn-source", metavar="URL|DIR", help="Take the flash-attn wheel from here (sha256 checked).")
@click.option("--dry-run", is_flag=True, help="Install nothing, ask nobody: print the changes; exit 1 if any.")
@common_options
def command(
    lockfile: str, prefix: str | None, python: str | None, flash_attn_source: str | None, dry_run: bool, **values: Any,
) -> int:
    """Install LOCKFILE (requirements*.txt or pylock*.toml) with its hashes, through uv when there, else pip."""
    from stackfix.cli.wiring import index_settings, open_release_source
    from stackfix.matrix.load import load_matrix
    from stackfix.sync.install import sync

    common = take_common(values)
    with ExitStack() as opened:
        releases = None
        if flash_attn_source is not None and "://" in flash_attn_source and not dry_run:
            bars = opened.enter_context(Bars(shown=not common.quiet))
            releases = opened.enter_context(closing(open_release_source(
                flash_attn_source, load_matrix().sources, index_settings(index_url=None, extra_index_urls=()),
                common, bars,
            )))
        plans: list[Plan] = []
        status = sync(
            Path(lockfile), prefix=prefix, python=python, environ=os.environ, flash_attn_source=flash_attn_source,
            releases=releases, dry_run=dry_run, quiet=common.quiet,
            tell=plans.append if dry_run or common.as_json else None,
        )
    for plan in plans:
        show(plan, dry_run=dry_run, common=common)
    would_change = any(change.action != "keep" for plan in plans for change in plan.changes)
    return 1 if dry_run and would_change else status


def show(plan: Plan, *, dry_run: bool, common: CommonOptions) -> None:
    """The plan: one JSON document, or a line a package on stdout."""
    from dataclasses import asdict

    from stackfix.report.json import render_json
    from stackfix.sync.changes import describe

    if common.as_json:
        click.echo(render_json({"dry_run": dry_run, **asdict(plan)}))
        return
    if not common.quiet:
        click.echo(f"stackfix: would sync {plan.prefix} with {plan.installer}", err=True)
    for change in plan.changes:
        click.echo(describe(change))
