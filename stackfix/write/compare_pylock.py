"""A pylock beside the one it should be: its targets first, then entry by entry."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import zip_longest
from operator import attrgetter

from stackfix.quick import dataclass, replace
from stackfix.write.compare_lines import Numbered, compare_lines, compared_lines
from stackfix.write.compare_targets import locked_otherwise, targets_of
from stackfix.write.foreign import parse_pylock
from stackfix.write.records import Difference

KEYS = 3                        # lines below [[packages]] that say which it is
TEXT = re.compile(r'(?P<key>name|version|marker) = "(?P<value>[^"]*)"')
SHOWN = 300                     # characters of a marker: it is told again with each line of its package
BY_HAND = 3                     # differences up to which lines are told as they follow each other
MOST_CELLS = 20_000_000         # found x expected lines of all entries together
FIRST, TOOL = "[[packages]]", re.compile(r"\[tool[.\]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The lines of one entry, without those that are blank at its end."""

    lines: tuple[Numbered, ...]
    name: str
    version: str
    marker: str

    @property
    def about(self) -> str:
        """`torch (sys_platform == 'linux')`."""
        behind = f" ({self.marker[:SHOWN]}{'…' if len(self.marker) > SHOWN else ''})" if self.marker else ""
        return f"{self.name}{behind}"


def compare_pylock(path: str, text: str, planned: str) -> list[Difference]:
    """The differences of one pylock, in the order of the file.

    Of a lock for other targets: those that are missing or too much, and of the packages only what would be installed
    otherwise on the targets of both. All else in the file follows from the targets.
    """
    found, expected = compared_lines(text), compared_lines(planned)
    if [line for _, line in found] == [line for _, line in expected]:
        return []
    there, wanted = parse_pylock(text), parse_pylock(planned)
    targets, asked = targets_of(there), targets_of(wanted)
    old, new = blocks_of(found), blocks_of(expected)
    is_huge, others = cells(old, new) > MOST_CELLS, list[Difference]()
    if targets and asked and targets.keys() != asked.keys():
        others.extend(target_lines(path, found, expected, targets, asked))
        if not is_huge:
            names = locked_otherwise(there, wanted, targets.keys() & asked.keys())
            return [*others, *by_entry(path, found, expected, names)]
    one_by_one = list(compare_lines(path, found, expected))
    if is_huge or len(one_by_one) <= BY_HAND:
        starts = [block.lines[0][0] for block in old]
        return [*others, *(replace(one, about=about_at(old, starts, one.line or 1)) for one in one_by_one)]
    around = compare_lines(path, outside(found), outside(expected))
    return sorted([*around, *by_entry(path, found, expected, None)], key=lambda one: one.line or 0)


def target_lines(
    path: str, found: list[Numbered], expected: list[Numbered], targets: dict[str, str], asked: dict[str, str],
) -> Iterator[Difference]:
    """One difference for each target that only one side has."""
    place = next((number for number, line in found if line.startswith("environments")), 1)
    lines = {side: {line.strip().rstrip(",").strip('"'): (number, line) for number, line in numbered}
             for side, numbered in (("found", found), ("expected", expected))}
    for label, marker in asked.items():
        if label not in targets:
            _, line = lines["expected"].get(marker, (0, marker))
            yield Difference(path=path, line=place, found=None, expected=line, about=f"targets: {label}", whole=True)
    for label, marker in targets.items():
        if label not in asked:
            number, line = lines["found"].get(marker, (place, marker))
            yield Difference(path=path, line=number, found=line, expected=None, about=f"targets: {label}", whole=True)


def by_entry(
    path: str, found: list[Numbered], expected: list[Numbered], names: Collection[str] | None,
) -> list[Difference]:
    """The differences of the entries of these names, of all where None: each beside the one it should be."""
    old, new = by_name(blocks_of(found)), by_name(blocks_of(expected))
    last = found[-1][0] + 1 if found else 1
    order = sorted(old)
    result = list[Difference]()
    for name in old.keys() | new.keys() if names is None else names:
        behind = bisect_right(order, name)          # where an entry that is missing has its place
        place = old[order[behind]][0].lines[0][0] if behind < len(order) else last
        for mine, theirs in pairs(old.get(name, []), new.get(name, [])):
            result.extend(compare_block(path, mine, theirs, place))
    return sorted(result, key=lambda one: (one.line or 0, one.about or ""))


def by_name(blocks: list[Block]) -> dict[str, list[Block]]:
    """The entries of each name."""
    found: dict[str, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.name, []).append(block)
    return found


def pairs(old: list[Block], new: list[Block]) -> Iterator[tuple[Block | None, Block | None]]:
    """Entries of one name that differ: those of one marker together, then those of one version, then in order."""
    mine, theirs = list(old), list(new)
    for same in (texts_of, attrgetter("marker"), attrgetter("version")):
        for one in tuple(mine):
            other = next((other for other in theirs if same(one) == same(other)), None)
            if other is not None:
                mine.remove(one)
                theirs.remove(other)
                if texts_of(one) != texts_of(other):
                    yield one, other
    yield from zip_longest(mine, theirs)


def texts_of(block: Block) -> list[str]:
    """The lines without their numbers."""
    return [line for _, line in block.lines]


def compare_block(path: str, mine: Block | None, theirs: Block | None, place: int) -> Iterator[Difference]:
    """The lines of two entries, or one difference for an entry that only one side has."""
    if mine is not None and theirs is not None:
        for one in compare_lines(path, list(mine.lines), list(theirs.lines)):
            yield replace(one, about=mine.about)
    elif mine is not None:
        number, line = mine.lines[min(1, len(mine.lines) - 1)]
        yield Difference(path=path, line=number, found=line, expected=None, about=mine.about, whole=True)
    elif theirs is not None:
        line = theirs.lines[min(1, len(theirs.lines) - 1)][1]
        yield Difference(path=path, line=place, found=None, expected=line, about=theirs.about, whole=True)


def blocks_of(numbered: list[Numbered]) -> list[Block]:
    """The entries of a file, in its order."""
    lines = [line for _, line in numbered]
    starts = [index for index, line in enumerate(lines) if line == FIRST]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        stop = next((index for index in range(start, end) if TOOL.match(lines[index])), end)
        while not lines[stop - 1].strip():
            stop -= 1
        stated = {match["key"]: match["value"] for line in lines[start + 1:start + 1 + KEYS]
                  if (match := TEXT.fullmatch(line))}
        found.append(Block(lines=tuple(numbered[start:stop]), name=stated.get("name", "?"),
                           version=stated.get("version", ""), marker=stated.get("marker", "")))
    return found


def outside(numbered: list[Numbered]) -> list[Numbered]:
    """The lines that are of no entry, blank ones aside."""
    inside = {number for block in blocks_of(numbered) for number, _ in block.lines}
    return [(number, line) for number, line in numbered if number not in inside and line.strip()]


def about_at(blocks: list[Block], starts: list[int], number: int) -> str | None:
    """What a line belongs to; None before the first package."""
    place = bisect_right(starts, number)
    return blocks[place - 1].about if place else None


def cells(old: list[Block], new: list[Block]) -> int:
    """How much there is to align, at most."""
    longest = max((len(block.lines) for block in new), default=0)
    return sum(len(block.lines) for block in old) * longest
