"""`stackfix sync`: install a lockfile, of pip or of conda, and its second step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars
from stackfix.cli.sync_conda import conda_lock_of, conda_settings, store_of
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.resolve.records import Releases
    from stackfix.sync.records import Plan


@click.command("sync")
@click.argument("lockfile", default="requirements.txt")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", "python", metavar="EXE", help="Its interpreter.")
@click.option("--environment", metavar="NAME", help="Of a pixi.lock: which of its environments.")
@click.option("--flash-attn-source", metavar="URL|DIR", help="Take the flash-attn wheel from here (sha256 checked).")
@click.option("--set-aside", is_flag=True, help="Of a conda lock: move files of no package that are in the way.")
@click.option("--allow-base", is_flag=True, help="Of a conda lock: also into conda's base, or where stackfix runs.")
@click.option("--dry-run", is_flag=True, help="Install nothing, ask nobody: print the changes; exit 1 if any.")
@common_options
def command(
    lockfile: str, prefix: str | None, python: str | None, environment: str | None, flash_attn_source: str | None,
    set_aside: bool, allow_base: bool, dry_run: bool, **values: Any,
) -> int:
    """Install LOCKFILE with its hashes.

    requirements*.txt and pylock*.toml are installed through uv when there, else pip; of conda-lock.yml, pixi.lock and
    explicit conda files (*.lock) the packages of channels through rattler, and then those of pip.
    """
    common = take_common(values)
    plans: list[Plan] = []
    tell = plans.append if dry_run or common.as_json else None
    with ExitStack() as opened:
        bars = opened.enter_context(Bars(shown=not common.quiet))
        releases = opened.enter_context(release_source(flash_attn_source, dry_run=dry_run, common=common, bars=bars))
        lock = conda_lock_of(Path(lockfile))
        if lock is None:
            from stackfix.sync.install import sync

            refuse(environment, "--environment", f"{lockfile} is no conda lockfile: it has no environments")
            refuse("" if set_aside else None, "--set-aside", f"{lockfile} is no conda lockfile")
            refuse("" if allow_base else None, "--allow-base", f"{lockfile} is no conda lockfile")
            bars.close()        # the installer has one of its own
            status = sync(
                Path(lockfile), prefix=prefix, python=python, environ=os.environ, dry_run=dry_run, quiet=common.quiet,
                flash_attn_source=flash_attn_source, releases=releases, tell=tell)
        else:
            from stackfix.matrix.load import load_matrix
            from stackfix.sync.conda import sync_conda

            refuse(python, "--python", f"{lockfile} brings its own Python: name the environment with --prefix")
            status = sync_conda(
                lock, engine=conda_settings(load_matrix(), common), store=store_of(common), prefix=prefix,
                environment=environment, environ=os.environ, dry_run=dry_run, quiet=common.quiet,
                flash_attn_source=flash_attn_source, releases=releases, tell=tell, progress=bars.packages,
                set_aside=set_aside, allow_base=allow_base)
    for plan in plans:
        show(plan, dry_run=dry_run, common=common)
    would_change = any(change.action != "keep" for plan in plans for change in plan.changes)
    return 1 if dry_run and would_change else status


def refuse(value: str | None, option: str, reason: str) -> None:
    """Raises BadInput where the option was given."""
    if value is not None:
        raise BadInput(f"{option} {value}".rstrip(), reason)


@contextmanager
def release_source(
    source: str | None, *, dry_run: bool, common: CommonOptions, bars: Bars,
) -> Iterator[Releases | None]:
    """The mirror that --flash-attn-source names; None for a folder, or where nothing is asked."""
    if source is None or "://" not in source or dry_run:
        yield None
        return
    from stackfix.cli.wiring import index_settings, open_release_source
    from stackfix.matrix.load import load_matrix

    settings = index_settings(index_url=None, extra_index_urls=())
    with closing(open_release_source(source, load_matrix().sources, settings, common, bars)) as opened:
        yield opened


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
