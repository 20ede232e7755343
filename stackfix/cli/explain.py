"""`stackfix explain`: an error text in, cause and cure out. Nothing is sent anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common

if TYPE_CHECKING:
    from stackfix.explain.records import Explanation


@click.command("explain")
@click.argument("source", metavar="[TEXT|FILE|-]", nargs=-1)
@click.option("--matrix", "matrix_directory", metavar="DIR", help="Another copy of the matrix.")
@common_options
def command(**options: Any) -> int:
    """Explain an error line, a traceback, a build log or a resolver's answer: what happened, why, and what cures it.

    Without an argument, or with "-", the text is read from standard input.
    """
    from stackfix.cli.explain_source import text_of

    common = take_common(options)
    explanation = explained(text_of(options["source"]), options["matrix_directory"])
    show(explanation, common)
    return 0 if explanation.causes else 1


def explained(content: tuple[bytes, bool], matrix: str | None) -> Explanation:
    """The text explained from this matrix, ours where none is named."""
    from pathlib import Path

    from stackfix.cli.explain_facts import MatrixFacts
    from stackfix.explain.derive import DERIVE
    from stackfix.explain.explain import explain
    from stackfix.explain.rules import read_rules
    from stackfix.explain.text import read_text

    directory = Path(matrix) if matrix else None
    text = read_text(content[0], cut=content[1])
    return explain(text, read_rules(directory), MatrixFacts(directory), DERIVE)


def show(explanation: Explanation, common: CommonOptions) -> None:
    """The document, or the lines for people, on stdout."""
    from stackfix.report.explain import explanation_document, explanation_lines

    if common.as_json:
        from stackfix.report.json import render_json
        from stackfix.report.printable import printable_json

        click.echo(printable_json(render_json(explanation_document(explanation))))
        return
    for line in explanation_lines(explanation, verbose=bool(common.verbose)):
        click.echo(line)
