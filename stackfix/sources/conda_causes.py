"""py-rattler's tree made into a short chain of causes, each tied to what was asked.

The tree names what contradicts a thing without saying by whom it was asked: an option that nothing asked allows is
reported as missing. So each end of the chain is looked up: in what was asked, in the virtual packages, in the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stackfix.conda.records import CondaAsk, CondaCause, Spec
from stackfix.sources.conda_trails import Trail, joined, trails_of, way_to
from stackfix.sources.conda_tree import (
    CONFLICTS,
    CONSTRAINS,
    CONSTRAINT,
    EXCLUDED,
    LOCKED,
    MISSING,
    NONE,
    OTHER,
    REQUIRES,
    SOME,
    Node,
)

MOST = 8                            # causes; past that nobody reads them, and `raw` has the rest
_FAILING = {MISSING, NONE, EXCLUDED, CONFLICTS, LOCKED}
_PRIORITY, _NO_TIME, _TOO_NEW = "strict channel priority", "no timestamp", "cutoff date"


class Facts(Protocol):
    """What the channels of the solve have."""

    def versions(self, name: str) -> tuple[str, ...]:
        """Distinct versions of a package, oldest first."""

    def owner(self, name: str) -> str | None:
        """The channel whose records of a package strict priority takes."""

    def file(self, option: str, needs: str) -> str:
        """A file of an option ("pytorch 2.6.0 | 2.7.0") whose metadata says that it needs this; "" for none."""


def causes_of(tree: Sequence[Node], ask: CondaAsk, facts: Facts) -> tuple[CondaCause, ...]:
    """The chain, what was asked first. Empty where the tree has no line of a known shape."""
    tops = joined(tree)
    asked = frozenset(spec_name(spec) for spec in (*ask.specs, *ask.constraints))
    causes: tuple[CondaCause, ...] = ()
    failing = [(trails_of(node, asked), node) for node in tops if node.kind in _FAILING]
    if failing:
        trails, top = min(failing, key=lambda pair: pair[0][0].whole_weight)
        for trail in trails:
            told = _Told(ask, facts)
            told.trail(trail)
            told.other_side(trail, [node for node in tops if node is not top] or [top])
            causes = with_more(causes, told.causes)
    for name in dict.fromkeys(node.name for node in tops if node.kind == CONSTRAINT and not failing):
        told = _Told(ask, facts)
        told.constraint(name, [node for node in tops if node.kind == SOME])
        causes = with_more(causes, told.causes)
    return causes


def with_more(causes: tuple[CondaCause, ...], more: Sequence[CondaCause]) -> tuple[CondaCause, ...]:
    """`causes` and those of one more chain, as far as all of it can be told: half a chain explains nothing."""
    every = tuple(dict.fromkeys((*causes, *more)))
    return every if len(every) <= MOST or not causes else causes


class _Told:
    """The causes so far, none twice."""

    def __init__(self, ask: CondaAsk, facts: Facts) -> None:
        self.causes: list[CondaCause] = []
        self._ask, self._facts = ask, facts

    def trail(self, trail: Trail) -> None:
        """Tell each step from what was asked to the end."""
        self._asked(trail.lines[0].name)
        for above, line in zip(trail.lines, trail.lines[1:], strict=False):
            if above.kind in {REQUIRES, CONSTRAINS} and not above.name.startswith("__"):
                verb = "needs" if above.kind == REQUIRES else "allows only"
                others = f" (other builds: {', '.join(trail.others)})" if trail.others and line is trail.end else ""
                self._add(f"{above.what} {verb} {line.what.removesuffix(' *')}{others}",
                          source=self._facts.file(above.what, line.what))
        self._end(trail.end)

    def other_side(self, trail: Trail, tops: Sequence[Node]) -> None:
        """Tell who wants another version of what the chain ends with."""
        end = trail.end
        if end.kind not in {CONFLICTS, LOCKED, OTHER} or self._asked(end.name) or self._virtual(end.name):
            return
        way = way_to(end.name, tops, trail.lines[-2] if len(trail.lines) > 1 else end)
        if way is not None and len(way.lines) > 1:
            self.trail(way)

    def constraint(self, name: str, tops: Sequence[Node]) -> None:
        """Tell who needs what a constraint forbids."""
        way = way_to(name, tops, Node(kind=CONSTRAINT, what=name, why="", below=()))
        if way is not None:
            self.trail(way)
        self._asked(name)

    def _end(self, end: Node) -> None:
        if end.kind == EXCLUDED:
            self._excluded(end)
        elif end.kind in {MISSING, CONSTRAINT} and not self._asked(end.name, but=end.what) \
                and not self._virtual(end.name):
            versions = self._facts.versions(end.name)
            self._add(f"no channel that was asked has {end.what}: they have {_some(versions)}" if versions
                      else f"no channel that was asked has a package {end.name}", source=self._channels())

    def _excluded(self, end: Node) -> None:
        if _PRIORITY in end.why:
            at, owner = end.why.partition("from:")[2].strip(" '"), self._facts.owner(end.name)
            what = end.what.replace(" | ", ", ").replace("...", "…")
            self._add(f"{at} has {what}, but strict channel priority takes the {owner or 'other'} channel's",
                      source=at)
        elif _NO_TIME in end.why:
            self._add(f"{end.what} states no time, and --exclude-newer leaves out what states none",
                      source=self._channels())
        elif _TOO_NEW in end.why:
            self._add(f"{end.what} is newer than --exclude-newer {self._ask.exclude_newer} allows",
                      source=self._channels())
        else:
            self._add(f"{end.what} is excluded: {end.why}")

    def _asked(self, name: str, but: str = "") -> bool:
        """Tell what was asked of this package; `but`: the text of a line that says the same."""
        specs = [spec for spec in (*self._ask.specs, *self._ask.constraints) if spec_name(spec) == name]
        for spec in specs:
            limits = spec in self._ask.constraints
            self._add(f"only {spec.text} is allowed" if limits else f"{spec.text} is asked for", spec=spec)
        return bool(specs) and not (len(specs) == 1 and _same(specs[0].text, but))

    def _virtual(self, name: str) -> bool:
        if not name.startswith("__"):
            return False
        found = next((each for each in self._ask.virtual if each.name == name), None)
        self._add(f"the lock is for a machine without {name}" if found is None
                  else f"the lock is for a machine with {name} {found.version}",
                  source=found.origin if found is not None else "")
        return True

    def _add(self, text: str, *, spec: Spec | None = None, source: str = "") -> None:
        cause = CondaCause(text=text, spec=spec, source=spec.origin if spec is not None else source)
        if cause not in self.causes:
            self.causes.append(cause)

    def _channels(self) -> str:
        return ", ".join(channel.name for channel in self._ask.channels)


def spec_name(spec: Spec) -> str:
    """The package that a spec names: "pytorch" of "conda-forge::pytorch>=2"."""
    text = spec.text.strip().rpartition("::")[2]
    end = next((position for position, letter in enumerate(text) if letter in " =<>!~[;("), len(text))
    return text[:end].lower()


def _same(spec: str, line: str) -> bool:
    """Whether a line of the tree is about this very spec: py-rattler writes "pytorch 2.3" as "pytorch ==2.3"."""
    return spec.replace("=", "").split() == line.replace("=", "").removesuffix(" *").split()


def _some(versions: Sequence[str]) -> str:
    """A few of many: the oldest and the newest ones."""
    if len(versions) <= 6:
        return ", ".join(versions)
    return ", ".join((*versions[:2], "…", *versions[-3:]))
