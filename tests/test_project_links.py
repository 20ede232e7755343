"""Every link of the README and of a page in docs leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> list[str]:
    """Anchors of a page's headings, as the common renderers make them: a repeated one gets a number."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+?)\s*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        same = sum(re.fullmatch(rf"{re.escape(plain)}(-\d+)?", each) is not None for each in found)
        found.append(f"{plain}-{same}" if same else plain)
    return found


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Links of `text`, the content of `page`, that lead nowhere."""
    for link in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            yield link
        elif anchor:
            there = text if target == page else target.read_text(encoding="utf-8")
            if anchor not in anchors(there):
                yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_stays_in_the_project(page: Path) -> None:
    links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link.partition("#")[0]).resolve().is_relative_to(ROOT)] == []


def test_the_judge_of_links_sees_a_fault() -> None:
    page = ROOT / "docs" / "findings.md"
    text = ("# Some `code`, and more\n## Twice\n## Twice\n[a](#some-code-and-more) [b](#twice-1) [c](#nowhere)\n"
            "[d](../README.md#set-up) [e](../README.md#no-such) [f](nothing.md)\n```\n[g](in-a-fence)\n```\n")
    assert list(broken_links(page, text)) == ["#nowhere", "../README.md#no-such", "nothing.md"]
