"""An explanation as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.explain.here_records import Here, Inspected
from stackfix.explain.records import Cause, Explanation, Message
from stackfix.quick import replace
from stackfix.report.lines import INDENT, Manner, led
from stackfix.report.printable import printable
from stackfix.report.redact import redacted

MOST_CAUSES = 3         # without -v
MOST_QUOTED = 160       # characters of a message
UNKNOWN = "unknown: no rule of stackfix recognises this error"
VERDICTS = {"so here": "red", "not so here": "green", "cannot tell": "dim"}


def explanation_lines(explanation: Explanation, inspected: Inspected | None, manner: Manner) -> Iterator[str]:
    """What happened, then each cause with its cure and what is true here; the most probable alone with -q."""
    if not explanation.causes:
        yield from map(redacted, unknown_lines(explanation, inspected, manner))
    elif manner.quiet:
        yield from map(redacted, quiet_lines(explanation, manner))
    else:
        yield from map(redacted, known_lines(explanation, inspected, manner))


def unknown_lines(explanation: Explanation, inspected: Inspected | None, manner: Manner) -> Iterator[str]:
    """That it is unknown, what could be read from it, and what is found here of the files and symbols that it names."""
    yield manner.style(UNKNOWN, "bold")
    if manner.quiet:
        return
    if explanation.fields:
        yield from ("", manner.style("read from it:", "bold"))
        yield from field_lines(explanation, manner)
    yield ""
    if inspected is None:
        yield from led([("", "")], "`stackfix check` tells whether an environment itself is sound", "", manner)
        return
    for finding in inspected.findings:
        yield from labelled("here", "red", [f"{finding.code} {finding.kind}: {finding.summary}"], manner)
        yield from labelled("", "dim", [f"cure: {each}" for each in finding.cure[:1]], replace(manner, width=None))
    if not inspected.findings and inspected.error is None:
        yield from labelled("here", "dim", ["nothing is found of the symbols and files that it names"], manner)
    yield from environment_lines(inspected, manner)


def quiet_lines(explanation: Explanation, manner: Manner) -> Iterator[str]:
    """The most probable cause, and its cure."""
    first = explanation.causes[0]
    yield from led([("", "")], printable(first.summary), "", manner)
    yield from led([("cure: ", "")], printable(first.cure), "  ", replace(manner, width=None))


def known_lines(explanation: Explanation, inspected: Inspected | None, manner: Manner) -> Iterator[str]:
    """Each message with its causes."""
    left = len(explanation.causes) if manner.verbose else MOST_CAUSES
    heres = inspected.heres if inspected else ()
    for number, message in enumerate(explanation.messages):
        shown = message.causes[:left]
        if not shown:
            break
        left -= len(shown)
        if number:
            yield ""
        yield from message_lines(message, shown, heres[number] if number < len(heres) else None, manner)
    hidden = len(explanation.causes) - (MOST_CAUSES if not manner.verbose else len(explanation.causes))
    if hidden > 0:
        yield from ("", f"{hidden} more cause{'s' * (hidden != 1)}, less probable (-v)")
    if inspected is not None:
        yield ""
        yield from environment_lines(inspected, manner)
    if manner.verbose and explanation.fields:
        yield from ("", manner.style("read from the text:", "bold"))
        yield from field_lines(explanation, manner)


def message_lines(message: Message, causes: Sequence[Cause], here: Here | None, manner: Manner) -> Iterator[str]:
    """The message as it stands in the text, what is true of it here, and its causes."""
    lead = [(message.kind, "bold"), (f", line {message.line}: ", "")]
    quoted = message.quoted if manner.verbose or len(message.quoted) <= MOST_QUOTED else (
        message.quoted[:MOST_QUOTED] + "…")
    yield from led(lead, printable(quoted), "  ", manner)
    if here is not None:
        yield from here_lines(here, manner)
    for number, cause in enumerate(causes):
        if number:
            yield ""
        yield from cause_lines(cause, manner, chance="else" if number else "")


def cause_lines(cause: Cause, manner: Manner, *, chance: str = "") -> Iterator[str]:
    """One cause: labels in a column; commands and paths are to be copied whole, so they are not broken."""
    yield from labelled(chance or "cause", "yellow", [cause.summary], manner)
    yield from labelled("because", "dim", cause.because, manner)
    whole = replace(manner, width=None)
    yield from labelled("culprit", "dim", [cause.culprit], whole)
    yield from labelled("confirm", "dim", [cause.confirm], whole)
    yield from labelled("cure", "green", cause.cure.splitlines(), whole)
    yield from labelled("avoid", "dim", [cause.avoid], whole)


def here_lines(here: Here, manner: Manner) -> Iterator[str]:
    """What is true of a message in the environment, with the findings that it is."""
    yield from labelled("here", VERDICTS[here.verdict], [f"{here.verdict}: {here.text}"], manner)
    for finding in here.findings:
        texts = [f"{finding.code} {finding.kind}" + (f", {finding.culprit.path}" if finding.culprit.path else "")]
        texts += [f"cure: {each}" for each in finding.cure[:1]]
        yield from labelled("", "dim", texts, replace(manner, width=None))
    yield from labelled("", "dim", [f"`{here.command}`" if here.command else None], replace(manner, width=None))


def environment_lines(inspected: Inspected, manner: Manner) -> Iterator[str]:
    """Which environment "here" is, or why none could be seen."""
    place = inspected.prefix or "the environment"
    place += f" of {inspected.root}" if inspected.root else ""
    python = f", Python {inspected.python}" if inspected.python else ""
    text = f"{place}{python} (--no-inspect leaves it out)"
    if inspected.error is not None:
        text = f"{place} could not be inspected: {inspected.error}"
    yield from led([("here", "dim"), (": ", "")], printable(text), "  ", manner)


def field_lines(explanation: Explanation, manner: Manner) -> Iterator[str]:
    """What was read from the whole text."""
    for name, value in explanation.fields.items():
        yield from led([("  ", ""), (f"{name.replace('_', ' ')}: ", "dim")], printable(value), "    ", manner)


def labelled(label: str, colour: str, texts: Sequence[str | None], manner: Manner) -> Iterator[str]:
    """Texts behind a label, one a line; nothing where there are none."""
    for number, text in enumerate(filter(None, texts)):
        shown = label if number == 0 else ""
        lead = [("  ", ""), (shown, colour if shown else ""), (" " * (INDENT - 2 - len(shown)), "")]
        yield from led(lead, printable(text), " " * INDENT, manner)
