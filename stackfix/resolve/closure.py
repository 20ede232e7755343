"""The closure of one target under a fixed stack: solved by resolvelib, then held against the rules once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep
from resolvelib.resolvers import Criterion, Resolution

from stackfix.errors import AnswerIsNo
from stackfix.quick import dataclass, replace
from stackfix.resolve.clash import Clash
from stackfix.resolve.needs import Candidate, FromRule, Need
from stackfix.resolve.problem import Problem
from stackfix.resolve.proof import Propagation
from stackfix.resolve.provider import ClosureProvider

FIRST_ROUNDS = 200         # beyond one for each project that is known to be needed: then a proof is looked for
MAX_ROUNDS = 3_000         # a stop, far above what real closures take (vllm: a few hundred)


class TooManyRounds(AnswerIsNo):
    """The solver gave up before it could tell."""

    reference = "too-many-rounds"

    def __init__(self, rounds: int, unbuilt: tuple[str, ...] = ()) -> None:
        super().__init__(rounds, unbuilt)
        self.rounds, self.unbuilt = rounds, unbuilt     # projects whose sdists were passed over

    def what(self) -> str:
        return f"no set of packages was found within {self.rounds} rounds; whether there is one is not known"

    def next_step(self) -> str:
        passed = "".join(f" --allow-builds {name}" for name in self.unbuilt)
        built = f"; or let sdists be built that were passed over, which runs their code:{passed}" if passed else ""
        return f"limit the versions of your own requirements{built}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`parent` (None: the request) needs something of `name`."""

    parent: Candidate | None
    need: Need


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """A solution: the chosen candidate of each project, the extras of each, and who needs whom."""

    problem: Problem
    chosen: dict[str, Candidate]
    extras: dict[str, tuple[str, ...]]
    edges: tuple[Edge, ...]


def solve_closure(problem: Problem) -> Closure | Clash:
    """The closure, or what stands in the way. Raises TooManyRounds, and what the index raises."""
    while True:
        # What is forced is looked at first: a clash there is found at once, with its proof, where a search that
        # backtracks may try a thousand versions of something else.
        forced = Propagation(problem)
        clash = forced.run(problem.roots)
        mapping = clash if clash is not None else _search(problem, forced)
        if isinstance(mapping, Clash):
            return mapping
        closure = _reachable(problem, mapping)
        broken = frozenset(_names_of_broken_rules(closure)) - problem.present
        if not broken:
            return closure
        # The rule is about a project that came in by another way than through the candidate's own metadata.
        problem = replace(problem, present=problem.present | broken, _dependencies={})


def _search(problem: Problem, forced: Propagation) -> dict[str, Candidate] | Clash:
    """What resolvelib finds, or the clash."""
    found = _attempt(problem, forced, FIRST_ROUNDS + len(forced.needs))
    if found is not None:
        return found
    clash = forced.clash_or(())         # a search this long mostly has no end: look for the proof before going on
    if clash.proved:
        return clash
    found = _attempt(problem, forced, MAX_ROUNDS)
    if found is None:
        raise TooManyRounds(MAX_ROUNDS, tuple(sorted(problem.evidence.unbuilt)))
    return found


def _attempt(problem: Problem, forced: Propagation, rounds: int) -> dict[str, Candidate] | Clash | None:
    """The search within a number of rounds; None where they are not enough."""
    try:
        # Resolution and not Resolver: the latter also builds a graph, and on a cycle that nothing holds any more that
        # recurses without end (resolvelib 1.2.1, _has_route_to_root). What is reachable is found out here.
        return dict(_resolution(problem).resolve(problem.roots, max_rounds=rounds).mapping)
    except ResolutionImpossible as error:
        return forced.clash_or(tuple(cause.requirement for cause in error.causes))
    except ResolutionTooDeep:
        return None


def _resolution(problem: Problem) -> Resolution[Need, Candidate, str]:
    reporter: BaseReporter[Need, Candidate, str] = BaseReporter()
    return _Remembering(ClosureProvider(problem), reporter)


class _Remembering(Resolution[Need, Candidate, str]):
    """A resolution that tells of each pin once whether it still holds: resolvelib asks of all pins in every round.

    A criterion is made anew when a need is added to it. Where a resolvelib asks by another name, nothing is remembered.
    """

    def _is_current_pin_satisfying(self, name: str, criterion: Criterion[Need, Candidate]) -> bool:
        pin = self.state.mapping.get(name)
        if pin is None:
            return False
        told: dict[str, tuple[object, Candidate, bool]] = self.__dict__.setdefault("_told", {})
        known = told.get(name)
        if known is None or known[0] is not criterion or known[1] is not pin:
            holds = super()._is_current_pin_satisfying(name, criterion)
            known = told[name] = criterion, pin, holds
        return known[2]


def _reachable(problem: Problem, mapping: dict[str, Candidate]) -> Closure:
    """What the roots really pull in. A rule limits and adds nothing, so its needs lead nowhere."""
    edges: list[Edge] = []
    seen: dict[str, Candidate] = {}
    waiting: deque[tuple[Candidate | None, Need]] = deque((None, need) for need in problem.roots)
    while waiting:
        parent, need = waiting.popleft()
        edges.append(Edge(parent=parent, need=need))
        candidate = mapping[need.key]
        if need.key in seen:
            continue
        seen[need.key] = candidate
        waiting.extend(
            (candidate, below) for below in problem.dependencies(candidate) if not isinstance(below.origin, FromRule)
        )
    extras: dict[str, list[str]] = {}
    for candidate in seen.values():
        if candidate.extra is not None:
            extras.setdefault(candidate.name, []).append(candidate.extra)
    return Closure(
        problem=problem, chosen={c.name: c for c in seen.values() if c.extra is None},
        extras={name: tuple(sorted(names)) for name, names in extras.items()}, edges=tuple(edges),
    )


def _names_of_broken_rules(closure: Closure) -> Iterator[str]:
    """Projects whose chosen version breaks a rule about a chosen candidate."""
    evidence = closure.problem.evidence
    for candidate in closure.chosen.values():
        for limit in evidence.limits_for(candidate):
            other = closure.chosen.get(limit.name)
            if other is not None and not limit.admits(other.version):
                yield limit.name


