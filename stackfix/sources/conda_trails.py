"""Ways through py-rattler's tree, from what was asked to what makes it impossible: the surest and shortest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stackfix.sources.conda_tree import CONFLICTS, CONSTRAINS, CONSTRAINT, EXCLUDED, LOCKED, MISSING, NONE, SOME, Node

_ALTERNATIVES = 3                   # ways in which the options of one requirement fail, told one by one
_LAST = 4
_RANK = {MISSING: 0, EXCLUDED: 1, CONSTRAINT: 1, CONSTRAINS: 2, CONFLICTS: 3, LOCKED: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The lines from a topmost one to an end; `others`: where options beside end that fail by the same package."""

    lines: tuple[Node, ...]
    others: tuple[str, ...] = ()

    @property
    def end(self) -> Node:
        return self.lines[-1]

    @property
    def weight(self) -> tuple[int, int]:
        """The surest and shortest first."""
        return _RANK.get(self.end.kind, _LAST), len(self.lines)

    @property
    def whole_weight(self) -> tuple[int, int]:
        """The same of a trail from the top: a build that is left out itself is rarely what was wanted."""
        return (_LAST, 2) if self.hidden else self.weight

    @property
    def hidden(self) -> bool:
        """Whether what was asked leads to nothing but a build that is left out."""
        return self.end.kind == EXCLUDED and len(self.lines) <= 2


def joined(tree: Sequence[Node]) -> tuple[Node, ...]:
    """The topmost lines; those about one requirement, of which the tree has two parts, as one."""
    found: dict[tuple[str, str], Node] = {}
    for node in tree:
        key = node.kind, node.what
        found[key] = replace(node, below=(*found[key].below, *node.below)) if key in found else node
    return tuple(found.values())


def best_trail(node: Node) -> Trail:
    """The surest and shortest way to an end below."""
    if not node.below:
        return Trail(lines=(node,))
    rest = min((best_trail(each) for each in node.below), key=lambda trail: trail.weight)
    return Trail(lines=(node, *rest.lines))


def trails_of(top: Node, asked: frozenset[str]) -> tuple[Trail, ...]:
    """How the options of a topmost requirement fail, the best first; those that fail by one package as one.

    An option that needs another version of something asked was never meant; it is told only where all are such.
    """
    if top.kind != NONE or not top.below:
        return (best_trail(top),)
    found: dict[tuple[str, str, str], list[Trail]] = {}
    for trail in (Trail(lines=(top, *best_trail(each).lines)) for each in top.below):
        key = trail.end.kind, trail.end.name, trail.end.why
        found.setdefault(key, []).append(trail)
    groups = [_as_one(trails) for trails in found.values()]
    meant = [trail for trail in groups if not (trail.end.kind == MISSING and trail.end.name in asked)]
    surest = [trail for trail in meant if not trail.hidden] or groups
    return tuple(sorted(surest, key=lambda trail: trail.whole_weight))[:_ALTERNATIVES]


def _as_one(trails: list[Trail]) -> Trail:
    first = min(trails, key=lambda trail: trail.weight)
    whats = (trail.end.what for trail in trails if trail.end.kind == MISSING)
    return replace(first, others=tuple(dict.fromkeys(what for what in whats if what != first.end.what)))


def way_to(name: str, tops: Sequence[Node], but: Node) -> Trail | None:
    """The shortest way from a topmost line to a requirement of this package other than `but`."""
    level = [Trail(lines=(node,)) for node in tops]
    while level:
        hit = next((trail for trail in level if trail.end.name == name and trail.end.what != but.what
                    and trail.end.kind in {SOME, NONE, MISSING, CONFLICTS}), None)
        if hit is not None:
            return hit
        level = [Trail(lines=(*trail.lines, node)) for trail in level for node in trail.end.below]
    return None
