"""`stackfix sync`: install a lockfile, both steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from stackfix.cli.options import common_options, take_common


@click.command("sync")
@click.argument("lockfile", default="requirements.txt")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", "python", metavar="EXE", help="Its interpreter.")
@click.option("--flash-attn-source", metavar="URL|DIR", help="Take the flash-attn wheel from here (sha256 checked).")
@click.option("--dry-run", is_flag=True, help="Install nothing.")
@common_options
def command(
    lockfile: str, prefix: str | None, python: str | None, flash_attn_source: str | None, dry_run: bool, **values: Any,
) -> int:
    """Install LOCKFILE (requirements*.txt or pylock*.toml) with its hashes, through uv when there, else pip."""
    from stackfix.sync.install import sync

    common = take_common(values)
    return sync(
        Path(lockfile), prefix=prefix, python=python, environ=os.environ, flash_attn_source=flash_attn_source,
        dry_run=dry_run, quiet=common.quiet,
    )
