"""What `stackfix check` prints: the worst first, then the pyramid, each finding, and what cannot be told here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Diagnosis, Finding, Level, Requester
from stackfix.inspect.environment_records import Note
from stackfix.quick import replace
from stackfix.report.lines import INDENT, Manner, led, wrapped
from stackfix.report.printable import printable
from stackfix.report.redact import redacted

NAMES = {"driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "torch": "torch", "extensions": "extensions",
         "environment": "environment"}
COLOURS = {"error": "red", "warning": "yellow", "note": "dim", "ok": "green", "cannot-tell": "dim", "absent": "dim"}
MOST = 3                # symbols and lines of evidence of one finding, and questions left open, without -v
MOST_BLOCKS = 6         # findings in full without -v
MOST_NOTES = 6


def check_lines(diagnosis: Diagnosis, notes: Sequence[Note], place: str, manner: Manner) -> Iterator[str]:
    """All lines. `notes`: what could not be read of the environment; `place`: its prefix."""
    yield from map(redacted, quiet_lines(diagnosis, manner) if manner.quiet
                   else whole_lines(diagnosis, notes, place, manner))


def at_or_above(finding: Finding, severity: str) -> bool:
    """Whether a finding is as bad as `severity`; nothing is as bad as "never"."""
    return severity in SEVERITIES and SEVERITIES.index(finding.severity) <= SEVERITIES.index(severity)


def quiet_lines(diagnosis: Diagnosis, manner: Manner) -> Iterator[str]:
    for each in diagnosis.findings:
        if at_or_above(each, manner.fail_on):
            yield from block(each, manner)


def whole_lines(diagnosis: Diagnosis, notes: Sequence[Note], place: str, manner: Manner) -> Iterator[str]:
    style = manner.style
    serious = [each for each in diagnosis.findings if each.severity != "note"]
    yield from headline(serious, place, manner)
    yield ""
    for level in diagnosis.levels:
        yield from level_line(level, manner)
    shown = len(serious) if manner.verbose else MOST_BLOCKS
    for each in serious[:shown]:
        yield ""
        yield from block(each, manner)
    yield from folded(serious[shown:], len(serious), manner)
    yield from note_lines([each for each in diagnosis.findings if each.severity == "note"], manner)
    yield from undecided_lines(diagnosis, manner)
    if manner.verbose and notes:
        yield from ("", style("not read, or to be known:", "bold"))
        for note in notes:
            yield from wrapped(f"{printable(note.path)}: {printable(note.reason)}", "  ", manner)
    yield from ("", style(sum_line(diagnosis, notes, verbose=manner.verbose), "bold"))


def headline(serious: Sequence[Finding], place: str, manner: Manner) -> Iterator[str]:
    """For those who read no further: how many, the worst of them, its first cure."""
    if not serious:
        yield from led([("nothing wrong found", "green")], f" in {printable(place)}", "  ", manner)
        return
    worst = serious[0]
    yield from led([(counted(serious), COLOURS[worst.severity])], f" in {printable(place)}", "  ", manner)
    yield from wrapped(printable(worst.summary), "  ", manner)
    if worst.cure:
        yield from led([("  cure: ", "")], printable(worst.cure[0]), "  ", replace(manner, width=None))


def counted(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 warning`."""
    numbers = [(sum(each.severity == severity for each in findings), severity) for severity in SEVERITIES]
    return ", ".join(f"{number} {severity}{'s' * (number != 1)}" for number, severity in numbers if number)


def level_line(level: Level, manner: Manner) -> Iterator[str]:
    """`CUDA         error        nvidia-cuda-runtime-cu12 12.1.105`."""
    name, verdict = f"  {NAMES.get(level.name, level.name):<13}", level.verdict.replace("-", " ")
    yield from led([(name, ""), (verdict, COLOURS[level.verdict]), (" " * (13 - len(verdict)), "")],
                   printable(level.text), " " * 28, manner)


def block(finding: Finding, manner: Manner) -> Iterator[str]:
    """One finding in full."""
    lead = [(finding.severity, COLOURS[finding.severity]), (" ", ""), (finding.code, "bold"), (" ", "")]
    yield from led(lead, finding.kind, "  ", manner)
    for label, lines, breakable in parts_of(finding, verbose=manner.verbose):
        for number, line in enumerate(lines):
            lead = [("  ", ""), (label if number == 0 else "", "dim")]
            lead.append((" " * (INDENT - 2 - len(lead[1][0])), ""))
            yield from led(lead, printable(line), " " * INDENT, manner if breakable else replace(manner, width=None))


def title(finding: Finding, manner: Manner) -> Iterator[str]:
    """`error SF101 …`: a finding in one line."""
    lead = [(finding.severity, COLOURS[finding.severity]), (" ", ""), (finding.code, "bold"), (" ", "")]
    yield from led(lead, printable(finding.summary), "  ", manner)


def parts_of(finding: Finding, *, verbose: bool) -> Iterator[tuple[str, Sequence[str], bool]]:
    """(label, lines, whether a line may be broken): commands and paths are to be copied whole."""
    yield "what", [finding.summary], True
    yield "why", [finding.why] if finding.why else [], True
    yield "message", [finding.error] if finding.error else [], False
    yield from who(finding)
    yield "lacks", few(finding.symbols, verbose=verbose), False
    yield "evidence", few(finding.evidence, verbose=verbose), True
    yield "cure", finding.cure, False
    if verbose and finding.why_not and not finding.repairable:
        yield "by hand", [finding.why_not], True
    yield "more", [f"docs/findings.md, {finding.code}"], True


def who(finding: Finding) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Winner and loser of a shadow, else the culprit; then who needs it."""
    culprit = named(finding.culprit)
    if finding.winner:
        yield "taken", [finding.winner], False
        yield "wanted", [finding.loser] if finding.loser else [], False
        culprit = [each for each in culprit if each not in {finding.winner, finding.loser}]
    yield "culprit", culprit, False
    yield "needed by", named(finding.requester) if finding.requester else [], False


def named(which: Culprit | Requester) -> list[str]:
    """The path, the package and the variable, as far as they are given."""
    variable = which.variable if isinstance(which, Culprit) else None
    place = f"{which.path} ({which.package})" if which.path and which.package else which.path or which.package
    return [each for each in (place, variable) if each]


def few(items: Sequence[str], *, verbose: bool) -> Sequence[str]:
    """The first, and how many more there are."""
    if verbose or len(items) <= MOST + 1:       # a line that only says "1 more" would say less than the item
        return items
    return [*items[:MOST], f"… {len(items) - MOST} more (-v)"]


def folded(rest: Sequence[Finding], total: int, manner: Manner) -> Iterator[str]:
    """Further findings in one line each."""
    if rest:
        yield ""
        yield manner.style(f"{len(rest)} more of {total} (in full with -v)", "bold")
    yield from one_liners(rest, manner)


def one_liners(findings: Sequence[Finding], manner: Manner) -> Iterator[str]:
    for each in findings:
        yield from title(each, manner)


def note_lines(notes: Sequence[Finding], manner: Manner) -> Iterator[str]:
    """Findings that are only worth knowing: a line each, or in full with -v."""
    for each in notes if manner.verbose else ():
        yield ""
        yield from block(each, manner)
    if notes and not manner.verbose:
        yield ""
        yield from one_liners(notes[:MOST_NOTES], manner)
        if len(notes) > MOST_NOTES:
            yield f"… {len(notes) - MOST_NOTES} more notes (-v)"


def undecided_lines(diagnosis: Diagnosis, manner: Manner) -> Iterator[str]:
    """What this machine cannot answer."""
    if not diagnosis.undecided:
        return
    yield ""
    yield manner.style("cannot be told here:", "bold")
    told = [f"{each.subject}: {each.reason}" for each in diagnosis.undecided]
    for line in few(told, verbose=manner.verbose):
        yield from wrapped(printable(line), "  ", manner, hanging="    ")


def sum_line(diagnosis: Diagnosis, notes: Sequence[Note], *, verbose: bool) -> str:
    """`1 error, 2 notes; 3 questions stay open`."""
    parts = [counted(diagnosis.findings) or "no finding"]
    if open_ := len(diagnosis.undecided):
        parts.append(f"{open_} question{'s' * (open_ != 1)} open")
    if notes and not verbose:
        parts.append(f"{len(notes)} remark{'s' * (len(notes) != 1)} on what was read (-v)")
    return "; ".join(parts)
