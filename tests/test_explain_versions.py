"""Every version that an explanation names is one of the text, of the matrix or of the almanac."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import CauseText, Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.toml_files import matrix_directory

RULES = read_rules()
FACTS = MatrixFacts(None)
VERSION = re.compile(r"(?<![\w.])\d+(?:\.\d+)+(?:\.?post\d+)?(?![\w]|\.\d)")
TAG = re.compile(r"\bcu\d{3}\b|\bsm_\d{2,3}[a-f]?\b")
BOUND = re.compile(r"<\s*\d+(?:\.\d+)*")      # an upper bound is one more than what is known
EXEMPT = {      # rules whose own words hold one, which is no advice to take it
    "flash-attn-no-kernel": "GPUs that its builds say nothing of", "static-tls": "since when glibc has this tunable",
    "xformers-built-for": "how the message writes a release",
}
MATRIX = sorted(path for path in matrix_directory().rglob("*")
                if path.suffix in {".toml", ".tsv"} and "errors" not in path.parts)


@cache
def known() -> frozenset[str]:
    """Versions and tags that stand in the matrix or the almanac, and what they begin with: "12.1" of 12.1.105."""
    found: set[str] = set()
    for path in MATRIX:
        text = path.read_text(encoding="utf-8")
        for version in re.findall(r"\d+(?:\.\d+)+(?:\.?post\d+)?", text):
            parts = version.split(".")
            found |= {".".join(parts[:length]) for length in range(2, len(parts) + 1)}
        found |= set(TAG.findall(text))
        found |= {f"sm_{code}" for code in re.findall(r"(?<![\d.])\d{2,3}[af]?(?![\d.])", text)}
    return frozenset(found)


def read_from(text: str) -> set[str]:
    """Versions that a text writes as a number (cuDNN's 8204), as a tuple, or with underscores (12_4)."""
    numbers = [int(each) for each in re.findall(r"(?<!\d)\d{4,5}(?!\d)", text)]
    old = {f"{each // 1000}.{each % 1000 // 100}.{each % 100}" for each in numbers}
    new = {f"{each // 10000}.{each % 10000 // 100}.{each % 100}" for each in numbers}
    return old | new | {re.sub("_|, ", ".", each) for each in re.findall(r"\d+(?:(?:_|, )\d+)+", text)}


def texts_of(cause: CauseText) -> Iterator[str]:
    """What a rule says itself: without the fields."""
    for text in (cause.summary, *cause.because, cause.culprit, cause.confirm, cause.cure, cause.avoid):
        if text:
            yield re.sub(r"\{[a-z0-9_]+\}", "", text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_is_named_is_of_the_text_or_of_the_matrix(rule: Rule) -> None:
    for example in rule.examples:
        explanation = explain(read_text(example.text.encode()), RULES, FACTS, DERIVE)
        parts = (part for each in explanation.causes for part in (
            each.summary, *each.because, each.culprit, each.confirm, each.cure, each.avoid) if part)
        said = BOUND.sub("", "\n".join(parts))
        named = {*VERSION.findall(said), *TAG.findall(said)} - known() - read_from(example.text)
        assert sorted(each for each in named if each not in example.text) == [], said


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_names_no_version_itself(rule: Rule) -> None:
    own = [(word, text) for cause in rule.causes for text in texts_of(cause)
           for word in (*VERSION.findall(text), *TAG.findall(text))]
    assert rule.name in EXEMPT or own == []
