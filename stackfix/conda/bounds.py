"""MatchSpec lines of records, taken apart as text: name, version part, and what bounds it from below.

Whether a version is admitted is asked of the solver's own reading (see `matching`); here nothing is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_LOWER = re.compile(r"(?:>=|==|~=|(?<![<>!=~])=)\s*([0-9][0-9A-Za-z_.!+]*)")
_BARE = re.compile(r"([0-9][0-9A-Za-z_.!+]*?)(?:\.?\*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One dependency of a record: `libcublas >=12.1.0.26,<12.1.3.1`."""

    name: str
    version: str                    # ">=12.1.0.26,<12.1.3.1"; "*" where any
    build: str | None               # "cuda118_*_302"

    @property
    def text(self) -> str:
        return " ".join(part for part in (self.name, self.version, self.build) if part)


@lru_cache(maxsize=65_536)      # a record's lines are looked through once for each difference
def parse_line(text: str) -> Line:
    """The parts of a dependency line of a record: they are separated by blanks there."""
    parts = text.split()
    name = parts[0].lower() if parts else ""
    return Line(name=name, version=parts[1] if len(parts) > 1 else "*", build=parts[2] if len(parts) > 2 else None)


def spec_name(text: str) -> str:
    """`numpy` of "numpy >=1.26[channel='a']" and of "numpy[channel='a']"."""
    return text.partition(" ")[0].partition("[")[0]


def lines_for(lines: Iterable[str], *names: str) -> Iterator[Line]:
    """The lines about these packages, in their order."""
    for text in lines:
        line = parse_line(text)
        if line.name in names:
            yield line


def lower_bound(version: str) -> str | None:
    """`8.9.7.29` of `>=8.9.7.29,<9.0a0`, `12.1` of `12.1.*`; None where nothing bounds it from below."""
    if "|" in version:
        return None
    for clause in version.split(","):
        match = _LOWER.match(clause) or _BARE.fullmatch(clause)
        if match is not None:
            return match[1].removesuffix(".*").rstrip("*.") or None
    return None
