"""The rules that a text can hold: a hundred of them are not parsed for one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from stackfix.explain.records import Rule, Text
from stackfix.explain.rules import EXPECTED, parse_rules, paths_of
from stackfix.explain.text_words import MOST_BROKEN
from stackfix.matrix.toml_files import parse_file, read_file

BEGINS = "\n[[rule]]\n"
ANCHORS = re.compile(r"^anchors *= *(\[.*\])$", re.MULTILINE)


def read_rules_for(text: Text, directory: Path | None = None) -> tuple[Rule, ...]:
    """The rules of a matrix, ours where none is named, of which an anchor stands in the text; heaviest first.

    What is faulty in the others stays unsaid. Raises BadInput.
    """
    lines = [line.text.lower() for line in text.lines]
    whole = "\n".join(lines)
    if len(lines) <= MOST_BROKEN:       # a message may be broken over lines
        whole = "\n".join((whole, "".join(lines), " ".join(lines)))
    rules = [rule for path in paths_of(directory) for rule in parse_wanted(path, whole)]
    return tuple(sorted(rules, key=lambda rule: (-rule.weight, rule.name)))


def parse_wanted(path: Path, whole: str) -> tuple[Rule, ...]:
    """Those of one file."""
    content = read_file(path, EXPECTED).replace(b"\r\n", b"\n")
    head, *rules = content.decode("utf-8", errors="surrogateescape").split(BEGINS)
    wanted = [rule for rule in rules if is_wanted(rule, whole)]
    if rules and not wanted:
        return ()
    return parse_file(str(path), BEGINS.join((head, *wanted)).encode("utf-8", errors="surrogateescape"), parse_rules)


def is_wanted(rule: str, whole: str) -> bool:
    """Whether an anchor of a rule, as its file writes it, stands in the text; so it is where that cannot be told."""
    return any(anchor.lower() in whole for anchor in anchors_of(rule))


def anchors_of(rule: str) -> Iterator[str]:
    """The anchors; "" stands in every text."""
    found = ANCHORS.search(rule)
    try:
        anchors = json.loads(found[1]) if found else [""]
    except ValueError:          # TOML that is no JSON
        anchors = [""]
    yield from (each for each in anchors if isinstance(each, str))
