"""The rules, read from matrices/errors/*.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.explain.records import CauseText, Example, Rule
from stackfix.matrix.faults import Faults
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import matrix_directory, parse_file, read_file

EXPECTED = ("errors/<area>.toml",)
MOST_LINES = 120        # of one message
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PART = re.compile(r"%\{([a-z_]+)\}")


def read_rules(directory: Path | None = None) -> tuple[Rule, ...]:
    """All rules of a matrix, ours where none is named; heaviest first. Raises BadInput with every fault of a file."""
    contents = [(str(path), read_file(path, EXPECTED)) for path in paths_of(directory)]
    rules = [rule for file, content in contents for rule in parse_file(file, content, parse_rules)]
    twice = {rule.name for rule in rules if sum(each.name == rule.name for each in rules) > 1}
    if twice:
        folder = (directory or matrix_directory()) / "errors"
        raise BadInput(str(folder), f"rules of one name: {', '.join(sorted(twice))}")
    return tuple(sorted(rules, key=lambda rule: (-rule.weight, rule.name)))


def paths_of(directory: Path | None) -> list[Path]:
    """The files with rules of a matrix, ours where none is named. Raises BadInput."""
    folder = (directory or matrix_directory()) / "errors"
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError as error:
        raise BadInput(str(folder), f"cannot be read: {error.strerror or error}") from None


def parse_rules(document: dict[str, object], faults: Faults) -> tuple[Rule, ...]:
    """The rules of one file."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    table = top.table("parts", needed=False)
    parts = {name: table.text(name) for name in table.names()}
    table = top.table("reads", needed=False)
    reads = {name: table.several(name, "text") for name in table.names()}
    rules = tuple(parse_rule(row, origins, parts, reads) for row in top.rows("rule", "name"))
    top.done()
    return rules


def parse_rule(row: Row, origins: Origins, parts: Mapping[str, str], reads: Mapping[str, tuple[str, ...]]) -> Rule:
    """One rule. `parts`: pieces that patterns of the file share, by the names that they have in them.

    `reads`: patterns that rules of the file share, which "@name" in a rule's `reads` stands for.
    """
    name = row.text("name")
    if not NAME.fullmatch(name):
        row.fault(f"{name!r} is not a name in kebab case")
    rule = Rule(
        name=name,
        kind=row.text("kind"),
        family=row.chosen("family", tuple(f"K{number}" for number in range(1, 8))),
        what=row.text("what"),
        anchors=tuple(each.lower() for each in row.several("anchors", "text")),
        patterns=composed(row, "patterns", parts),
        also=composed(row, "also", parts) if row.has("also") else (),
        reads=expanded(row, composed(row, "reads", parts), reads) if row.has("reads") else (),
        lines=row.whole("lines") if row.has("lines") else 1,
        weight=row.whole("weight"),
        hides=row.words("hides", "name", needed=False),
        derive=row.words("derive", "name", needed=False),
        findings=row.words("findings", "text", needed=False),
        causes=tuple(parse_cause(each) for each in row.rows("cause")),
        examples=tuple(parse_example(each) for each in row.rows("example")),
        source=origins.of(row)[0],
    )
    if not 1 <= rule.lines <= MOST_LINES:
        row.fault(f"lines is not from 1 to {MOST_LINES}")
    for pattern in (*rule.patterns, *rule.also, *rule.reads):
        check_pattern(pattern, row)
    for wanted, found in (("causes", rule.causes), ("examples", rule.examples), ("anchors", rule.anchors)):
        if not found:
            row.fault(f"no {wanted}")
    row.done()
    return rule


def composed(row: Row, key: str, parts: Mapping[str, str]) -> tuple[str, ...]:
    """The patterns with the parts put in that they name: `%{requester}`."""
    def part(match: re.Match[str]) -> str:
        if match[1] not in parts:
            row.fault(f"{match[1]!r} is not in [parts]")
        return parts.get(match[1], "")

    return tuple(PART.sub(part, each) for each in row.several(key, "text"))


def expanded(row: Row, own: tuple[str, ...], shared: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A rule's `reads`, each "@name" replaced by the patterns of that name."""
    found: list[str] = []
    for each in own:
        if each.startswith("@") and each[1:] not in shared:
            row.fault(f"{each} is not in [reads]")
        found += shared.get(each[1:], ()) if each.startswith("@") else (each,)
    return tuple(found)


def check_pattern(pattern: str, row: Row) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        row.fault(f"{pattern!r} is no regular expression: {error}")


def parse_cause(row: Row) -> CauseText:
    """One cause of a rule."""
    cause = CauseText(
        when=row.words("when", "text", needed=False),
        summary=row.text("summary"),
        because=row.several("because", "text") if row.has("because") else (),
        culprit=row.optional("culprit"),
        confirm=row.optional("confirm"),
        cure=row.text("cure"),
        avoid=row.optional("avoid"),
    )
    row.done()
    return cause


def parse_example(row: Row) -> Example:
    """One example of a rule."""
    example = Example(text=row.text("text"), says=row.several("says", "text") if row.has("says") else ())
    row.done()
    return example
