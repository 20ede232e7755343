"""Solving changed requests with the same sources, a bounded number of times."""

from __future__ import annotations

from stackfix.errors import AnswerIsNo, BadInput, Unreachable
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.question import Question, parse_request
from stackfix.resolve.records import StackRequest
from stackfix.resolve.solve import Failure, Solved, Solver

# Steps of searching (some 0.03 ms each), after which an explanation does with what it has. No clock bounds it: by one,
# a busy machine or an empty cache would give another answer.
STEPS = 200_000
LEAST = 8               # that are solved however much they take: most requests ask less


class Trials:
    """A solver for what-if questions. `spent`: more could have been tried; `unreached`: sources did not answer."""

    def __init__(
        self, evidence: Evidence, flash: FlashAttn, solver: Solver, *, bound: int, steps: int = STEPS,
        least: int = LEAST,
    ) -> None:
        self.evidence, self.flash, self.solver, self._left = evidence, flash, solver, bound
        self.unreached = False
        self._until, self._least = evidence.effort.steps + steps, least
        self._known: dict[StackRequest, Solved | Failure | None] = {}

    @property
    def spent(self) -> bool:
        return self._left <= 0 or (len(self._known) >= self._least and self.evidence.effort.steps > self._until)

    def solve(self, request: StackRequest) -> Solved | Failure | None:
        """The answer to a request; None where none was found out (bound hit, out of reach, only a build could tell)."""
        if request in self._known:
            return self._known[request]
        if self.spent:
            return None
        self._left -= 1
        self._known[request] = found = self._solved(request)
        return found

    def _solved(self, request: StackRequest) -> Solved | Failure | None:
        evidence = self.evidence.limited_to(request.exclude_newer)
        question: Question = parse_request(request)
        try:
            found = self.solver(evidence, FlashAttn.sharing(self.flash, evidence), question)
        except (AnswerIsNo, BadInput):      # malformed: a wheel's address that fits only the Python that was asked for
            return None
        except Unreachable:                 # the answer is no already: this only asks for more words about it
            self.unreached = True
            return None
        if isinstance(found, Failure) and found.unsure:
            self.unreached = True
            return None
        return found
