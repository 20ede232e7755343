"""Every rule recognises its examples, says what they must name, and states only fields that it can know."""

from __future__ import annotations

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import Cause, Example, Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text

RULES = read_rules()
FACTS = MatrixFacts(None)
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]


def words_of(cause: Cause) -> str:
    parts = (cause.summary, *cause.because, cause.culprit, cause.confirm, cause.cure, cause.avoid)
    return "\n".join(filter(None, parts))


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=lambda each: each.name if isinstance(each, Rule) else "")
def test_a_rule_explains_its_examples(rule: Rule, example: Example) -> None:
    explanation = explain(read_text(example.text.encode()), RULES, FACTS, DERIVE)
    assert rule.name in [message.rule for message in explanation.messages]
    said = "\n".join(map(words_of, explanation.causes))
    assert [word for word in example.says if word not in said] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_names_derivations_and_rules_that_exist(rule: Rule) -> None:
    names = {each.name for each in RULES}
    assert [name for name in rule.derive if name not in DERIVE] == []
    assert [name for name in rule.hides if name not in names] == []
    for name in rule.derive:
        assert callable(DERIVE[name])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_command_that_confirms_runs_as_it_stands(rule: Rule) -> None:
    """Nothing is left for the reader to put in: a shell takes "…" and "..." as words."""
    told = [cause.confirm for cause in rule.causes if cause.confirm]
    assert [each for each in told if "…" in each or " ... " in f"{each} "] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_search_path_that_is_set_has_no_empty_part(rule: Rule) -> None:
    """`a:$LD_LIBRARY_PATH` ends in a colon where the variable is not set: the current folder is searched then."""
    told = "\n".join(filter(None, (text for cause in rule.causes for text in (cause.confirm, cause.cure))))
    told = told.replace("${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", "")
    assert [word for word in (":$LD_LIBRARY_PATH", "LD_LIBRARY_PATH=…") if word in told] == []
