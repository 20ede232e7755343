"""Which rules a text holds, and what they read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from stackfix.explain.records import Fields, Line, Message, Rule, Text

FRAME = re.compile(r"^[\s│├└╰╭─▶┬┤|\u00d7]+")
MOST_JOINED = 8192          # characters of a message that runs over lines
MOST_MESSAGES = 200         # of a text, each different in what it says; a log repeats itself


def find_messages(text: Text, rules: Iterable[Rule]) -> tuple[Message, ...]:
    """What was found: heaviest first, of equal ones the later line, since the last error of a traceback decides.

    One message for each rule and what it read; rules that another one hides are left out. The fields are those of the
    pattern and, where the rule asks for more, of the rest of the text.
    """
    lowered = [line.text.lower() for line in text.lines]
    whole = "\n".join(lowered)
    weights: dict[str, int] = {}
    hidden: set[str] = set()
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Message] = {}
    for rule in rules:
        if not any(anchor in whole for anchor in rule.anchors):
            continue
        for message in messages_of(rule, text, lowered):
            found[rule.name, tuple(sorted(message.fields.items()))] = message
            weights[rule.name] = rule.weight
            hidden.update(rule.hides)
            if len(found) >= MOST_MESSAGES:
                break
    kept = [each for each in found.values() if each.rule not in hidden]
    return tuple(sorted(kept, key=lambda each: (-weights[each.rule], -each.line, each.rule)))


def messages_of(rule: Rule, text: Text, lowered: list[str]) -> Iterator[Message]:
    """Each line in which the rule is found; none where the text lacks what it asks for besides."""
    beside = fields_beside(rule, text)
    if beside is None:
        return
    patterns = [re.compile(pattern) for pattern in rule.patterns]
    for position, (line, low) in enumerate(zip(text.lines, lowered, strict=True)):
        if not any(anchor in low for anchor in rule.anchors):
            continue
        stretch = line.text if rule.lines == 1 else joined(text.lines[position:position + rule.lines])
        match = next(filter(None, (pattern.search(stretch) for pattern in patterns)), None)
        if match and match.start() < len(line.text):        # else it is found again where it begins
            fields = {**beside, **named(match)}
            yield Message(rule=rule.name, kind=rule.kind, line=line.number, quoted=line.text, fields=fields)


def joined(lines: Iterable[Line]) -> str:
    """Lines as one, without the bars and branches that uv, pip and libmamba draw before them."""
    return " ".join(FRAME.sub("", line.text) for line in lines)[:MOST_JOINED]


def fields_beside(rule: Rule, text: Text) -> dict[str, str] | None:
    """What the `also` and `reads` patterns read; None where one of the former is not found."""
    fields: dict[str, str] = {}
    for pattern in rule.reads:
        match = first_match(re.compile(pattern), text.lines)
        fields = {**(named(match) if match else {}), **fields}
    for pattern in rule.also:
        match = first_match(re.compile(pattern), text.lines)
        if match is None:
            return None
        fields.update(named(match))
    return fields


def first_match(pattern: re.Pattern[str], lines: Iterable[Line]) -> re.Match[str] | None:
    """The first line's match."""
    return next(filter(None, (pattern.search(line.text) for line in lines)), None)


def named(match: re.Match[str]) -> dict[str, str]:
    """The named groups that took part."""
    return {name: value for name, value in match.groupdict().items() if value}


def with_fields(message: Message, more: Fields | Mapping[str, str]) -> Message:
    """The message with more fields; what it read itself stays."""
    return replace(message, fields={**more, **message.fields})
