"""An explanation as lines for people, and as a document."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.explain.records import Cause, Explanation
from stackfix.report.printable import printable

UNKNOWN = "unknown: no rule of stackfix recognises this error"


def explanation_document(explanation: Explanation) -> dict[str, object]:
    """The document of --json."""
    return {
        "schema_version": 1,
        "kind": explanation.kind,
        "causes": [cause_document(each) for each in explanation.causes],
        "messages": [
            {"rule": each.rule, "kind": each.kind, "line": each.line, "text": each.quoted, "fields": dict(each.fields)}
            for each in explanation.messages
        ],
        "read": dict(explanation.fields),
    }


def cause_document(cause: Cause) -> dict[str, object]:
    """One cause."""
    return {"summary": cause.summary, "because": list(cause.because), "culprit": cause.culprit,
            "confirm": cause.confirm, "cure": cause.cure, "avoid": cause.avoid}


def explanation_lines(explanation: Explanation, *, verbose: bool) -> Iterator[str]:
    """What happened, then each cause with its cure; only the first where it is not verbose."""
    if not explanation.causes:
        yield UNKNOWN
    for number, cause in enumerate(explanation.causes if verbose else explanation.causes[:3]):
        if number:
            yield ""
        yield from map(printable, cause_lines(cause))
    if explanation.fields and (verbose or not explanation.causes):
        yield printable("read from it: " + ", ".join(f"{name} {value}" for name, value in explanation.fields.items()))


def cause_lines(cause: Cause) -> Iterator[str]:
    """One cause."""
    yield cause.summary
    yield from (f"  because {each}" for each in cause.because)
    if cause.culprit:
        yield f"  culprit: {cause.culprit}"
    if cause.confirm:
        yield f"  confirm: {cause.confirm}"
    yield f"  cure: {cause.cure}"
    if cause.avoid:
        yield f"  avoid: {cause.avoid}"
