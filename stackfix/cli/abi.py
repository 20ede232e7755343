"""`stackfix abi`: with which torch, CUDA, Python and C library a binary can load, by its symbols. Nothing is loaded."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from stackfix.cli.check import rare_collections
from stackfix.cli.common import CommonOptions, common_options, take_common
from stackfix.cli.progress import Bars

if TYPE_CHECKING:
    from stackfix.abi.host import Answer, Host, HostSymbols, Suggestion
    from stackfix.abi.records import AbiFacts, Books, TorchBook
    from stackfix.cli.abi_host import Capabilities
    from stackfix.cli.abi_subject import Asked
    from stackfix.inspect.compiled_installed import Installation


@click.command("abi")
@click.argument("subject", metavar="FILE.so|FILE.whl|PACKAGE")
@click.option("--torch", metavar="VERSION", help="Compare with this release of torch, not with the environment.")
@click.option("--prefix", metavar="DIR", help="The environment; else VIRTUAL_ENV, CONDA_PREFIX, this interpreter.")
@click.option("--python", metavar="EXE", help="Its interpreter, which is not started.")
@click.option("--root", metavar="TREE", help="A folder that stands for /: an unpacked image, a recorded machine.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True,
              help="A variable of the process to judge; with --root there are no others. May be repeated.")
@click.option("--symbols", is_flag=True, help="List every symbol that it asks of torch.")
@common_options
def command(**options: Any) -> int:
    """Tell with which torch, C++ ABI, CUDA, cuDNN, Python, glibc and GPUs a compiled extension can load.

    Nothing is imported, run or changed, and no network is used. Where torch is installed, it is compared with that.
    """
    if sys.stdout is None:      # as `>&-` leaves it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    with rare_collections():
        return abi(options)


def abi(options: dict[str, Any]) -> int:
    """The exit status."""
    from stackfix.abi.host import DOES_NOT_FIT
    from stackfix.cli.abi_subject import asked_for

    common = take_common(options)
    with Bars(shown=not (common.quiet or common.as_json)) as bars:
        asked = asked_for(options)
        answer = answer_to(asked, bars, symbols=options["symbols"])
    show(answer, common)
    return 1 if answer.verdict == DOES_NOT_FIT else 0


def answer_to(asked: Asked, bars: Bars, *, symbols: bool) -> Answer:
    """All that can be told. Raises BadInput, Unreachable."""
    from stackfix.abi.books import open_books
    from stackfix.abi.facts import abi_facts
    from stackfix.abi.fit import fit, verdict_of
    from stackfix.abi.fit_claims import claims
    from stackfix.abi.fit_libraries import lost_for_some
    from stackfix.abi.host import DOES_NOT_FIT, Answer
    from stackfix.abi.torch_asked import asked_of
    from stackfix.cli.abi_host import Capabilities
    from stackfix.cli.abi_subject import open_installation, read_subject
    from stackfix.diagnose.gpu_archs import runs_on
    from stackfix.diagnose.releases import admits
    from stackfix.inspect.environment_records import Note

    notes, gpus = list[Note](), Capabilities(asked.root)
    wanted = asked.torch is None or asked.kind == "package"
    installation = open_installation(asked, notes) if wanted else None
    compiled = read_subject(asked, installation, notes,
                            lambda done, total: bars.download(asked.named.rpartition("/")[2], done, total))
    books = open_books()
    facts = abi_facts(compiled, books)
    host, offers = host_for(asked, installation, facts, books, gpus)
    axes = fit(facts, host, offers, books, lambda archs, gpu: runs_on(archs, gpu).answer) if host else ()
    verdict = verdict_of(axes) if axes else None
    suggestions: tuple[Suggestion, ...] = ()
    if host is not None and verdict == DOES_NOT_FIT:
        from stackfix.cli.abi_nearest import suggestions_for

        suggestions = suggestions_for(facts, host, axes, books, installation)
    return Answer(
        facts=facts, claims=claims(facts, books.torch, admits), host=host, axes=axes, verdict=verdict,
        suggestions=suggestions,
        symbols=tuple(each.deciding() for each in asked_of(compiled.files, books.torch)) if symbols else None,
        notes=(*((each.path, each.reason) for each in notes), *compiled.unreadable, *strays(facts, books.torch),
               *(lost_for_some(facts, offers) if host else ())))


def strays(facts: AbiFacts, book: TorchBook) -> Iterator[tuple[str, str]]:
    """A remark on libraries that one file needs, that are not beside it, and that should have what nobody has."""
    from stackfix.abi.fit_libraries import libraries_of_others
    from stackfix.abi.torch_asked import names_of_others

    if facts.subject.origin != "file" or not any(names_of_others(facts.subject.files, book)):
        return

    if others := libraries_of_others(facts.subject.files):
        yield facts.subject.name, (f"needs {', '.join(others)}, not found beside it: "
                                   "what it asks of them is not judged")


def host_for(asked: Asked, installation: Installation | None, facts: AbiFacts, books: Books,
             gpus: Capabilities) -> tuple[Host | None, HostSymbols | None]:
    """What to compare with. None where there is nothing, or nothing that somebody asked for."""
    if asked.torch is not None:
        from stackfix.cli.abi_release import host_of_release

        return host_of_release(asked.torch, books, facts.machine), None
    if installation is None or not facts.subject.files:
        return None, None
    from stackfix.cli.abi_host import read_host
    from stackfix.cli.places_named import place_of

    meant = asked.environment_named or asked.kind == "package"
    if not meant and installation.find("torch") is None:
        return None, None
    folder = place_of(asked.root, asked.named).rpartition("/")[0] if asked.kind == "file" else None
    return read_host(installation, asked.environ, gpus.result() if facts.gpu else (), folder)


def show(answer: Answer, common: CommonOptions) -> None:
    """The document, or the lines for people, on stdout."""
    if common.as_json:
        from stackfix.report.abi_json import abi_document
        from stackfix.report.json import render_json
        from stackfix.report.printable import printable_json

        click.echo(printable_json(render_json(abi_document(answer))))
        return
    from stackfix.cli.terminal import colour_wanted, stdout_style, stdout_width
    from stackfix.report.abi import abi_lines
    from stackfix.report.lines import Manner

    manner = Manner(style=stdout_style(), verbose=bool(common.verbose), quiet=common.quiet, width=stdout_width())
    for line in abi_lines(answer, manner):
        click.echo(line, color=colour_wanted(sys.stdout))
