"""`stackfix check`: see an environment the way the loader will, and name what is wrong. Nothing is changed."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars
from stackfix.cli.terminal import is_terminal
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.cli.check_expect import Compared
    from stackfix.cli.inspecting import Asked
    from stackfix.diagnose.finding_records import Diagnosis
    from stackfix.diagnose.situation import View

FAIL_ON = ("error", "warning", "note", "never")


@click.command("check")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is not started.")
@click.option("--root", metavar="TREE", help="A folder that stands for /: an unpacked image, a recorded machine.")
@click.option("--ext", "extensions", metavar="FILE.so", multiple=True,
              help="Judge this self-built extension against the environment; may be repeated.")
@click.option("--wheel", "wheels", metavar="FILE.whl", multiple=True,
              help="Judge the environment as it would be with this wheel; may be repeated.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True,
              help="A variable of the process to judge; with --root there are no others. May be repeated.")
@click.option("--deep", is_flag=True, help="Hash every installed file, too.")
@click.option("--expect", "expect", metavar="LOCK",
              help="Compare with a lockfile of pip, and with the proof beside it.")
@click.option("--proof", "proof", metavar="FILE", help="The proof of --expect; else the one beside the lockfile.")
@click.option("--fail-on", type=click.Choice(FAIL_ON), default="error", show_default=True,
              help="Severity from which on the exit status is 1.")
@common_options
def command(**options: Any) -> int:
    """Inspect an environment, simulate what its imports load, and name what is wrong and what cures it.

    Nothing of it is imported, run or changed, and no network is used.
    """
    if sys.stdout is None:      # as `>&-` leaves it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    with rare_collections():
        return check(options)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Garbage collection is rare meanwhile: a check makes records by the ten thousand, and hardly any cycle."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def check(options: dict[str, Any]) -> int:
    """The exit status."""
    from stackfix.cli.inspecting import asked_for, open_view
    from stackfix.diagnose.diagnose import diagnose
    from stackfix.report.check import at_or_above

    common = take_common(options)
    fail_on: str = options["fail_on"]
    if options["proof"] is not None and options["expect"] is None:
        raise BadInput("--proof", "says nothing without --expect", "name the lockfile that it proves, too")
    asked = asked_for(options)
    with (
        Bars(shown=asked.deep and not (common.quiet or common.as_json)) as bars,
        open_view(asked, bars.hashing if asked.deep else None, None if common.quiet else tell_of_waiting) as view,
    ):
        diagnosis = diagnose(view)
        compared = compare(view, options)
    show(diagnosis, view, asked, common, fail_on=fail_on, compared=compared)
    if asked.root.live and os.path.lexists(f"{view.environment.prefix}/.stackfix"):
        from stackfix.cli.repair_idle import tell_idle

        tell_idle(view.environment.prefix, common)
    deviates = compared is not None and bool(compared.deviations) and fail_on != "never"
    return 1 if deviates or any(at_or_above(each, fail_on) for each in diagnosis.findings) else 0


def compare(view: View, options: dict[str, Any]) -> Compared | None:
    """The environment beside the lockfile of --expect; None without one."""
    if options["expect"] is None:
        return None
    from stackfix.cli.check_expect import compare_with

    return compare_with(view, options["expect"], options["proof"])


def tell_of_waiting() -> None:
    """A line for who would otherwise look at nothing: nvidia-smi hangs on a wedged driver."""
    if is_terminal(sys.stderr):
        click.echo("waiting for nvidia-smi, 10 seconds at most", err=True)


def show(diagnosis: Diagnosis, view: View, asked: Asked, common: CommonOptions, *, fail_on: str,
         compared: Compared | None) -> None:
    """The document, or the lines for people, on stdout."""
    root = None if asked.root.live else asked.root.folder
    if common.as_json:
        from stackfix.report.check_json import check_document
        from stackfix.report.json import render_json
        from stackfix.report.printable import printable_json

        document = check_document(diagnosis, view.environment, view.machine, projects=stack_projects(view), root=root,
                                  wheels=asked.wheels)
        click.echo(printable_json(render_json({**document, **expected(compared)})))
        return
    from stackfix.cli.terminal import colour_wanted, stdout_style, stdout_width
    from stackfix.report.check import check_lines
    from stackfix.report.lines import Manner
    from stackfix.report.printable import printable

    place = view.environment.prefix + (f" of {root}" if root else "")
    place += f" with {', '.join(asked.wheels)}" if asked.wheels else ""
    manner = Manner(style=stdout_style(), verbose=bool(common.verbose), quiet=common.quiet, fail_on=fail_on,
                    width=stdout_width())
    for line in check_lines(diagnosis, view.environment.notes, place, manner):
        click.echo(line, color=colour_wanted(sys.stdout))
    if compared is not None and (compared.deviations or not common.quiet):
        from stackfix.report.expected import expected_lines

        for line in expected_lines(compared.lock, compared.proof, compared.deviations, manner.style):
            click.echo(line, color=colour_wanted(sys.stdout))
    here = root is None and not asked.extensions and not asked.wheels
    if here and not common.quiet and any(each.repairable and each.severity != "note" for each in diagnosis.findings):
        from stackfix.cli.command_shown import command_for

        shown = command_for(view.environment.prefix, "repair", "--dry-run")
        click.echo(printable(f"`{shown}` shows what would cure it"))


def expected(compared: Compared | None) -> dict[str, Any]:
    """What JSON says of the lockfile; nothing without one."""
    if compared is None:
        return {}
    from stackfix.report.expected import expected_document

    return {"expected": expected_document(compared.lock, compared.proof, compared.deviations)}


def stack_projects(view: View) -> frozenset[str]:
    """Installed projects and conda packages that belong to the GPU stack."""
    imports = {each.project for each in view.libraries.imports}
    wheels = {project for each in view.libraries.families for project in each.projects}
    conda = {package for each in view.libraries.families for package in each.conda}
    suffixed = {f"{project}-cu{major}" for project in wheels for major in (11, 12, 13)}
    named = {each.name for each in view.environment.distributions if each.name.startswith("nvidia-")}
    return frozenset(imports | wheels | conda | suffixed | named)
