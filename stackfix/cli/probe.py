"""`stackfix probe`: run kernels in an environment's own Python and compare their numbers with the CPU."""

from __future__ import annotations

import math
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.terminal import colour_wanted, is_terminal, stdout_style
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.sync.records import Interpreter
    from stackfix.verify.records import Probe, ProbeStep

CLEAR = "\r\x1b[K"      # ECMA-48: erase in line
LONGEST = 86_400.0      # seconds


@click.command("probe")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is started.")
@click.option("--require-gpu", is_flag=True, help="Exit 1 where nobody can tell, too: without a GPU, for one.")
@click.option("--timeout", metavar="S", type=float, default=120.0, show_default=True,
              help="Seconds for each child process.")
@common_options
def command(prefix: str | None, python: str | None, require_gpu: bool, timeout: float, **values: Any) -> int:
    """Run kernels on the GPU, each in a child process of the environment's Python, and compare their numbers.

    The driver is asked without torch, then torch and flash-attn where they are installed. Nothing is changed.
    """
    common = take_common(values)
    if not (math.isfinite(timeout) and 0 < timeout <= LONGEST):
        raise BadInput(f"--timeout {timeout:g}", "is no time to wait", "give seconds, more than 0: --timeout 300")
    interpreter = interpreter_of(prefix, python)
    found = probed(interpreter, timeout, common)
    show(found, interpreter, common)
    return 0 if found.verdict == "works" or (found.verdict == "cannot-tell" and not require_gpu) else 1


def interpreter_of(prefix: str | None, python: str | None) -> Interpreter:
    """The environment's Python. Raises BadInput where there is none, Unreachable where it does not answer."""
    from stackfix.sync.interpreter import find_executable, read_interpreter

    if python is not None and "/" not in python:        # as a shell would find it
        python = shutil.which(python) or python
    return read_interpreter(find_executable(prefix=prefix, python=python, environ=os.environ))


def probed(interpreter: Interpreter, timeout: float, common: CommonOptions) -> Probe:
    """All steps, each shown as it ends unless a document is wanted."""
    from stackfix.verify.probe import probe

    live = is_terminal(sys.stderr) and not common.quiet and not common.as_json

    def tell(step: ProbeStep) -> None:
        from stackfix.report.probe import step_lines

        if live:
            click.echo(CLEAR, err=True, nl=False)
        for line in step_lines(step, stdout_style(), verbose=bool(common.verbose), quiet=common.quiet):
            click.echo(line, color=colour_wanted(sys.stdout))

    def trying(name: str) -> None:
        if live:
            click.echo(f"{CLEAR}  … {name}", err=True, nl=False)

    try:
        return probe(interpreter.executable, os.environ, timeout=timeout, tell=None if common.as_json else tell,
                     trying=trying)
    finally:
        if live:
            click.echo(CLEAR, err=True, nl=False)


def show(found: Probe, interpreter: Interpreter, common: CommonOptions) -> None:
    """The document, or the last line, on stdout."""
    if common.as_json:
        from stackfix.report.json import render_json
        from stackfix.report.printable import printable_json
        from stackfix.report.probe_json import probe_document

        document = probe_document(found, python=interpreter.executable, prefix=interpreter.prefix)
        click.echo(printable_json(render_json(document)))
        return
    from stackfix.report.probe import sum_lines

    for line in sum_lines(found, stdout_style()) if not common.quiet or found.verdict == "fails" else ():
        click.echo(line, color=colour_wanted(sys.stdout))
