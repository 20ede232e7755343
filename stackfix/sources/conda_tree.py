"""The tree in which py-rattler says why there is no answer, read from its text. Nothing else tells what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MISSING = "missing"                 # no candidate of a requirement
NONE = "none"                       # a requirement none of whose options can be installed
SOME = "some"                       # a requirement with the options that can be installed
REQUIRES = "requires"               # an option, with what it requires below
CONSTRAINS = "constrains"           # an option, with what it constrains below
CONFLICTS = "conflicts"             # an option or a requirement that others contradict
EXCLUDED = "excluded"               # an option that is left out, and why
LOCKED = "locked"
CONSTRAINT = "constraint"           # one that was asked and cannot be met
OTHER = "other"                     # an option, or a line of a shape that is not known here

_START = "Cannot solve the request because of: "
_HEADING = "The following packages are incompatible"
_DEEPEST = 100                      # levels of the tree; what a hostile channel makes deeper is left out
_BRANCH = re.compile(r"^(?P<indent>[│ ]*)[├└]─ ")
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile(shape)) for kind, shape in (
    (MISSING, r"No candidates were found for (?P<what>.+?)\.?"),
    (MISSING, r"(?P<what>.+?), for which no candidates were found\.?"),
    (NONE, r"(?P<what>.+?),?(?: which)? cannot be installed because there are no viable options:?"),
    (SOME, r"(?P<what>.+?),?(?: which)? can be installed with any of the following options:?"),
    (REQUIRES, r"(?P<what>.+?) would require"),
    (CONSTRAINS, r"(?P<what>.+?) would constrain"),
    (CONFLICTS, r"(?P<what>.+?),? which conflicts with .+"),
    (EXCLUDED, r"(?P<what>.+?) is excluded because (?P<why>.+)"),
    (LOCKED, r"(?P<what>.+?) is locked, .+"),
    (CONSTRAINT, r"the constraint (?P<what>.+) cannot be fulfilled"),
))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One line, with the lines below it."""

    kind: str
    what: str                       # "pytorch 2.6.0", "cudnn >=9.8.0.87,<10.0a0"
    why: str                        # of EXCLUDED; else ""
    below: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The package that the line is about."""
        return self.what.partition(" ")[0].partition("[")[0].rpartition("::")[2]

    def walk(self) -> Iterator[Node]:
        """This line and all below it."""
        yield self
        for node in self.below:
            yield from node.walk()


def parse_tree(raw: str) -> tuple[Node, ...]:
    """The topmost lines of what py-rattler says."""
    placed = (_placed(line) for line in raw.removeprefix(_START).splitlines() if line.strip())
    nodes = _nodes([(depth, text) for depth, text in placed if depth <= _DEEPEST])
    return tuple(node for top in nodes for node in (top.below if top.what == _HEADING else (top,)))


def _placed(line: str) -> tuple[int, str]:
    """(depth, text) of one line; text without a branch is at the top."""
    branch = _BRANCH.match(line)
    if branch is None:
        return 0, line.strip()
    return len(branch["indent"]) // 3 + 1, line[branch.end():].strip()


def _nodes(lines: list[tuple[int, str]]) -> tuple[Node, ...]:
    """The lines as trees: each holds those after it that are deeper."""
    found: list[Node] = []
    position = 0
    while position < len(lines):
        depth, text = lines[position]
        end = position + 1
        while end < len(lines) and lines[end][0] > depth:
            end += 1
        found.append(_node(text, _nodes(lines[position + 1:end])))
        position = end
    return tuple(found)


def _node(text: str, below: tuple[Node, ...]) -> Node:
    for kind, shape in _SHAPES:
        match = shape.fullmatch(text)
        if match is not None:
            return Node(kind=kind, what=match["what"], why=match.groupdict().get("why") or "", below=below)
    return Node(kind=OTHER, what=text, why="", below=below)
