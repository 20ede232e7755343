"""docs/findings.md has a section for each code of stackfix/diagnose/codes.py, and the checks make no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.diagnose.codes import BY_CODE, CODES
from stackfix.diagnose.finding_records import LEVELS
from tests.test_project_links import anchors

ROOT = Path(__file__).resolve().parent.parent
DIAGNOSE = ROOT / "stackfix" / "diagnose"
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
PARTS = ("Means.", "Error text.", "Found.", "Cure by hand.", "Repairable.")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections(page: str) -> list[tuple[str, str]]:
    """(heading, text) of each section."""
    _, *found = HEADING.split(page)
    return list(zip(found[::2], found[1::2], strict=True))


def faults(page: str) -> Iterator[str]:
    """What is wrong with the page as a whole, or with one of its sections."""
    headings = [heading for heading, _ in sections(page)]
    expected = [f"{each.code} {each.kind}" for each in CODES]
    yield from (f"no section {each}" for each in expected if each not in headings)
    yield from (f"no such code: {each}" for each in headings if each not in expected)
    yield from (f"twice: {each}" for each in sorted(set(headings)) if headings.count(each) > 1)
    if sorted(headings, key=lambda each: expected.index(each) if each in expected else -1) != headings:
        yield "not in the order of the codes"
    for heading, text in sections(page):
        yield from (f"{heading}: {fault}" for fault in section_faults(BY_CODE.get(heading.partition(" ")[0]), text))


def section_faults(code: object, text: str) -> Iterator[str]:
    """What a section lacks: its title, one of its parts, the text of a part, the shell lines of the cure."""
    title = getattr(code, "title", "")
    if not text.strip().startswith(f"{title}.\n"):
        yield "its first paragraph is not its title"
    found = re.findall(r"^\*\*([A-Z][a-z ]+\.)\*\*", text, re.MULTILINE)
    if tuple(found) != PARTS:
        yield f"its parts are {found}"
        return
    bodies = re.split(r"^\*\*[A-Z][a-z ]+\.\*\*", text, flags=re.MULTILINE)[1:]
    for name, body in zip(PARTS, bodies, strict=True):
        if len(body.split()) < (1 if name == "Error text." else 4):
            yield f"{name} is empty"
    error, cure, repairable = bodies[1], bodies[3], bodies[4]
    if "```text" not in error and not error.strip().startswith("None"):
        yield "shows no error text, and does not say that there is none"
    if "```" not in cure:
        yield "shows no command"
    if not re.match(r"\s*(?:Yes|No|Where|Only|It is left alone|A leftover)\b", repairable):
        yield "does not say whether it is repairable"


def test_the_page_has_one_whole_section_for_each_code() -> None:
    assert list(faults(PAGE)) == []


def test_every_code_is_linked_from_the_table_at_the_top() -> None:
    table = PAGE.partition("\n## ")[0]
    assert re.findall(r"\[(SF\d+)\]\(#([^)]+)\)", table) == [
        (each.code, f"{each.code.lower()}-{each.kind}") for each in CODES]


def test_headings_have_anchors_of_their_own() -> None:
    assert len(anchors(PAGE)) == len(set(anchors(PAGE))) == len(CODES) + 1


def test_codes_and_kinds_are_unique_and_levels_exist() -> None:
    assert len({each.code for each in CODES}) == len({each.kind for each in CODES}) == len(CODES)
    assert {each.level for each in CODES} <= {None, *LEVELS}


@pytest.mark.parametrize("module", sorted(DIAGNOSE.glob("*.py")), ids=lambda path: path.name)
def test_every_code_that_a_check_makes_exists(module: Path) -> None:
    assert set(re.findall(r"\bSF\d+\b", module.read_text(encoding="utf-8"))) <= set(BY_CODE)


def test_every_code_is_made_by_a_check() -> None:
    checks = "".join(path.read_text(encoding="utf-8") for path in DIAGNOSE.glob("*.py") if path.name != "codes.py")
    assert [each.code for each in CODES if f'"{each.code}"' not in checks] == []


@pytest.mark.parametrize(("good", "bad", "fault"), [
    ("## SF101 shadowed-library", "## SF100 shadowed-library", "no section SF101 shadowed-library"),
    ("## SF102 harmless-shadow", "## SF102 harmless", "no such code: SF102 harmless"),
    ("## SF202 library-too-new", "## SF201 library-too-old", "twice: SF201 library-too-old"),
    ("A foreign copy of a library wins and lacks nothing.", "Nothing.",
     "SF102 harmless-shadow: its first paragraph is not its title"),
    ("**Found.** As SF101", "As SF101",
     "SF102 harmless-shadow: its parts are ['Means.', 'Error text.', 'Cure by hand.', 'Repairable.']"),
    ("**Repairable.** It is left alone.", "**Repairable.** Perhaps, who knows that.",
     "SF102 harmless-shadow: does not say whether it is repairable"),
    ("**Error text.** None.\n", "**Error text.** Some.\n",
     "SF102 harmless-shadow: shows no error text, and does not say that there is none"),
])
def test_the_judge_of_the_page_sees_a_fault(good: str, bad: str, fault: str) -> None:
    assert good in PAGE
    assert fault in list(faults(PAGE.replace(good, bad, 1)))
