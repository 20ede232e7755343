"""The part of docs/explain.md that lists the kinds of errors, made from the rules: `python -m tests.explain_docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stackfix.explain.records import Rule
from stackfix.explain.rules import read_rules

PAGE = Path(__file__).resolve().parent.parent / "docs/explain.md"
BEGIN = "<!-- made from the rules: python -m tests.explain_docs -->\n"
END = "<!-- end of what is made from the rules -->\n"
FAMILIES = {
    "K1": "CUDA's libraries and their symbols", "K2": "cuDNN", "K3": "Extensions and companions of torch",
    "K4": "Libraries that are missing or foreign", "K5": "Driver and GPU", "K6": "Resolving, locking, installing",
    "K7": "The environment around it",
}


def kinds(rules: tuple[Rule, ...]) -> str:
    """The sections, one for each family, with each rule's kind, what it means, and an example."""
    return "\n".join(line for family in FAMILIES for line in family_lines(family, rules))


def family_lines(family: str, rules: tuple[Rule, ...]) -> Iterator[str]:
    """One family: its rules by kind."""
    yield from (f"### {FAMILIES[family]}", "")
    for rule in sorted((each for each in rules if each.family == family), key=lambda each: (each.kind, each.name)):
        findings = ", ".join(f"[{code}](findings.md)" for code in rule.findings)
        seen = f", seen by `check` as {findings}" if findings else ""
        yield f"- **`{rule.name}`** (`{rule.kind}`{seen}): {rule.what}"
        yield ""
        yield "  ```text"
        yield from (f"  {line}".rstrip() for line in rule.examples[0].text.strip("\n").splitlines())
        yield from ("  ```", "")


def with_kinds(page: str, rules: tuple[Rule, ...]) -> str:
    """The page with its list made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{kinds(rules)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_kinds(PAGE.read_text(encoding="utf-8"), read_rules()), encoding="utf-8")
