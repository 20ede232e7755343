"""What-if questions: none is solved twice, and their number and their steps are bounded, by no clock."""

from __future__ import annotations

import time
from itertools import count

import pytest

from stackfix.resolve import trial
from stackfix.resolve.decide import decide
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.question import Question
from stackfix.resolve.records import NoConsistentStack, Offer, StackRequest
from stackfix.resolve.solve import Failure, Solved, solve
from stackfix.resolve.trial import Trials
from tests.resolve_world import MATRIX, FakeIndex, FakeReleases, asked, projects, told


def trials(seen: list[StackRequest], *, bound: int = 9, steps: int = 1000, least: int = 0) -> Trials:
    def solver(evidence: Evidence, flash: FlashAttn, question: Question) -> Solved | Failure:
        seen.append(question.request)
        return Failure(question=question, refusals=())

    evidence = Evidence(MATRIX, FakeIndex(projects()), FakeReleases(), None)
    return Trials(evidence, FlashAttn(evidence), solver, bound=bound, steps=steps, least=least)


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
    late = trials(seen, steps=-1, least=1)
    assert late.solve(asked()) is not None
    assert (late.spent, late.solve(asked(cuda="11.8"))) == (True, None)
    assert len(seen) == 2


def test_a_refusal_is_the_same_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked("torchvision==0.18.1", "transformers", "filelock", "numpy", torch="==2.4.1", driver="470.1")

    def refused() -> tuple[str, tuple[Offer, ...]]:
        with pytest.raises(NoConsistentStack) as caught:
            decide(request, MATRIX, FakeIndex(projects()), FakeReleases(), command=told)
        return caught.value.headline, caught.value.nearest

    first = refused()
    hour = count(step=3600)
    for name in ("process_time", "monotonic", "perf_counter", "time"):
        monkeypatch.setattr(time, name, lambda: float(next(hour)))
        monkeypatch.setattr(trial, name, lambda: float(next(hour)), raising=False)
    assert refused() == first
    assert not first[0].endswith(")")
    assert len(first[1]) > 1


def test_each_search_is_counted() -> None:
    evidence = Evidence(MATRIX, FakeIndex(projects()), FakeReleases(), None)
    found = Trials(evidence, FlashAttn(evidence), solve, bound=9, least=1, steps=3)
    assert isinstance(found.solve(asked(torch="==2.3.*")), Solved)
    assert evidence.effort.steps > 3
    assert found.spent
    assert evidence.limited_to("2026-01-01T00:00:00Z").effort is evidence.effort
