"""docs/explain.md lists every kind of error that is recognised, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

from stackfix.diagnose.codes import BY_CODE
from stackfix.explain.context import PATTERNS
from stackfix.explain.rules import read_rules
from tests.explain_docs import PAGE, with_kinds

RULES = read_rules()
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_lists_every_rule_with_an_example_and_no_other() -> None:
    """Otherwise: python -m tests.explain_docs."""
    listed = re.findall(r"^- \*\*`([a-z0-9-]+)`\*\*", TEXT, re.MULTILINE)
    assert sorted(listed) == sorted(rule.name for rule in RULES)
    assert with_kinds(TEXT, RULES) == TEXT


def test_a_rule_that_is_not_listed_is_seen() -> None:
    assert with_kinds(TEXT, (*RULES, replace(RULES[0], name="new"))) != TEXT
    assert with_kinds(TEXT, RULES[1:]) != TEXT


def test_every_field_that_any_text_gives_is_named() -> None:
    fields = {name for _, pattern in PATTERNS for name in pattern.groupindex} - {"python_minor", "cuda_digits"}
    told = TEXT.partition("Fields that every rule has")[2].partition("## ")[0]
    assert [name for name in sorted(fields) if f"`{name}`" not in told] == []


def test_findings_of_rules_exist() -> None:
    assert {code for rule in RULES for code in rule.findings} <= set(BY_CODE)


def test_kinds_are_words() -> None:
    assert [rule.kind for rule in RULES if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", rule.kind)] == []
