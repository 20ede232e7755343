"""Requirements that installed packages declare: read quickly, and judged by the packaging library where it is needed.

Most of some thousand lines are met, or are for another platform, and that can be told without packaging, whose import
alone takes longer than all of them. What cannot be told so is given to it: it has the last word on what is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from stackfix.diagnose.imports_projects import SEPARATORS
from stackfix.diagnose.releases import admits

LINE = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*([^;]*?)\s*(?:;\s*(.*))?",
                  re.DOTALL)
PLAIN_VERSION = re.compile(r"\d+(?:\.\d+)*(?:\+[a-z0-9.]+)?", re.IGNORECASE)
PLAIN_CLAUSES = re.compile(r"\s*(?:(?:==|!=|~=|>=|<=|<|>)\s*\d+(?:\.\d+)*(?:\.\*)?\s*(?:,\s*|$))+")
CLAUSE = re.compile(r"\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*[\"']([^\"']*)[\"']\s*")
LONGEST = 200                       # signs of a requirement; real ones with all their markers have fewer


class Line(NamedTuple):
    """One declared requirement, taken apart but not judged."""

    text: str                       # as METADATA has it
    name: str                       # normalised
    extras: tuple[str, ...]         # of what is required
    specifier: str                  # ">=2,<3"; "" where any version will do, or an address is given
    marker: str


@lru_cache(maxsize=1 << 14)
def parse_line(text: str) -> Line | None:
    """A requirement taken apart; None where it is none."""
    found = LINE.fullmatch(text)
    if found is None:
        return None
    specifier = found[3].strip()
    if specifier.startswith("(") and specifier.endswith(")"):
        specifier = specifier[1:-1]
    extras = tuple(normalised(each) for each in (found[2] or "").split(",") if each.strip())
    return Line(text=text, name=normalised(found[1]), extras=extras, marker=found[4] or "",
                specifier="" if specifier.startswith("@") else specifier)


def normalised(name: str) -> str:
    """A name as PEP 503 has it."""
    return SEPARATORS.sub("-", name.strip()).lower()


def surely_met(specifier: str, version: str) -> bool:
    """Whether a version is in a range, where both are plain numbers; False also where that cannot be told so."""
    if not specifier:
        return True
    return bool(PLAIN_VERSION.fullmatch(version) and PLAIN_CLAUSES.fullmatch(specifier)) and admits(specifier, version)


def surely_void(marker: str, environment: Mapping[str, str], extras: frozenset[str]) -> bool:
    """Whether a marker does not hold here; False also where that cannot be told without parsing it properly."""
    marker = unwrapped(marker)
    alternatives = split(marker, " or ")
    if len(alternatives) > 1:
        return all(surely_void(each, environment, extras) for each in alternatives)
    clauses = split(marker, " and ")
    if len(clauses) > 1:
        return any(surely_void(each, environment, extras) for each in clauses)
    return is_void(marker, environment, extras)


def split(marker: str, word: str) -> list[str]:
    """The parts of a marker between a word that stands outside of parentheses."""
    parts = marker.split(word)
    found = parts[:1]
    for part in parts[1:]:
        if found[-1].count("(") > found[-1].count(")"):
            found[-1] += word + part
        else:
            found.append(part)
    return found


def unwrapped(marker: str) -> str:
    """A marker without parentheses around it as a whole."""
    marker = marker.strip()
    once = marker.count("(") == marker.count(")") == 1
    return marker[1:-1] if once and marker.startswith("(") and marker.endswith(")") else marker


def is_void(clause: str, environment: Mapping[str, str], extras: frozenset[str]) -> bool:
    """Whether a clause of a marker surely does not hold."""
    found = CLAUSE.fullmatch(clause)
    if found is None:
        return False
    name, operator, value = found[1], found[2], found[3]
    if name == "extra":
        return operator == "==" and normalised(value) not in extras
    known = environment.get(name)
    if known is None:
        return False
    if name in {"python_version", "python_full_version"}:
        plain = PLAIN_VERSION.fullmatch(value) and PLAIN_VERSION.fullmatch(known)
        return bool(plain) and not admits(f"{operator}{value}", known)
    return {"==": known != value, "!=": known == value}.get(operator, False)


def cut(text: str) -> str:
    """Words of metadata, not longer than anybody means."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
