"""The command group, and the one place where errors become text and an exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TextIO

import click

from stackfix import __version__
from stackfix.cli.errors import InStack
from stackfix.errors import StackfixError

COMMANDS = {        # name -> (module, one line of help): a module is imported when its command runs
    "lock": ("stackfix.cli.lock", "Choose a consistent stack and write its lockfiles."),
    "check": ("stackfix.cli.check", "See an environment the way the loader will, and name what is wrong."),
    "abi": ("stackfix.cli.abi", "Tell with which torch, CUDA and Python a compiled extension can load."),
    "repair": ("stackfix.cli.repair", "Cure what check finds by the smallest change of the environment, and prove it."),
    "undo": ("stackfix.cli.undo", "Take the last repair of an environment back."),
    "run": ("stackfix.cli.run", "Start a command in the environment as it would be after repair; change nothing."),
    "probe": ("stackfix.cli.probe", "Run GPU kernels in child processes and compare the numbers with the CPU."),
    "explain": ("stackfix.cli.explain", "Tell what an error message or log means, what caused it, and what cures it."),
    "sync": ("stackfix.cli.sync", "Install a lockfile into an environment."),
    "diff": ("stackfix.cli.diff", "Show what changed between two lockfiles, or a lockfile and an environment."),
    "matrix": ("stackfix.cli.matrix", "Show the compatibility matrix, or why a combination fits or not."),
}


class ReaderGone(Exception):
    """Nobody reads standard output any more. No OSError: click would make exit status 1 of it, the answer "no"."""


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stackfix")
def group() -> None:
    """Consistent GPU Python stacks: driver, CUDA, cuDNN, nvJitLink, torch and its extensions, locked together."""


def run(arguments: Sequence[str]) -> int:
    """Exit status of one command line; what failed is told on stderr, or as JSON on stdout with --json.

    An OSError that no stage has made an error of its own is one line too; any other exception is a bug and is raised.
    """
    try:
        # `run` has no document, and most of its words are another command's
        return _run(arguments, as_json="--json" in arguments and arguments[0] != "run")
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except (BrokenPipeError, ReaderGone):
        _give_up(sys.stdout)
        return 141
    except OSError as error:
        _tell_system_error(error)
        return 3


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    try:
        status = group.main(args=list(arguments), prog_name="stackfix", standalone_mode=False, obj=tuple(arguments))
    except StackfixError as error:
        return _tell(error, as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return _tell_usage(error, as_json=as_json)
    return status if isinstance(status, int) else 0


def _tell_system_error(error: OSError) -> None:
    """One line on stderr."""
    where = ", ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    if not where and _while_printing(error):
        _give_up(sys.stdout)
        where = "standard output"
    try:
        click.echo(f"error: {where or 'the system'}: {error.strerror or error}", err=True)
    except OSError:
        _give_up(sys.stderr)


def _while_printing(error: OSError) -> bool:
    """Whether it was raised by click.echo."""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is click.echo.__code__:
            return True
        step = step.tb_next
    return False


def _give_up(stream: TextIO | None) -> None:
    """Turns what is still in the stream's buffer away: the interpreter flushes once more as it ends."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell(error: StackfixError, *, as_json: bool) -> int:
    from stackfix.cli.terminal import stderr_style
    from stackfix.report.console import error_lines
    from stackfix.report.json import error_document, render_json

    within = error if isinstance(error, InStack) else None
    fault = within.fault if within else error
    if as_json:
        stack = {"stack": within.stack, "project_file": within.file} if within else {}
        click.echo(render_json(error_document(fault, message=error.what(), **stack)))
    else:
        for line in error_lines(fault, stderr_style(), headline=error.what()):
            click.echo(line, err=True)
    return fault.exit_status


def _tell_usage(error: click.ClickException, *, as_json: bool) -> int:
    from stackfix.report.redact import redacted

    message = redacted(error.format_message())
    if as_json:
        document = {"schema_version": 1, "error": {"code": "usage", "message": message, "causes": [], "nearest": []}}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(f"error: {message}", err=True)
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"hint: {error.ctx.command_path} --help lists the options", err=True)
    return 2
