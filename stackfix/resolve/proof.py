"""Why a closure has no solution, from our own records.

What has only one candidate is forced, and so is what it needs; where needs that are forced leave a project without a
candidate, they and the way to them are the proof. Where that finds nothing, each candidate of a project is tried one
step further. What neither finds is told by the solver's last clash, and said to be that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from stackfix.resolve.needs import Candidate, Exclusion, FromRule, FromStack, Need
from stackfix.resolve.pep508 import pins_exactly
from stackfix.resolve.problem import UNUSABLE, Problem

_Test = Callable[[list[Candidate]], bool]
MAX_TRIED = 400         # candidates that are tried one step further, over all projects


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refuted:
    """A candidate that cannot be used because `need`, which it has, and `against` together admit nothing."""

    candidate: Candidate
    need: Need
    against: tuple[Need, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clash:
    """Needs on one project that nothing can meet, and how each of them came about."""

    problem: Problem
    name: str
    needs: tuple[Need, ...]
    exclusions: tuple[Exclusion, ...]           # of versions that the needs admit
    refuted: tuple[Refuted, ...]                # candidates that the needs admit and their own needs rule out
    forced_by: dict[Candidate, tuple[Need, ...]]
    proved: bool

    def all_needs(self) -> Iterator[Need]:
        """Every need that takes part, the clashing ones first, each once."""
        seen: set[Need] = set()
        waiting = deque(self.needs)
        for case in self.refuted:
            waiting.extend((case.need, *case.against))
        while waiting:
            need = waiting.popleft()
            if need in seen:
                continue
            seen.add(need)
            yield need
            if need.parent is not None:
                waiting.extend(self.forced_by.get(need.parent, ()))

    def depends_on(self) -> frozenset[str]:
        """What of the stack level takes part: "torch", "flash-attn", "python". Without "torch" no other torch helps."""
        parts = set() if self.proved else {"torch", "flash-attn", "python"}
        for need in self.all_needs():
            if isinstance(need.origin, FromStack):
                parts.add(need.origin.part)
            if need.by_python:
                parts.add("python")
        parents = {need.parent for need in self.all_needs() if need.parent is not None}
        for exclusion in (*self.exclusions, *(e for parent in parents for e in self._alternatives(parent))):
            parts.update(name for name, is_so in (
                ("torch", exclusion.by_torch), ("python", exclusion.by_python), ("flash-attn", exclusion.by_flash_attn),
            ) if is_so)
        return frozenset(parts)

    def torch_limits(self) -> Iterator[Need]:
        """Needs on torch that clash with its pin and do not themselves come from that torch: they hold for any other."""
        if not self.proved or self.name != "torch":
            return
        for need in self.needs:
            if not isinstance(need.origin, FromStack):
                alone = replace(self, needs=(need,), exclusions=(), refuted=())
                if "torch" not in alone.depends_on():
                    yield need

    def _alternatives(self, candidate: Candidate) -> Iterator[Exclusion]:
        """Why other versions that the forcing needs admit were no candidates."""
        needs = self.forced_by.get(candidate)
        if needs and not any(pins_exactly(need.specifier) for need in needs):
            yield from exclusions(self.problem, candidate.name, needs)


@dataclass(slots=True, eq=False)
class Propagation:
    """Needs and what they force, in one problem."""

    problem: Problem
    needs: dict[str, list[Need]] = field(default_factory=dict)
    forced: dict[str, Candidate] = field(default_factory=dict)
    forced_by: dict[Candidate, tuple[Need, ...]] = field(default_factory=dict)
    tried: int = 0

    def run(self, needs: Sequence[Need]) -> Clash | None:
        """Adds needs and all that they force; the clash that this leads to, or None."""
        waiting = deque(needs)
        while waiting:
            need = waiting.popleft()
            bucket = self.needs.setdefault(need.key, [])
            bucket.append(need)
            found = self._first_two(need, bucket)
            if not found:
                return self._clash(bucket)
            if len(found) == 1 and need.key not in self.forced:
                waiting.extend(self._force(need, found[0]))
        return None

    def clash_or(self, last: Sequence[Need]) -> Clash:
        """The clash that trying candidates one step further proves; else the solver's `last` one, not proved."""
        step = self.look_ahead()
        while step is not None:
            clash = step if isinstance(step, Clash) else self.run(step)
            if clash is not None:
                return clash
            step = self.look_ahead()
        name = last[0].name if last else "the closure"
        return Clash(
            problem=self.problem, name=name, needs=tuple(last), exclusions=(), refuted=(), forced_by=self.forced_by,
            proved=False,
        )

    def _first_two(self, need: Need, needs: Sequence[Need]) -> list[Candidate]:
        return list(islice(self.problem.candidates(need.name, need.extra, needs), 2))

    def _force(self, need: Need, candidate: Candidate) -> Iterator[Need]:
        self.forced[need.key] = candidate
        bucket = self.needs[need.key]
        fewest = self._fewest(need, self._with_limits(bucket), lambda found: found == [candidate])
        self.forced_by[candidate] = _with_presence(fewest, bucket)
        return self.problem.dependencies(candidate)

    def _with_limits(self, needs: Sequence[Need]) -> tuple[Need, ...]:
        return (*needs, *self.problem.limits.get(needs[0].name, ()))

    def _fewest(self, need: Need, needs: Sequence[Need], holds: _Test) -> tuple[Need, ...]:
        """The needs without those that `holds` can do without; later ones go first, so the first-found stay."""
        kept = list(needs)
        for one in reversed(needs):
            fewer = [other for other in kept if other is not one]
            if holds(list(islice(self._unlimited(need, fewer), 2))):
                kept = fewer
        return tuple(kept)

    def _unlimited(self, need: Need, needs: Sequence[Need]) -> Iterator[Candidate]:
        return self.problem.candidates(need.name, need.extra, needs, with_limits=False)

    def _clash(self, bucket: Sequence[Need]) -> Clash:
        fewest = self._fewest(bucket[0], self._with_limits(bucket), lambda found: not found)
        needs = _with_presence(fewest, bucket)
        name = bucket[0].name
        return Clash(
            problem=self.problem, name=name, needs=needs, exclusions=tuple(exclusions(self.problem, name, needs)),
            refuted=(), forced_by=self.forced_by, proved=True,
        )

    def look_ahead(self) -> Clash | list[Need] | None:
        """Tries candidates one step further: the clash where none is left, the needs of one that alone is left, or
        None where nothing follows.
        """
        for key, bucket in list(self.needs.items()):
            if key in self.forced or bucket[0].extra is not None:
                continue
            refuted: list[Refuted] = []
            left: list[Candidate] = []
            for candidate in self.problem.candidates(bucket[0].name, None, bucket):
                self.tried += 1
                case = self._refute(candidate) if self.tried <= MAX_TRIED else None
                if case is None:
                    left.append(candidate)
                    if len(left) > 1:
                        break
                else:
                    refuted.append(case)
            if not left:
                return self._refuted_clash(bucket, refuted)
            if len(left) == 1 and refuted:
                return self._last_left(bucket, left[0], refuted)
        return None

    def _refute(self, candidate: Candidate) -> Refuted | None:
        for need in self.problem.dependencies(candidate):
            against = self.needs.get(need.key, [])
            if not self._first_two(need, [*against, need]):
                fewest = self._fewest(need, self._with_limits([*against, need]), lambda found: not found)
                return Refuted(candidate=candidate, need=need, against=tuple(n for n in fewest if n is not need))
        return None

    def _refuted_clash(self, bucket: Sequence[Need], refuted: Sequence[Refuted]) -> Clash:
        needs = self._with_limits(bucket)
        return Clash(
            problem=self.problem, name=bucket[0].name, needs=needs, refuted=tuple(refuted),
            exclusions=tuple(exclusions(self.problem, bucket[0].name, needs)), forced_by=self.forced_by, proved=True,
        )

    def _last_left(self, bucket: Sequence[Need], candidate: Candidate, refuted: Sequence[Refuted]) -> list[Need]:
        """Forces the candidate that is left; what ruled the others out is among what forced it."""
        others = [need for case in refuted for need in (case.need, *case.against)]
        for case in refuted:
            self.forced_by.setdefault(case.candidate, self._with_limits(bucket))
        self.forced[bucket[0].key] = candidate
        self.forced_by[candidate] = tuple(dict.fromkeys((*self._with_limits(bucket), *others)))
        return list(self.problem.dependencies(candidate))


def _with_presence(needs: tuple[Need, ...], bucket: Sequence[Need]) -> tuple[Need, ...]:
    """The needs with one that brings the project in at all: a rule or a constraint only limits it."""
    bringing = [need for need in bucket if not isinstance(need.origin, FromRule)]
    if any(need in bringing for need in needs):
        return needs
    return (*(bringing or bucket)[:1], *needs)


def exclusions(problem: Problem, name: str, needs: Sequence[Need]) -> Iterator[Exclusion]:
    """Why versions that the needs admit are no candidates of the problem, newest first."""
    if name.startswith(UNUSABLE):
        yield problem.unusable[name]
        return
    if name in problem.only:
        yield from problem.only_exclusions.get(name, ())
        return
    project = problem.project(name)
    for version in project.admitted(needs):
        candidate = project.candidate(version)
        if candidate is not None and name in problem.allowed and problem.allowed_files(candidate) is None:
            reason = "has no file with a sha256 that the request allows"
            yield Exclusion(version=str(version), kind="index", reason=reason, source=f"index page of {name}")
            continue
        found = project.exclusion(version) if candidate is None else problem.exclusion(candidate)
        if found is not None:
            yield found
