"""Messages that run over lines, patterns that only read, and patterns that rules of a file share."""

from __future__ import annotations

import pytest

from stackfix.errors import BadInput
from stackfix.explain.match import find_messages, joined
from stackfix.explain.records import Rule
from stackfix.explain.rules import parse_rules
from stackfix.explain.text import read_text
from stackfix.explain.text_words import Words
from stackfix.matrix.faults import Faults
from stackfix.matrix.toml_files import parse_toml

RULE = """
[sources]
seen = "here"
[defaults]
source = "seen"
confidence = "high"
[reads]
shared = ['''built (?P<subject>\\S+)''', '''torch (?P<torch>\\S+)''']
[[rule]]
name = "conflict"
kind = "conflict"
family = "K6"
what = "Two of them."
anchors = ["because"]
lines = LINES
patterns = ['''Because (?P<one>\\S+) needs (?P<other>\\S+)''']
reads = READS
weight = 1
[[rule.cause]]
summary = "{one} and {other}"
cure = "x"
[[rule.example]]
text = "Because a needs b"
"""


def rules(*, lines: int = 3, reads: str = '["@shared"]') -> tuple[Rule, ...]:
    content = RULE.replace("LINES", str(lines)).replace("READS", reads).encode()
    faults = Faults("rules.toml")
    found = parse_rules(parse_toml("rules.toml", content), faults)
    faults.raise_if_any()
    return found


def fields(text: str, lines: int = 3) -> list[dict[str, str]]:
    return [dict(each.fields) for each in find_messages(Words(read_text(text.encode())), rules(lines=lines))]


def test_a_message_may_run_over_lines() -> None:
    assert fields("x\nBecause a\n  needs\n  b\ny") == [{"one": "a", "other": "b"}]


def test_it_ends_where_the_rule_says() -> None:
    assert fields("Because a\nneeds\nb", lines=2) == []
    assert fields("Because a\nneeds\nb", lines=1) == []


def test_branches_that_resolvers_draw_are_no_part_of_it() -> None:
    assert fields("  ╰─▶ Because a\n  │   needs\n  ├─▶ b") == [{"one": "a", "other": "b"}]


def test_each_message_is_found_where_it_begins() -> None:
    messages = find_messages(Words(read_text(b"it is because of c\nBecause a needs b")), rules())
    assert [(each.line, each.quoted) for each in messages] == [(2, "Because a needs b")]


def test_what_is_joined_is_bounded() -> None:
    assert len(joined(["x" * 5000] * 40)) <= 8192


def test_patterns_that_only_read_need_not_be_found() -> None:
    assert fields("Because a needs b\nbuilt c\nwith torch 2.3") == [
        {"one": "a", "other": "b", "subject": "c", "torch": "2.3"}]
    assert fields("Because a needs b\nbuilt c") == [{"one": "a", "other": "b", "subject": "c"}]


@pytest.mark.parametrize(("options", "fault"), [
    ({"lines": 0}, "lines is not from 1 to"), ({"lines": 1000}, "lines is not from 1 to"),
    ({"reads": '["@nobody"]'}, "@nobody is not in [reads]"), ({"reads": "['(']"}, "no regular expression"),
])
def test_faults_of_a_rule_are_named(options: dict[str, object], fault: str) -> None:
    with pytest.raises(BadInput) as caught:
        rules(**options)        # type: ignore[arg-type]
    assert fault in str(caught.value)


def test_of_two_messages_of_a_rule_the_one_that_says_less_is_left_out() -> None:
    text = RULE.replace("LINES", "1").replace("READS", "['''built (?P<subject>x)''']").replace(
        "(?P<other>\\S+)", "(?P<other>\\S+)(?: and (?P<more>\\S+))?")
    two = parse_rules(parse_toml("rules.toml", text.encode()), Faults("rules.toml"))
    messages = find_messages(Words(read_text(b"Because a needs b and c\nBecause a needs b\nBecause a needs d")), two)
    assert [dict(each.fields) for each in messages] == [
        {"one": "a", "other": "d"}, {"one": "a", "other": "b", "more": "c"}]
