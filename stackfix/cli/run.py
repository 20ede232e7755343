"""`stackfix run -- CMD`: a command in the environment as it would be after repair. Nothing is changed."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NoReturn

import click

from stackfix.cli.common import without_empty_values
from stackfix.errors import BadInput, Unreachable


# Not the common options: what stands behind them is the command's own, its --json included
@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of what is not cured.")
@click.option("-v", "--verbose", count=True, help="Say which variables are set.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
              help="Colour (NO_COLOR is respected).")
@click.argument("words", metavar="CMD [ARG]...", nargs=-1, type=click.UNPROCESSED, required=True)
@without_empty_values
def command(prefix: str | None, python: str | None, quiet: bool, verbose: int, color: str,
            words: tuple[str, ...]) -> int:
    """Start CMD with the variables that make the environment work, and become it.

    What a repair would cure by changing files is cured for this one command by variables, as far as they can; each is
    simulated first. The exit status is the command's own.
    """
    from stackfix.apply.pending import pending
    from stackfix.cli.check import rare_collections
    from stackfix.cli.repair_planning import asked_of, prefix_of
    from stackfix.cli.repair_telling import say
    from stackfix.cli.repair_unfinished import tell_pending
    from stackfix.cli.run_variables import cured_variables, place_variables, unnamed_folder
    from stackfix.cli.terminal import choose_colour

    choose_colour(color)
    asked = asked_of(prefix, python)
    stopped = pending(prefix_of(asked))
    if stopped is not None and stopped.number is not None and not quiet:
        tell_pending(stopped, verbose=bool(verbose))
    with rare_collections():
        found = cured_variables(asked)
    variables = {**place_variables(found.environment, asked.environ), **dict(found.variables)}
    for name, value in variables.items():
        if verbose:
            say(f"unset {name}" if value is None else f"{name}={value}")
    for each in () if quiet else found.left:
        say(f"{each.code} is not cured for this command: {each.summary} ({each.reason})")
    folder = unnamed_folder(found.environment)
    if folder is not None and not quiet:
        say(f"{folder} has a colon, and no PATH can name it: {words[0]} is looked for there first, and what it starts "
            "is not")
    become(words, {name: value for name, value in {**asked.environ, **variables}.items() if value is not None},
           folder)


def become(words: tuple[str, ...], environ: dict[str, str], folder: str | None = None) -> NoReturn:
    """Replaces this process by the command, which is looked for in `folder`, too, before PATH.

    Raises BadInput where there is none, Unreachable for one that fails.
    """
    own = shutil.which(f"{folder}/{words[0]}") if folder is not None and "/" not in words[0] else None
    if own is not None:
        words = (own, *words[1:])       # a Python looks on PATH for its own place where its name has no folder
    program = own or shutil.which(words[0], path=environ.get("PATH", os.defpath))
    if program is None:
        raise BadInput(words[0], "no such command, or none that may be started", "its folder has to be on PATH")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        os.execve(program, words, environ)      # noqa: S606 - a list of words, through no shell
    except OSError as error:
        raise Unreachable(program, f"cannot be started: {error.strerror}") from error
