"""How the comparison of a binary with what is there is printed, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.abi.host import DOES_NOT_FIT, FITS, Answer, Axis, Lacking
from stackfix.abi.records import Deciding
from stackfix.report.lines import Manner, led
from stackfix.report.printable import printable

COLOURS = {FITS: "green", DOES_NOT_FIT: "red"}
WIDE = 14               # of the column of labels
MOST = 3                # symbols of one reason without -v
LISTED = "needs"        # the axis that lists libraries
LONGEST = 160           # of a readable name without -v
BASES = {"symbols": "as its symbols say", "declared": "as it declares", "file name": "as its file name says"}


def fit_lines(answer: Answer, manner: Manner) -> Iterator[str]:
    """The comparison with what is there."""
    if answer.host is None or answer.verdict is None:
        return
    yield ""
    verdict, text = answer.verdict, fit_headline(answer)
    lead = [("cannot tell whether it fits" if verdict not in COLOURS else verdict, COLOURS.get(verdict, "yellow"))]
    yield from led(lead, f" {printable(text)}", "  ", manner)
    hidden = [axis for axis in answer.axes if axis.verdict == FITS and ".so" in axis.name and not manner.verbose]
    for axis in answer.axes:
        if axis not in hidden:
            yield from axis_lines(axis, manner)
    if hidden:
        lead = [(f"  {'libraries':<{WIDE}}", ""), (FITS, COLOURS[FITS]), ("  ", "")]
        yield from led(lead, f"{len(hidden)} of NVIDIA's have all functions that it calls", " " * (WIDE + 4), manner)
    for each in answer.suggestions:
        found = each.nearest
        build = f" ({found.build})" if found.build else ""
        text = f"{found.package} {found.version}{build}, {BASES.get(found.basis, found.basis)}"
        yield from row("nearest", text, manner)
        if each.command:
            yield " " * (WIDE + 4) + printable(each.command)


def fit_headline(answer: Answer) -> str:
    """What it is compared with."""
    host = answer.host
    torch = f"torch {host.torch.version}" if host is not None and host.torch else "no torch"
    if answer.facts.torch is None:      # it asks nothing of torch: all that is there counts
        return f"what is in {host.prefix}" if host is not None and host.prefix else f"the libraries that {torch} pins"
    return f"{torch} in {host.prefix}" if host is not None and host.prefix else f"{torch}, by the almanac"


def axis_lines(axis: Axis, manner: Manner) -> Iterator[str]:
    """One axis, and the symbols that say so."""
    has = f" (here: {axis.has})" if axis.has and axis.verdict != FITS else ""
    name = f"  {axis.name:<{WIDE}}" if len(axis.name) < WIDE - 1 else f"  {axis.name}  "
    lead = [(name, ""), (axis.verdict, COLOURS.get(axis.verdict, "yellow")), ("  ", "")]
    needs = axis.needs if axis.name != LISTED or manner.verbose else first_of(axis.needs)
    text = f"{needs}{has}: {axis.reason}" if axis.verdict != FITS else axis.has or axis.reason
    yield from led(lead, printable(text), " " * (WIDE + 4), manner)
    yield from named(axis.missing, manner)


def first_of(listed: str) -> str:
    """The first few of a list."""
    each = listed.split(", ")
    return f"{', '.join(each[:MOST])} and {len(each) - MOST} more (-v)" if len(each) > MOST else listed


def named(symbols: Sequence[Deciding | Lacking], manner: Manner) -> Iterator[str]:
    """Symbols, readable, with -v as they stand in the file too."""
    shown = symbols if manner.verbose else symbols[:MOST]
    for each in shown:
        text = each.demangled or each.name
        yield " " * (WIDE + 4) + printable(text if manner.verbose or len(text) <= LONGEST else f"{text[:LONGEST]}…")
        if manner.verbose:
            mangled = f"{each.name}, " if each.demangled else ""
            yield " " * (WIDE + 6) + manner.style(printable(f"{mangled}in {each.file}"), "dim")
    if len(symbols) > len(shown):
        yield " " * (WIDE + 4) + manner.style(f"… {len(symbols) - len(shown)} more (-v)", "dim")


def row(label: str, text: str, manner: Manner) -> Iterator[str]:
    """A label and its text."""
    yield from led([(f"  {label:<{WIDE}}", "dim")], printable(text), " " * (WIDE + 2), manner)


__all__ = ["WIDE", "axis_lines", "fit_lines", "named", "row"]
