"""What-if questions: none is solved twice, and their number and time are bounded."""

from __future__ import annotations

from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.question import Question
from stackfix.resolve.records import StackRequest
from stackfix.resolve.solve import Failure, Solved
from stackfix.resolve.trial import Trials
from tests.resolve_world import MATRIX, FakeIndex, FakeReleases, asked, projects


def trials(seen: list[StackRequest], *, bound: int = 9, seconds: float = 60.0, least: int = 0) -> Trials:
    def solver(evidence: Evidence, flash: FlashAttn, question: Question) -> Solved | Failure:
        seen.append(question.request)
        return Failure(question=question, refusals=())

    evidence = Evidence(MATRIX, FakeIndex(projects()), FakeReleases(), None)
    return Trials(evidence, FlashAttn(evidence), solver, bound=bound, seconds=seconds, least=least)


def test_nothing_is_solved_twice() -> None:
    seen: list[StackRequest] = []
    found = trials(seen)
    first = found.solve(asked(cuda="12.1"))
    assert found.solve(asked(cuda="12.1")) is first
    assert found.solve(asked(cuda="11.8")) is not first
    assert [request.cuda for request in seen] == ["12.1", "11.8"]


def test_no_more_is_tried_than_the_bounds_let() -> None:
    seen: list[StackRequest] = []
    few = trials(seen, bound=1)
    known = few.solve(asked(cuda="12.1"))
    assert few.spent
    assert few.solve(asked(cuda="11.8")) is None
    assert few.solve(asked(cuda="12.1")) is known
    late = trials(seen, seconds=-1.0, least=1)
    assert late.solve(asked()) is not None
    assert (late.spent, late.solve(asked(cuda="11.8"))) == (True, None)
    assert len(seen) == 2
