"""Comparing release numbers without the packaging library, for ranges whose form was checked when they were read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# Longer numbers are nobody's version, and int() refuses them.
NUMBERS = re.compile(r"v?(?:\d{1,18}!)?(\d{1,18}(?:\.\d{1,18})*)(?!\.?\d)")
CLAUSE = re.compile(r"\s*(==|!=|~=|>=|<=|<|>)\s*(.+?)\s*")
Release = tuple[int, ...]


@lru_cache(maxsize=1024)
def release_of(version: str) -> Release | None:
    """Numbers of a version, zeros at the end left out: (2, 3, 1) of "2.3.1+cu121"; None where it begins with none.

    What follows the numbers (rc1, post2, +cu121) does not count: a pre-release of torch loads what its release does.
    """
    found = NUMBERS.match(version)
    return trimmed(tuple(int(part) for part in found[1].split("."))) if found else None


def trimmed(numbers: Release) -> Release:
    """Without zeros at the end: 12.0 is 12."""
    end = len(numbers)
    while end > 1 and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end]


@lru_cache(maxsize=1024)
def admits(specifier: str, version: str) -> bool:
    """Whether the release of `version` lies in a PEP 440 range such as ">=2.1,<2.6" or "==8.*"."""
    release = release_of(version)
    return release is not None and all(admits_clause(clause, release) for clause in specifier.split(","))


def admits_clause(clause: str, release: Release) -> bool:
    """Whether one clause of a range admits a release."""
    found = CLAUSE.fullmatch(clause)
    limit = release_of(found[2].removesuffix(".*")) if found else None
    if found is None or limit is None:
        return False
    written = tuple(int(part) for part in found[2].removesuffix(".*").split(".") if part.isdigit())
    operator = found[1]
    if operator in {"==", "!="} and found[2].endswith(".*"):
        return starts_with(release, written) is (operator == "==")
    if operator == "~=":
        return release >= limit and starts_with(release, written[:-1])
    return OPERATORS[operator](release, limit)


def starts_with(release: Release, prefix: Release) -> bool:
    """Whether the first numbers of a release are these; 8 has the first numbers 8.0."""
    return (*release, *(0,) * len(prefix))[:len(prefix)] == prefix


OPERATORS: dict[str, Callable[[Release, Release], bool]] = {
    "==": lambda release, limit: release == limit,
    "!=": lambda release, limit: release != limit,
    ">=": lambda release, limit: release >= limit,
    "<=": lambda release, limit: release <= limit,
    ">": lambda release, limit: release > limit,
    "<": lambda release, limit: release < limit,
}
