"""YAML of strangers: read as text, or refused with its line."""

from __future__ import annotations

import pytest

from stackfix.errors import BadInput
from stackfix.write.yaml_read import MOST_NODES, Node, Source, parse_yaml

SOURCE = Source(path="conda-lock.yml", hint="write it again")


def test_scalars_are_text_with_their_lines() -> None:
    document = SOURCE.mapping(parse_yaml("a: 1.10\nb: yes\nc:\n- '~'\n- ~\n- 0x1f\n", SOURCE), "it")
    assert document["a"] == Node(value="1.10", line=1)
    assert document["b"].value == "yes"
    assert [(node.value, node.line) for node in SOURCE.sequence(document["c"], "c")] == [
        ("~", 4), (None, 5), ("0x1f", 6)]


BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("", None, "is empty"),
    ("# only a comment\n", None, "is empty"),
    ("a: 1\nb: [\n", 3, "is no YAML"),
    ("a: 1\n\tb: 2\n", 2, "is no YAML"),
    ("a: 1\na: 2\n", 2, "has the key 'a' twice"),
    ("x:\n  a: 1\n  a: 1\n", 3, "has the key 'a' twice"),
    (BOMB, 1, "an anchor or an alias"),
    ("a: *b\n", 1, "an anchor or an alias"),
    ("a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "has the tag"),
    ("a: !!int 1\n", 1, "has the tag"),
    ("a: 1\n---\nb: 2\n", 3, "begins a second document"),
    ("? [a]\n: 1\n", 1, "a key that is no text"),
    ("~: 1\n", 1, "a key that is no text"),
    ("a: \x00\n", None, "is no YAML"),
    ("a: '\x07'\n", None, "is no YAML"),
    ("[" * 100_000, 1, "nesting depth"),
    ("[" * 40 + "]" * 40, 1, "than any lockfile"),
    ("- " * 100 + "a", 1, "than any lockfile"),
    ("%YAML 9.9\n---\na: 1\n", 1, "is no YAML"),
])
def test_what_is_no_lockfile_is_one_error_about_its_line(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_yaml(text, SOURCE)
    assert refused.value.thing == ("conda-lock.yml" if line is None else f"conda-lock.yml line {line}")
    assert reason in refused.value.reason
    assert "\n" not in refused.value.what()
    assert refused.value.next_step() == "write it again"


def test_more_values_than_any_lockfile_are_refused_before_memory_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_NODES > 1_000_000
    monkeypatch.setattr("stackfix.write.yaml_read.MOST_NODES", 1000)
    parse_yaml("- a\n" * 999, SOURCE)
    with pytest.raises(BadInput, match="line 1000"):
        parse_yaml("- a\n" * 1000, SOURCE)


@pytest.mark.parametrize(("text", "ask", "reason"), [
    ("a", "mapping", "it is no mapping"), ("[a]", "mapping", "it is no mapping"), ("a", "sequence", "it is no list"),
    ("{}", "sequence", "it is no list"), ("[]", "text", "it is no text"), ("~", "text", "it is no text"),
    ("''", "text", "it is no text"), ('"a\\x07"', "text", "it has a control character"),
    ('"a\\nb"', "text", "it has a control character"),
])
def test_wrong_types_are_named(text: str, ask: str, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        getattr(SOURCE, ask)(parse_yaml(text, SOURCE), "it")
    assert refused.value.what() == f"conda-lock.yml line 1: {reason}"


def test_without_libyaml_it_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("yaml.CSafeLoader")
    assert parse_yaml("a: [b, 'c']\n", SOURCE) == Node(
        value={"a": Node(value=[Node(value="b", line=1), Node(value="c", line=1)], line=1)}, line=1)
    with pytest.raises(BadInput, match="line 3"):
        parse_yaml("a: 1\nb: [\n", SOURCE)
