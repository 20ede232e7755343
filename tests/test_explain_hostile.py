"""No text makes an explanation hang, raise or grow: patterns against lines made against them, and texts of chance."""

from __future__ import annotations

import multiprocessing
import random
import re
import secrets
from collections.abc import Iterator

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.context import LISTED, PATTERNS
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import MOST_CAUSES, explain
from stackfix.explain.match import joined
from stackfix.explain.records import Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import MOST_LINE, read_text
from stackfix.explain.text_prefix import PREFIX
from stackfix.explain.text_wrapped import FIRST_WORD, LAST_WORD, STARTS, TAIL
from stackfix.explain.unknown import EXCEPTION, THINGS

HANG = 120.0            # seconds in which a pattern that is no trap is done a hundred times over
PLACES = 3              # of a line, at which it is blown up
EXAMPLES = 2            # of a rule
SOUGHT = (*(pattern for _, pattern in PATTERNS), *(pattern for _, pattern in THINGS.values()))
MATCHED = (LISTED, PREFIX, FIRST_WORD, LAST_WORD, STARTS, TAIL, EXCEPTION)      # at the beginning of a line alone
RULES = read_rules()


def blown_up(line: str) -> Iterator[str]:
    """The line with one of its characters, or its beginning up to there, again and again, so that its end is missed."""
    for place in range(0, len(line), max(len(line) // PLACES, 1)):
        yield (line[:place] + line[place] * MOST_LINE)[:MOST_LINE - 1] + "\x7f"
        yield (line[:place] + line[place:] * (MOST_LINE // len(line[place:]) + 1))[:MOST_LINE - 1] + "\x7f"
        yield (line[:place + 1] * (MOST_LINE // (place + 1) + 1))[:MOST_LINE - 1] + "\x7f"


def hold_against(patterns: tuple[str, ...], lines: tuple[str, ...]) -> None:
    """Every pattern against every line made of these."""
    compiled = [re.compile(pattern) for pattern in patterns]
    for line in lines:
        for hostile in blown_up(line):
            for pattern in compiled:
                pattern.search(hostile)


def ends(patterns: tuple[str, ...], lines: tuple[str, ...]) -> bool:
    """Whether that comes to an end."""
    child = multiprocessing.get_context("fork").Process(target=hold_against, args=(patterns, lines), daemon=True)
    child.start()
    child.join(HANG)
    if child.is_alive():
        child.kill()
        child.join()
        return False
    return child.exitcode == 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_no_pattern_of_a_rule_can_be_made_to_hang(rule: Rule) -> None:
    texts = [read_text(each.text.encode()) for each in rule.examples[:EXAMPLES]]
    lines = tuple(joined(line.text for line in text.lines)[:400] for text in texts)
    assert ends((*rule.patterns, *rule.also, *rule.reads), lines)


def test_no_pattern_of_the_engine_can_be_made_to_hang() -> None:
    lines = ("/home/a/lib/python3.10/site-packages/torch", "torch==2.3.1+cu121 (you have 2.3.1)", "lib_a.so.12.1 ",
             "ERROR 05-01 12:00:00 [core.py:718] ", "2024-05-01 12:00:00,123 - INFO - [rank0]: ", "foo.bar.BazError: x",
             "/x/pip-build-env-x/overlay/", "undefined symbol: _ZN3c10", "> | > | E   E   ")
    assert ends((*(each.pattern for each in SOUGHT), *(rf"\A(?:{each.pattern})" for each in MATCHED)), lines)


def test_a_trap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_explain_hostile.HANG", 2.0)
    assert not ends((r"(?:\w+\s?)+:",), ("a word and another",))


def test_a_text_of_anchors_alone_is_explained_or_unknown() -> None:
    """Each rule is asked about each line, and most lines are as long as they may be."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    chance = random.Random(seed)        # noqa: S311 - no secret
    anchors = [anchor for rule in RULES for anchor in rule.anchors]
    lines = (" ".join(chance.choice(anchors) for _ in range(chance.choice([2, 400])))[:MOST_LINE] for _ in range(300))
    explanation = explain(read_text("\n".join(lines).encode()), RULES, MatrixFacts(None), DERIVE)
    assert len(explanation.causes) <= MOST_CAUSES


def test_pieces_of_examples_in_any_order_are_explained_or_unknown() -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    chance = random.Random(seed)        # noqa: S311 - no secret
    words = [word for rule in RULES for example in rule.examples for word in re.split(r"(\W)", example.text)]
    facts = MatrixFacts(None)
    for _ in range(150):
        text = "".join(chance.choice([*words, "\n", " "]) for _ in range(120))
        explanation = explain(read_text(text.encode()), RULES, facts, DERIVE)
        assert (explanation.kind == "unknown") is (not explanation.causes)


def test_examples_with_a_character_changed_are_explained_or_unknown() -> None:
    """Numbers above all: a version, a symbol or a driver that nobody has must not be an error of ours."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    chance = random.Random(seed)        # noqa: S311 - no secret
    facts = MatrixFacts(None)
    for rule in RULES:
        for example in rule.examples:
            for _ in range(3):
                place = chance.choice([found.start() for found in re.finditer(r"\d", example.text)] or [0])
                other = chance.choice(["0", "99999999999999999999", "..", "-1", "\u0663", "", "/", "_99_99", "2.999"])
                text = example.text[:place] + other + example.text[place + 1:]
                explain(read_text(text.encode()), RULES, facts, DERIVE)
