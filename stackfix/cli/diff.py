"""`stackfix diff`: what changed between two lockfiles, or a lockfile and an environment."""

from __future__ import annotations

import sys
from typing import Any

import click

from stackfix.cli.common import common_options, take_common


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--python", "python", metavar="3.X", help="Compare this Python only.")
@click.option("--platform", "platform", metavar="SUBDIR", help="Compare this platform only.")
@common_options
def command(before: str, after: str, python: str | None, platform: str | None, **values: Any) -> int:
    """Show what changed from A to B: lockfiles of any format, or environments; exit 1 where anything did."""
    from stackfix.cli.diff_left_out import asked_of, left_out_lines
    from stackfix.cli.diff_read import read_side
    from stackfix.cli.terminal import colour_wanted, stdout_style
    from stackfix.report.diff import diff_document, diff_lines
    from stackfix.report.json import render_json
    from stackfix.request.values import check_platform, check_python
    from stackfix.write.difference import beside_environment, compare_targets, is_different, pair_targets, select

    common = take_common(values)
    python = check_python(python) if python is not None else None
    platform = check_platform(platform) if platform is not None else None
    names, sides = (before, after), (read_side(before), read_side(after))
    left_out = [asked_of(one, other, python=python, platform=platform)
                for one, other in zip(sides, reversed(sides), strict=True)]
    for name, left in zip(names, left_out, strict=True) if not common.quiet else ():
        for line in left_out_lines(name, left):
            click.echo(line, err=True)
    chosen = [select(side.targets, python=python, platform=platform, name=name)
              for side, name in zip(sides, names, strict=True)]
    for side, other in ((0, 1), (1, 0)):
        if sides[side].kind == "environment" and chosen[side]:
            chosen[other] = beside_environment(chosen[other], chosen[side][0])
    pairs, first, second = pair_targets(chosen[0], chosen[1])
    targets = [compare_targets(*pair) for pair in pairs]
    if common.as_json:
        click.echo(render_json(diff_document(
            [(name, one.kind, left) for name, one, left in zip(names, sides, left_out, strict=True)],
            targets, (first, second))))
    else:
        for line in diff_lines(targets, (first, second), stdout_style()):
            click.echo(line, color=colour_wanted(sys.stdout))
    return int(is_different(targets) or bool(first or second))
