"""What resolvers state when they give up: who requires what, out of the sentences of pip, uv and poetry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from stackfix.explain.derive.stack import admits, project

NAME = r"(?<![\w.\]+-])[A-Za-z0-9][\w.-]{0,100}(?:\[[^\]]{0,80}\])?(?:\{[^}]{0,200}\})?"
CLAUSE = r"(?:[<>=!~]=?=?|\^)\s?[\w.*+!]{1,60}"
SPEC = rf"{CLAUSE}(?:\s?(?:,|and)\s?{CLAUSE}){{0,9}}"
WANTED = rf"{NAME}\s?(?:{SPEC}|\((?:{SPEC}|\d[\w.+]{{0,40}})\))"     # poetry puts what it requires in brackets
OWNER = re.compile(
    rf"(?P<who>{NAME})(?:\s?(?P<version>{SPEC}|\((?:{SPEC}|\d[\w.+]{{0,40}})\)|\d[\w.+]{{0,40}}))?"
    rf" (?:depends? on|requires?) (?P<what>(?:both )?{WANTED})(?P<more> and {WANTED})?")
USER = re.compile(rf"(?:[Tt]he user requested(?: \(constraint\))?|[Yy]ou require|your (?:project|workspace) depends on)"
                  rf" (?P<what>{WANTED}(?:,? and {WANTED}){{0,9}})")
ONE = re.compile(rf"(?P<what>{NAME})\s?(?P<spec>{SPEC}|\((?:{SPEC}|\d[\w.+]{{0,40}})\))")
NOBODY = frozenset({"project", "workspace", "you"})


class Statement(NamedTuple):
    """One requirement; `who` is "" where it is the user's own."""

    who: str
    version: str        # or a range; "" where none is stated
    what: str
    spec: str           # as pip writes it: "==8.9.2.26", "<10,>=9.1"


def stated(chain: str) -> tuple[Statement, ...]:
    """The requirements that a resolver's text states, in order; none twice."""
    return tuple(dict.fromkeys((*owned(chain), *asked(chain))))


def owned(chain: str) -> Iterator[Statement]:
    """Those of packages."""
    at = 0
    while match := OWNER.search(chain, at):
        # behind "and" stands the next sentence's subject, but after "both", poetry's word, a second requirement
        both = match["what"].startswith("both ")
        at = match.end() if both else match.end("what")
        who = project(match["who"])
        for one in ONE.finditer(match["what"].removeprefix("both ") + (match["more"] or "" if both else "")):
            if who not in NOBODY:
                yield Statement(who, (match["version"] or "").strip("()"), bare(one["what"]), plain(one["spec"]))


def asked(chain: str) -> Iterator[Statement]:
    """Those of the user."""
    for match in USER.finditer(chain):
        for one in ONE.finditer(match["what"]):
            yield Statement("", "", bare(one["what"]), plain(one["spec"]))


def bare(name: str) -> str:
    """A project's name without extras and uv's markers."""
    return project(name.partition("{")[0])


def plain(spec: str) -> str:
    """A specifier as pip writes it: "==8.9.2.26" of "(8.9.2.26)", ">=0.15.2,<1" of "^0.15.2"."""
    inside = re.sub(r"\s?(?:,|\band\b)\s?", ",", spec.strip("() "))
    if inside[:1].isdigit():
        return f"=={inside}"
    return re.sub(r"\^\s?(\d+)((?:\.\w+)*)", caret, inside)


def caret(match: re.Match[str]) -> str:
    """poetry's "^1.2": not beyond the leftmost part that is not zero."""
    parts = [match[1], *re.findall(r"\.(\d+)", match[2])]
    significant = next((place for place, part in enumerate(parts) if part.strip("0")), len(parts) - 1)
    upper = [*parts[:significant], str(int(parts[significant]) + 1)]
    return f">={match[1]}{match[2]},<{'.'.join(upper)}"


def exact(spec: str) -> str | None:
    """The version of an exact pin."""
    match = re.fullmatch(r"={2,3}\s?([\w.+!]+)", spec.strip())
    return match[1] if match else None


def excludes(first: Statement, second: Statement) -> bool:
    """Whether one of them is an exact pin that the other does not admit."""
    for one, other in ((first, second), (second, first)):
        pinned = exact(one.spec)
        if pinned is not None and admits(other.spec, pinned) is False:
            return True
    return False


def version_in(text: str) -> str | None:
    """The release that a version or a range names: "2.1.1" of "<=2.1.1"."""
    match = re.search(r"\d[\w.+]*", text)
    return match[0] if match else None
