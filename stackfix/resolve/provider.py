"""resolvelib asks, the problem answers.

Two habits of resolvelib are kept out here. A later pin may move an earlier one without a word: the stack level is
therefore fixed in the problem and not left to it. And its causes hold only the last clash: what stood in the way is
found out by `proof`, from our own records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from resolvelib.providers import AbstractProvider
from resolvelib.structs import RequirementInformation

from stackfix.resolve.needs import Candidate, Need, solver_key
from stackfix.resolve.pep508 import admits, pins_exactly
from stackfix.resolve.problem import Problem


class ClosureProvider(AbstractProvider[Need, Candidate, str]):
    """Answers for one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._satisfied: dict[tuple[Need, Candidate], bool] = {}
        self._pinning: dict[Need, bool] = {}

    def identify(self, requirement_or_candidate: Need | Candidate) -> str:
        if isinstance(requirement_or_candidate, Need):
            return requirement_or_candidate.key
        return solver_key(requirement_or_candidate.name, requirement_or_candidate.extra)

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[RequirementInformation[Need, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Need, Candidate]],
    ) -> Iterable[str]:
        """The one to pin next: exact pins first (they decide without a search), then what clashed, then by discovery.

        The part of an extra waits for its own project, whose version it has to share.
        """
        waiting = list(identifiers)
        ready = [key for key in waiting if "[" not in key or key.partition("[")[0] in resolutions] or waiting
        for key in ready:
            if "[" in key or any(self._pins(item.requirement) for item in information[key]):
                return [key]
        causes = {item.requirement.key for item in backtrack_causes}
        causes.update(self.identify(item.parent) for item in backtrack_causes if item.parent is not None)
        return [next((key for key in ready if key in causes), ready[0])]

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[RequirementInformation[Need, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Need, Candidate]],
    ) -> str:
        return identifier       # never decides: the narrowing leaves one

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]]:
        needs = list(requirements[identifier])
        bad = set(incompatibilities[identifier])
        # From the identifier: after a backjump resolvelib also asks about projects that nobody needs any more.
        name, bracket, rest = identifier.partition("[")
        extra = rest.removesuffix("]") if bracket else None

        def matches() -> Iterator[Candidate]:
            self._problem.evidence.effort.steps += 1
            return (c for c in self._problem.candidates(name, extra, needs) if c not in bad)

        return matches

    def is_satisfied_by(self, requirement: Need, candidate: Candidate) -> bool:
        key = (requirement, candidate)
        try:
            return self._satisfied[key]
        except KeyError:
            satisfied = self._satisfied[key] = admits(requirement.specifier, candidate.version)
            return satisfied

    def get_dependencies(self, candidate: Candidate) -> Iterable[Need]:
        return self._problem.dependencies(candidate)

    def _pins(self, need: Need) -> bool:
        if need not in self._pinning:
            self._pinning[need] = pins_exactly(need.specifier)
        return self._pinning[need]
