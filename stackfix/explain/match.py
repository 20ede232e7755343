"""Which rules a text holds, and what they read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.explain.records import Fields, Message, Rule
from stackfix.explain.text_chains import chains
from stackfix.explain.text_words import Words
from stackfix.quick import replace

FRAME = re.compile(r"^[\s│├└╰╭─▶┬┤|\u00d7]+")
MOST_JOINED = 8192          # characters of a message that runs over lines
MOST_MESSAGES = 200         # of a text, each different in what it says; a log repeats itself
MOST_BESIDE = 10_000        # lines in which something beside a message is looked for
MOST_OF_RULE = 50           # so that one rule's messages leave room for another's


def find_messages(words: Words, rules: Iterable[Rule]) -> tuple[Message, ...]:
    """What was found: the most decisive first.

    That is the heavier rule; of equal ones the later line, as a log ends with what stopped it, but of chained
    tracebacks the first, of which the others are consequences. One message for each rule and what it read, where it
    stands first; rules that another one hides are left out. The fields are those of the pattern and, where the rule
    asks for more, of the rest of the text.
    """
    found: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, int, int, Message]] = {}
    hidden: set[str] = set()
    for rule in rules:
        before = len(found)
        for place, message in messages_of(rule, words):
            key = rule.name, tuple(sorted(message.fields.items()))
            _, first, _, shown = found.get(key, (0, place, place, message))
            found[key] = (rule.weight, first, place, shown)
            hidden.update(rule.hides)
            if len(found) - before >= MOST_OF_RULE or len(found) >= MOST_MESSAGES:
                break
    chained = chains(words) if len(found) > 1 else {}

    def order(each: tuple[int, int, int, Message]) -> tuple[int, int, int, str]:
        weight, first, last, message = each
        start = chained.get(first)
        return (-weight, -last, 0, message.rule) if start is None else (-weight, -start, first, message.rule)

    every = [message for *_, message in found.values()]
    kept = (each for each in found.values() if each[3].rule not in hidden and not says_less(each[3], every))
    return tuple(message for *_, message in sorted(kept, key=order))


def says_less(message: Message, others: Iterable[Message]) -> bool:
    """Whether another message of its rule reads all that it does, and more: pip says one thing in two lines."""
    own = message.fields.items()
    same = (each.fields.items() for each in others if each.rule == message.rule)
    return any(len(more) > len(own) and own <= more for more in same)


def messages_of(rule: Rule, words: Words) -> Iterator[tuple[int, Message]]:
    """Each line in which the rule is found, with its place; none where the text lacks what it asks for besides."""
    places = words.places(rule.anchors)
    beside = fields_beside(rule, words) if places else None
    if beside is None:
        return
    patterns = [re.compile(pattern) for pattern in rule.patterns]
    for place in places:
        line, stretch = words.lines[place], words.look(place)
        if rule.lines > 1:
            stretch = joined(words.look(each) for each in range(place, min(place + rule.lines, len(words.lines))))
        match = next(filter(None, (pattern.search(stretch) for pattern in patterns)), None)
        if match and match.start() < len(line.text):        # else it is found again where it begins
            fields = {**beside, **named(match)}
            yield place, Message(rule=rule.name, kind=rule.kind, line=line.number, quoted=line.text, fields=fields)


def joined(lines: Iterable[str]) -> str:
    """Lines as one, without the bars and branches that uv, pip and libmamba draw before them."""
    return " ".join(FRAME.sub("", line) for line in lines)[:MOST_JOINED]


def fields_beside(rule: Rule, words: Words) -> dict[str, str] | None:
    """What the `also` and `reads` patterns read; None where one of the former is not found."""
    fields: dict[str, str] = {}
    for pattern in rule.reads:
        match = first_match(re.compile(pattern), words)
        fields = {**(named(match) if match else {}), **fields}
    for pattern in rule.also:
        match = first_match(re.compile(pattern), words)
        if match is None:
            return None
        fields.update(named(match))
    return fields


def first_match(pattern: re.Pattern[str], words: Words) -> re.Match[str] | None:
    """The first line's match. Of a long text its beginning and its end are looked at."""
    places: Sequence[int] = range(len(words.lines))
    if len(places) > MOST_BESIDE:
        places = [*places[:MOST_BESIDE // 2], *places[-MOST_BESIDE // 2:]]
    return next(filter(None, (pattern.search(words.look(place)) for place in places)), None)


def named(match: re.Match[str]) -> dict[str, str]:
    """The named groups that took part."""
    return {name: value for name, value in match.groupdict().items() if value}


def with_fields(message: Message, more: Fields | Mapping[str, str]) -> Message:
    """The message with more fields; what it read itself stays."""
    return replace(message, fields={**more, **message.fields})
