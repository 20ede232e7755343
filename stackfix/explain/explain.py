"""A text and the rules in, an explanation out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackfix.explain.context import read_context
from stackfix.explain.fill import filled_causes
from stackfix.explain.match import find_messages, with_fields
from stackfix.explain.records import Cause, Derivation, Explanation, Facts, Message, Rule, Text
from stackfix.explain.text_words import Words

MOST_CAUSES = 8         # more are noise: they are of the lightest messages


def explain(
    text: Text, rules: Sequence[Rule], facts: Facts, derivations: Mapping[str, Derivation],
) -> Explanation:
    """What the text means. Unknown where no rule is found in it, or where of none that is found a cause holds."""
    words = Words(text)
    context = read_context(words)
    by_name = {rule.name: rule for rule in rules}
    messages: list[Message] = []
    causes: list[Cause] = []
    for found in find_messages(words, rules):
        rule = by_name[found.rule]
        message = derived(with_fields(found, context), rule, facts, derivations)
        holding = [each for each in filled_causes(rule.causes, message.fields) if each not in causes]
        if holding:
            messages.append(message)
            causes += holding
    kind = messages[0].kind if messages else "unknown"
    return Explanation(kind=kind, causes=tuple(causes[:MOST_CAUSES]), messages=tuple(messages), fields=context)


def derived(message: Message, rule: Rule, facts: Facts, derivations: Mapping[str, Derivation]) -> Message:
    """The message with what the matrix and the almanac tell of what it read; later derivations see earlier ones."""
    for name in rule.derive:
        message = with_fields(message, derivations[name](message.fields, facts))
    return message
