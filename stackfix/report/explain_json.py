"""The JSON document of `stackfix explain`. Its shape: docs/commands.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stackfix.explain.here_records import Here, Inspected
from stackfix.explain.records import Cause, Explanation, Message


def explanation_document(explanation: Explanation, inspected: Inspected | None = None) -> dict[str, Any]:
    """All that is said. `here` and `environment` are null where no environment was inspected."""
    heres: Sequence[Here | None] = inspected.heres if inspected and not inspected.error else ()
    heres = [*heres, *[None] * (len(explanation.messages) - len(heres))]
    pairs = list(zip(explanation.messages, heres, strict=True))
    return {
        "kind": explanation.kind,
        "causes": [cause_document(cause, here) for message, here in pairs for cause in message.causes],
        "messages": [message_document(message, here) for message, here in pairs],
        "read": dict(explanation.fields),
        "environment": None if inspected is None else environment_document(inspected),
    }


def cause_document(cause: Cause, here: Here | None) -> dict[str, Any]:
    """One cause."""
    return {"summary": cause.summary, "because": list(cause.because), "culprit": cause.culprit,
            "confirm": cause.confirm, "cure": cause.cure, "avoid": cause.avoid, "here": here_document(here)}


def message_document(message: Message, here: Here | None) -> dict[str, Any]:
    """One message of the text."""
    return {"rule": message.rule, "kind": message.kind, "line": message.line, "text": message.quoted,
            "fields": dict(message.fields), "causes": len(message.causes), "here": here_document(here)}


def here_document(here: Here | None) -> dict[str, Any] | None:
    """What is true of a message in the environment that was inspected."""
    if here is None:
        return None
    from stackfix.report.check_json import finding_document

    return {"verdict": here.verdict, "text": here.text, "command": here.command,
            "findings": [finding_document(each) for each in here.findings]}


def environment_document(inspected: Inspected) -> dict[str, Any]:
    """The environment; with `error` nothing else is known of it."""
    from stackfix.report.check_json import finding_document

    return {"prefix": inspected.prefix, "python": inspected.python, "found_via": inspected.found_via,
            "root": inspected.root, "error": inspected.error,
            "findings": [finding_document(each) for each in inspected.findings]}
