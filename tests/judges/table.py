"""The table of judged locks: combination x judge x verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What each judge said of one lock: "" for yes, else its complaint."""

    combination: str
    packages: int
    seconds: float
    said: Mapping[str, str]


VERDICTS = pytest.StashKey[list[Verdict]]()
STACKS = pytest.StashKey[list[tuple[str, ...]]]()       # what was locked from conda channels: a row of words each


def render_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One row per combination, then the sums."""
    judges = sorted({judge for verdict in verdicts for judge in verdict.said})
    width = max(len(verdict.combination) for verdict in verdicts)
    yield f"{'combination':{width}}  pins  lock s  " + "  ".join(f"{judge:>10}" for judge in judges)
    for verdict in verdicts:
        cells = [_cell(verdict.said.get(judge)) for judge in judges]
        yield (f"{verdict.combination:{width}}  {verdict.packages:4}  {verdict.seconds:6.2f}  "
               + "  ".join(f"{cell:>10}" for cell in cells))
    accepted = [sum(verdict.said.get(judge) == "" for verdict in verdicts) for judge in judges]
    yield (f"{f'{len(verdicts)} combinations':{width}}  {'':4}  {'':6}  "
           + "  ".join(f"{count:>10}" for count in accepted))
    for verdict in verdicts:
        for judge, complaint in verdict.said.items():
            if complaint:
                yield f"{verdict.combination}: {judge}: {complaint.splitlines()[0][:200]}"


def _cell(complaint: str | None) -> str:
    if complaint is None:
        return "-"
    return "refuses" if complaint else "accepts"


def render_rows(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The rows with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
