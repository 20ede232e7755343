"""A text and the rules in, an explanation out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackfix.explain.context import read_context
from stackfix.explain.fill import filled_causes
from stackfix.explain.match import find_messages, with_fields
from stackfix.explain.records import Cause, Derivation, Explanation, Facts, Fields, Line, Message, Rule, Text
from stackfix.explain.text_words import MOST_BROKEN, Words
from stackfix.explain.unknown import read_unknown
from stackfix.quick import replace

MOST_CAUSES = 8         # more are noise: they are of the lightest messages
MOST_DERIVED = 24       # messages for which the almanac is asked


def explain(
    text: Text, rules: Sequence[Rule], facts: Facts, derivations: Mapping[str, Derivation],
) -> Explanation:
    """What the text means. Unknown where no rule is found in it, or where of none that is found a cause holds."""
    words = Words(text)
    context = read_context(words)
    found = find_messages(words, rules) or find_messages(Words(rejoined(text)), rules)
    messages, causes = explained(found, context, rules, facts, derivations)
    if not messages:
        return Explanation(kind="unknown", causes=(), messages=(), fields={**context, **read_unknown(words)})
    return Explanation(kind=messages[0].kind, causes=tuple(causes), messages=tuple(messages), fields=context)


def explained(
    found: Sequence[Message], context: Fields, rules: Sequence[Rule], facts: Facts,
    derivations: Mapping[str, Derivation],
) -> tuple[list[Message], list[Cause]]:
    """The messages of which a cause holds, with all that is known of them, and their causes, none twice."""
    by_name = {rule.name: rule for rule in rules}
    messages: list[Message] = []
    causes: list[Cause] = []
    for each in found[:MOST_DERIVED]:
        rule = by_name[each.rule]
        message = derived(with_fields(each, context), rule, facts, derivations)
        holding = [cause for cause in filled_causes(rule.causes, message.fields) if cause not in causes]
        if holding:
            messages.append(replace(message, causes=tuple(holding)))
            causes += holding
        if len(causes) >= MOST_CAUSES:
            break
    return messages, causes[:MOST_CAUSES]


def derived(message: Message, rule: Rule, facts: Facts, derivations: Mapping[str, Derivation]) -> Message:
    """The message with what the matrix and the almanac tell of what it read; later derivations see earlier ones."""
    for name in rule.derive:
        message = with_fields(message, derivations[name](message.fields, facts))
    return message


def rejoined(text: Text) -> Text:
    """The text with each two lines as one, as if a mail had broken them; of a long text none."""
    if len(text.lines) > MOST_BROKEN:
        return replace(text, lines=())
    pairs = zip(text.lines, text.lines[1:], strict=False)
    return replace(text, lines=tuple(
        Line(number=first.number, text=first.text + gap + second.text) for first, second in pairs for gap in (" ", "")
    ))
