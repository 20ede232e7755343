"""Public reports explained from their error lines alone: as they stand, and with other versions, folders, prefixes."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Mapping

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import Cause, Explanation
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from tests.explain_cases import CASES, Case

RULES = read_rules()
FACTS = MatrixFacts(None)
ALTERED = [case for case in CASES if case.draw is not None]
DRAWS = 12
PREFIXES = ("", "", "[rank0]: ", "2024-05-01 12:00:00,123 - ERROR - ", "(EngineCore pid=77) ", "web-1  | ", "E       ",
            "\x1b[31m", "2024-05-01T12:00:00.1234567Z ", "#12 34.56 ", "  │ ")
BEFORE = ("", 'Traceback (most recent call last):\n  File "/srv/app/main.py", line 3, in <module>\n    import x\n',
          "Collecting torch\n", "INFO:root:starting\n\n")
AFTER = ("", "\n", "\n(base) ana@host:~$ ", "\r\nmake: *** [run] Error 1")


def explanation_of(text: str) -> Explanation:
    return explain(read_text(text.encode()), RULES, FACTS, DERIVE)


def told(cause: Cause) -> str:
    return "\n".join(filter(None, (cause.summary, *cause.because, cause.culprit)))


def advised(cause: Cause) -> str:
    return "\n".join(filter(None, (cause.cure, cause.avoid, cause.confirm)))


def lacking(expected: tuple[str, ...], said: str, values: Mapping[str, str]) -> list[str]:
    """Expectations that are not met."""
    escaped = {name: re.escape(value) for name, value in values.items()}
    filled = (each.format_map(escaped) for each in expected)
    return [each for each in filled if re.search(each, said, re.IGNORECASE) is None]


def judge(case: Case, text: str, values: Mapping[str, str]) -> Explanation:
    found = explanation_of(text)
    assert found.causes, f"unknown: {text}"
    causes = "\n".join(map(told, found.causes))
    cures = "\n".join(map(advised, found.causes))
    assert lacking(case.cause, causes, values) == [], causes
    assert lacking(case.cure, cures, values) == [], cures
    assert [each for each in case.never if re.search(each, cures)] == []
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_is_explained_from_its_lines(case: Case) -> None:
    values = {**case.values, **case.told(case.values)}
    judge(case, case.text.format_map(values), values)


@pytest.mark.parametrize("case", ALTERED, ids=lambda case: case.name)
def test_versions_and_folders_are_those_of_the_text(case: Case) -> None:
    """With others in the lines the explanation names others, and no longer the report's."""
    assert case.draw is not None
    seed = secrets.randbits(32)
    print(f"seed {seed}")       # noqa: T201 - shown where the test fails
    chance = random.Random(seed)        # noqa: S311 - no secret
    for _ in range(DRAWS):
        drawn = {**case.values, **case.draw(chance)}
        values = {**drawn, **case.told(drawn)}
        prefix = chance.choice(PREFIXES)
        lines = "\n".join(f"{prefix}{line}" for line in case.text.format_map(values).splitlines())
        found = judge(case, chance.choice(BEFORE) + lines + chance.choice(AFTER), values)
        said = "\n".join(f"{told(each)}\n{advised(each)}" for each in found.causes)
        gone = [case.values[name] for name in case.follows if case.values[name] not in values.values()]
        stale = [each for each in gone if re.search(rf"(?<![\w.]){re.escape(each)}(?![\w]|\.\d)", said)]
        assert stale == [], said
