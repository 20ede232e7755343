"""Why a closure has no solution, from our own records.

What has only one candidate is forced, and so is what it needs; where needs that are forced leave a project without a
candidate, they and the way to them are the proof. Where that finds nothing, each candidate of a project is tried one
step further. What neither finds is told by the solver's last clash, and said to be that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from stackfix.quick import dataclass, field
from stackfix.resolve.clash import Clash, Refuted, exclusions
from stackfix.resolve.needs import Candidate, FromRule, Need
from stackfix.resolve.problem import Problem, own_pin

_Test = Callable[[list[Candidate]], bool]
MAX_TRIED = 400         # candidates that are tried one step further, over all projects


@dataclass(slots=True, eq=False)
class Propagation:
    """Needs and what they force, in one problem."""

    problem: Problem
    needs: dict[str, list[Need]] = field(default_factory=dict)
    forced: dict[str, Candidate] = field(default_factory=dict)
    forced_by: dict[Candidate, tuple[Need, ...]] = field(default_factory=dict)
    tried: int = 0
    supposed: bool = False          # what follows from a supposition, not from the problem alone

    def run(self, needs: Sequence[Need]) -> Clash | None:
        """Adds needs and all that they force; the clash that this leads to, or None."""
        waiting: deque[Need | tuple[Need, Candidate]] = deque(needs)
        while waiting:
            need = waiting.popleft()
            if isinstance(need, tuple):     # in its turn, since its metadata has to be had: a clash may come before
                waiting.extend(self._force(*need))
                continue
            bucket = self.needs.setdefault(need.key, [])
            bucket.append(need)
            if not self.supposed and not isinstance(need.origin, FromRule):
                self.problem.sure.setdefault(need.name, need)
            found = self._first_two(need, bucket)
            if not found:
                return self._clash(bucket)
            if len(found) == 1 and need.key not in self.forced:
                self.forced[need.key] = found[0]
                waiting.append((need, found[0]))
        return next(self._driven_out(), None)

    def _driven_out(self) -> Iterator[Clash]:
        """Projects that were looked at before it was known what they cannot stand beside."""
        exclusive = self.problem.evidence.exclusive
        for bucket in self.needs.values():
            if bucket[0].name in exclusive and not self._first_two(bucket[0], bucket):
                yield self._clash(bucket)

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
        self.problem.evidence.effort.steps += 1
        return list(islice(self.problem.candidates(need.name, need.extra, needs), 2))

    def _force(self, need: Need, candidate: Candidate) -> Iterator[Need]:
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
        self.problem.evidence.effort.steps += 1
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
        """What follows from trying candidates one step further.

        The clash where none is left, the needs of the one that alone is left, or None where nothing follows.
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
        return self._supposed(candidate)

    def _supposed(self, candidate: Candidate) -> Refuted | None:
        """The clash that choosing the candidate forces, however far away."""
        further = Propagation(
            self.problem, needs={key: list(needs) for key, needs in self.needs.items()}, forced=dict(self.forced),
            forced_by=dict(self.forced_by), supposed=True,
        )
        pins = self._pins(candidate)
        clash = further.run(pins)
        return Refuted(candidate=candidate, need=pins[0], against=(), clash=clash) if clash is not None else None

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
        return [*self.problem.dependencies(candidate), *(pin for pin in self._pins(candidate) if pin.extra is not None)]

    def _pins(self, candidate: Candidate) -> list[Need]:
        """Pins of the candidate's version on the project and on each extra of it that is needed."""
        buckets = [bucket for bucket in self.needs.values() if bucket[0].name == candidate.name]
        return [own_pin(candidate, extra=bucket[0].extra) for bucket in buckets]


def _with_presence(needs: tuple[Need, ...], bucket: Sequence[Need]) -> tuple[Need, ...]:
    """The needs with one that brings the project in at all: a rule or a constraint only limits it."""
    bringing = [need for need in bucket if not isinstance(need.origin, FromRule)]
    if any(need in bringing for need in needs):
        return needs
    return (*(bringing or bucket)[:1], *needs)
