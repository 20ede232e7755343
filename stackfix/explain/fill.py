"""Texts of a rule with the fields of a message put in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.explain.records import Cause, CauseText, Fields

FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def filled_causes(causes: tuple[CauseText, ...], fields: Fields) -> Iterator[Cause]:
    """The causes that hold for these fields, in the rule's order, but those whose summary or cure lacks a field."""
    for each in causes:
        if all(holds(condition, fields) for condition in each.when):
            cause = filled_cause(each, fields)
            if cause is not None:
                yield cause


def filled_cause(cause: CauseText, fields: Fields) -> Cause | None:
    """The cause in words; None where its summary or cure names a field that is not known."""
    summary, cure = filled(cause.summary, fields), filled(cause.cure, fields)
    if summary is None or cure is None:
        return None
    because = (filled(each, fields) for each in cause.because)
    return Cause(
        summary=summary,
        because=tuple(each for each in because if each is not None),
        culprit=filled(cause.culprit, fields),
        confirm=filled(cause.confirm, fields),
        cure=cure,
        avoid=filled(cause.avoid, fields),
    )


def holds(condition: str, fields: Fields) -> bool:
    """`symbol`: it is known; `!symbol`: it is not; `major=12`, `major!=12`: it is known, and so or otherwise."""
    name, operator, value = re.fullmatch(r"(!?[a-z][a-z0-9_]*)(?:(!?=)(.*))?", condition).groups()  # type: ignore[union-attr]
    if operator is None:
        return not fields.get(name[1:]) if name.startswith("!") else bool(fields.get(name))
    found = fields.get(name)
    return bool(found) and (found == value) is (operator == "=")


def filled(text: str | None, fields: Fields) -> str | None:
    """The text; None where it is None or names a field that is not known."""
    if text is None or any(not fields.get(name) for name in FIELD.findall(text)):
        return None
    return FIELD.sub(lambda match: fields[match[1]], text)


def fields_named(cause: CauseText) -> frozenset[str]:
    """The fields that a cause's texts name."""
    texts = (cause.summary, *cause.because, cause.culprit or "", cause.confirm or "", cause.cure, cause.avoid or "")
    return frozenset(name for text in texts for name in FIELD.findall(text))
