"""`stackfix explain`: an error text in, cause and cure out. Nothing is sent anywhere."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common

if TYPE_CHECKING:
    from stackfix.explain.here_records import Inspected
    from stackfix.explain.records import Explanation, Rule


@click.command("explain")
@click.argument("source", metavar="[TEXT|FILE|-]", nargs=-1)
@click.option("--prefix", metavar="DIR", help="Say what is true in this environment; else in the active one, if any.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is not started.")
@click.option("--root", metavar="TREE", help="A folder that stands for /: an unpacked image, a recorded machine.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True,
              help="A variable of the process that failed; with --root there are no others. May be repeated.")
@click.option("--no-inspect", is_flag=True, help="Go by the text alone, whatever environment is active.")
@click.option("--matrix", "matrix_directory", metavar="DIR", help="Another copy of the matrix.")
@common_options
def command(**options: Any) -> int:
    """Explain an error line, a traceback, a build log or a resolver's answer: what happened, why, and what cures it.

    Without an argument, or with "-", the text is read from standard input. It is sent nowhere.
    """
    from stackfix.cli.explain_here import inspect, is_wanted
    from stackfix.cli.explain_source import text_of

    if sys.stdout is None:      # as `>&-` leaves it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    common = take_common(options)
    explanation, rules = explained(text_of(options["source"]), options["matrix_directory"])
    inspected = None
    if is_wanted(options):
        inspected = inspect(options, explanation, rules, waiting=not common.quiet)
    show(explanation, inspected, common)
    return 0 if explanation.causes else 1


def explained(content: tuple[bytes, bool], matrix: str | None) -> tuple[Explanation, dict[str, Rule]]:
    """The text explained from this matrix, ours where none is named, and the rules by name."""
    from pathlib import Path

    from stackfix.cli.explain_facts import MatrixFacts
    from stackfix.explain.derive import DERIVE
    from stackfix.explain.explain import explain
    from stackfix.explain.rules_wanted import read_rules_for
    from stackfix.explain.text import read_text

    directory = Path(matrix) if matrix else None
    text = read_text(content[0], cut=content[1])
    rules = read_rules_for(text, directory)
    return explain(text, rules, MatrixFacts(directory), DERIVE), {rule.name: rule for rule in rules}


def show(explanation: Explanation, inspected: Inspected | None, common: CommonOptions) -> None:
    """The document, or the lines for people, on stdout."""
    if common.as_json:
        from stackfix.report.explain_json import explanation_document
        from stackfix.report.json import render_json
        from stackfix.report.printable import printable_json

        click.echo(printable_json(render_json(explanation_document(explanation, inspected))))
        return
    from stackfix.cli.terminal import colour_wanted, stdout_style, stdout_width
    from stackfix.report.explain import explanation_lines
    from stackfix.report.lines import Manner

    manner = Manner(style=stdout_style(), verbose=bool(common.verbose), quiet=common.quiet, width=stdout_width())
    for line in explanation_lines(explanation, inspected, manner):
        click.echo(line, color=colour_wanted(sys.stdout))
