"""`stackfix matrix show | why | check`."""

from __future__ import annotations

from typing import Any

import click

from stackfix.cli.common import common_options, take_common
from stackfix.errors import BadInput


@click.group("matrix")
def command() -> None:
    """The compatibility matrix: the table, why a combination fits or not, whether the index agrees."""


MATRIX_OPTION = click.option("--matrix", "matrix_directory", metavar="DIR", help="Another copy of the matrix.")


@command.command("show")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]…")
@MATRIX_OPTION
@common_options
def show(pairs: tuple[str, ...], matrix_directory: str | None, **options: Any) -> int:
    """The torch builds of the matrix, newest first; KEY=VALUE narrows: torch, cuda, platform, python, index.

    With torch=… also what the libraries of these builds need of one another, by their symbols.
    """
    from stackfix.cli.wiring import matrix_folder, symbol_books
    from stackfix.matrix.load import load_matrix
    from stackfix.report.json import render_json
    from stackfix.report.matrix import show_document, show_lines, show_rows
    from stackfix.resolve.why_symbols import symbol_points

    common = take_common(options)
    directory = matrix_folder(matrix_directory)
    matrix, books = load_matrix(directory), symbol_books(directory)
    wanted = parse_pairs(pairs, ("torch", "cuda", "platform", "python", "index"))
    needs = (lambda build: symbol_points(matrix, books, build, {})) if "torch" in wanted else None
    if common.as_json:
        click.echo(render_json(show_document(matrix, wanted, needs)))
    else:
        for line in show_lines(matrix, wanted, needs):
            click.echo(line)
    return 0 if show_rows(matrix, wanted) else 1


@command.command("why")
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE…")
@MATRIX_OPTION
@common_options
def why(pairs: tuple[str, ...], matrix_directory: str | None, **options: Any) -> int:
    """Why one combination fits or does not: `torch=2.9 flash-attn=2.6.3 python=3.13`. Asks no index.

    NVIDIA's libraries are named as their wheels: `torch=2.3.1 nvidia-nvjitlink-cu12=12.0.140`. So are extensions whose
    symbols were read: `torch=2.4 vllm-flash-attn=2.5.9`.
    """
    from stackfix.cli.wiring import matrix_folder, symbol_books
    from stackfix.matrix.load import load_matrix
    from stackfix.report.json import render_json
    from stackfix.report.matrix import why_document, why_lines
    from stackfix.request.values import check_platform
    from stackfix.resolve.why import why as judge
    from stackfix.resolve.why_pairs import NVIDIA, keys_of

    common = take_common(options)
    directory = matrix_folder(matrix_directory)
    books = symbol_books(directory)
    wanted = parse_pairs(pairs, keys_of(books), NVIDIA)
    if "platform" in wanted:
        wanted["platform"] = check_platform(wanted["platform"], "platform=")
    verdict = judge(load_matrix(directory), wanted, books)
    if common.as_json:
        click.echo(render_json(why_document(verdict)))
    else:
        for line in why_lines(verdict):
            click.echo(line)
    return 1 if verdict.fits is False else 0


@command.command("check")
@MATRIX_OPTION
@click.option("--index-url", metavar="URL")
@common_options
def check(matrix_directory: str | None, index_url: str | None, **options: Any) -> int:
    """Read from the index again what can be read, and report where it and the matrix disagree."""
    from stackfix.cli.wiring import matrix_folder, open_index, tell_cache
    from stackfix.matrix.drift import find_drift
    from stackfix.matrix.load import load_matrix
    from stackfix.report.json import render_json
    from stackfix.report.matrix import drift_document, drift_lines

    common = take_common(options)
    matrix = load_matrix(matrix_folder(matrix_directory))
    with open_index(common, index_url=index_url, extra_index_urls=()) as index:
        found = find_drift(matrix, index)
    tell_cache(index, common)
    if common.as_json:
        click.echo(render_json(drift_document(found)))
    else:
        for line in drift_lines(found):
            click.echo(line)
    return 1 if found else 0


def parse_pairs(pairs: tuple[str, ...], keys: tuple[str, ...], prefix: str | None = None) -> dict[str, str]:
    """`torch=2.9` pairs as a mapping. Raises BadInput for an unknown, doubled or empty one.

    Keys that begin with `prefix` are known too.
    """
    wanted: dict[str, str] = {}
    hint = f"keys: {', '.join(keys)}" + (f", and names that begin with {prefix}" if prefix is not None else "")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip().replace("_", "-")
        if not equals or not value.strip():
            raise BadInput(repr(pair), "is not KEY=VALUE", hint)
        if key not in keys and not (prefix is not None and key.startswith(prefix)):
            raise BadInput(repr(pair), f"unknown key {key!r}", hint)
        if key in wanted:
            raise BadInput(repr(pair), f"{key} is given twice", "give it once")
        wanted[key] = value.strip()
    return wanted
