"""Only the rules that a text can hold are parsed, and the explanation is the one of all rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.errors import BadInput
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.rules import read_rules
from stackfix.explain.rules_wanted import anchors_of, read_rules_for
from stackfix.explain.text import read_text

RULES = read_rules()
FACTS = MatrixFacts(None)
HEAD = '[sources]\ntests = "the tests"\n\n[defaults]\nsource = "tests"\nconfidence = "certain"\n'
RULE = """
[[rule]]
name = "{name}"
kind = "some-kind"
family = "K1"
what = "Something."
anchors = {anchors}
patterns = ["broken"]
weight = 50

[[rule.cause]]
summary = "It is broken."
cure = "Mend it."

[[rule.example]]
text = "broken"
"""


def test_the_explanation_is_that_of_all_rules() -> None:
    parsed = 0
    for rule in RULES:
        text = read_text(rule.examples[0].text.encode())
        wanted = read_rules_for(text)
        parsed += len(wanted)
        assert explain(text, wanted, FACTS, DERIVE) == explain(text, RULES, FACTS, DERIVE)
    assert parsed < len(RULES) ** 2 / 4


@pytest.mark.parametrize(("text", "names"), [
    ("it is Broken", ["one"]), ("it is bro\nken", ["one"]), ("sto\nlen", ["two"]), ("nothing", []),
    ("a word\nof its own", ["three"]),
])
def test_rules_are_found_by_their_anchors(text: str, names: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "errors"
    folder.mkdir()
    rules = [RULE.format(name=name, anchors=anchors) for name, anchors in (
        ("one", '["other", "broken"]'), ("two", "['stolen']"), ("three", '[\n    "word of",\n]'))]
    (folder / "area.toml").write_text(HEAD + "".join(rules))
    found = [rule.name for rule in read_rules_for(read_text(text.encode()), tmp_path)]
    assert [name for name in names if name not in found] == []
    assert "one" not in found or "one" in names


def test_a_fault_of_a_rule_that_is_wanted_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "errors"
    folder.mkdir()
    (folder / "area.toml").write_text(HEAD + RULE.format(name="A B", anchors='["broken"]'))
    with pytest.raises(BadInput, match="kebab case"):
        read_rules_for(read_text(b"broken"), tmp_path)
    assert read_rules_for(read_text(b"whole"), tmp_path) == ()
    with pytest.raises(BadInput, match="cannot be read"):
        read_rules_for(read_text(b"whole"), tmp_path / "nowhere")


def test_anchors_that_cannot_be_told_stand_in_every_text() -> None:
    assert list(anchors_of("anchors = ['a']")) == [""]
    assert list(anchors_of('anchors = ["a", "b"]')) == ["a", "b"]
    assert list(anchors_of("patterns = []")) == [""]
