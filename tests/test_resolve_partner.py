"""A stack that another side must hold too: what it refuses is a reason, and the next Python and stack is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from stackfix.conda.records import CondaTarget
from stackfix.resolve.against import Reason
from stackfix.resolve.decide import decide
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.question import Question
from stackfix.resolve.records import Cause, Lock, NoConsistentStack, StackRequest, Target
from stackfix.resolve.solve import Refusal, Solved, solve
from stackfix.resolve.stack import Stack
from tests.resolve_world import MATRIX, FakeIndex, FakeReleases, asked, projects

Holds = Callable[[Solved], bool]


@dataclass(kw_only=True)
class Other:
    """A side that holds what `holds` says. It notes what it was asked."""

    holds: Holds
    says: str = "no a"
    early: Callable[[Stack], bool] = lambda _: True
    asked: list[tuple[str, str]] = field(default_factory=list)

    def against(self, question: Question, stack: Stack, targets: Sequence[Target]) -> Reason | None:
        return None if self.early(stack) else self._reason(question)

    def hold(self, solved: Solved, evidence: Evidence, flash: FlashAttn) -> tuple[CondaTarget, ...] | Refusal:
        targets = sorted(solved.closures)
        self.asked += [(solved.stack.text, target.python) for target in targets]
        if not self.holds(solved):
            return Refusal(stack=solved.stack, reasons=(self._reason(solved.question),))
        return tuple(
            CondaTarget(target=target, layout="native", channels=(), priority="strict", virtual=(), specs=(),
                        torch=None, records=(), pip=(), departures=())
            for target in targets
        )

    def _reason(self, question: Question) -> Reason:
        chain = (Cause(kind="channel", text="{torch} wants a", source="a.conda"),
                 Cause(kind="channel", text="there is no a", source="forge"))
        return Reason(kind="channel", asks=question.ask("layout"), says=self.says, source="a.conda", chain=chain)


def joint(request: StackRequest, other: Other) -> Lock:
    return decide(request, MATRIX, FakeIndex(projects()), FakeReleases(), command=lambda changed: str(changed.layout),
                  solver=partial(solve, partner=other))


def test_each_side_of_one_target_is_in_the_lock() -> None:
    found = joint(asked(torch="==2.3.*"), Other(holds=lambda _: True))
    assert [one.target for one in found.conda] == [one.target for one in found.targets]


def test_another_torch_where_the_newest_cannot_be_held() -> None:
    other = Other(holds=lambda solved: solved.stack.text == "2.3.0")
    assert joint(asked(), other).stack.torch == "2.3.0"
    assert other.asked == [("2.4.1", "3.10"), ("2.3.1", "3.10"), ("2.3.0", "3.10")]


def test_the_newest_python_that_holds_where_the_running_one_does_not() -> None:
    other = Other(holds=lambda solved: {target.python for target in solved.closures} == {"3.10"})
    found = joint(asked(torch="==2.3.1", pythons=()), other)
    assert [python for _, python in other.asked] == ["3.11", "3.12", "3.10"]
    assert [one.target.python for one in found.conda] == ["3.10"]
    assert any("Python 3.10 was chosen" in note for note in found.notes)


def test_all_targets_or_none() -> None:
    request = asked(torch="==2.3.*", pythons=("3.10", "3.11"))
    found = joint(request, Other(holds=lambda solved: len(solved.closures) > 1))
    assert [one.target.python for one in found.conda] == ["3.10", "3.11"]


def test_what_can_be_told_early_spares_the_closures() -> None:
    other = Other(holds=lambda _: True, early=lambda stack: stack.text == "2.0.1")
    assert joint(asked(), other).stack.torch == "2.0.1"
    assert other.asked == [("2.0.1", "3.10")]


def test_both_sides_are_one_chain_and_offers_hold_on_both() -> None:
    other = Other(holds=lambda solved: solved.question.request.layout is None)
    with pytest.raises(NoConsistentStack) as caught:
        joint(asked(torch="==2.3.*", layout="native"), other)
    error = caught.value
    assert [cause.text for cause in error.causes] == [
        "asked: --layout native", "torch 2.3.1 wants a (torch 2.0.1, 2.3.0 and 2.4.1 likewise)", "there is no a"]
    assert [(offer.change, offer.command) for offer in error.nearest] == [("without --layout native", "None")]


def test_a_flash_attn_that_nobody_asked_for_gives_way() -> None:
    other = Other(holds=lambda solved: solved.plan is None, says="no flash-attn 2.6.3")
    found = joint(asked(torch="==2.3.1", no_flash_attn=False), other)
    assert found.stack.flash_attn is None
    assert "flash-attn" not in {package.name for package in found.targets[0].packages}
    assert any(note.startswith("flash-attn is left out: the conda side") for note in found.notes)


def test_it_stays_where_it_has_no_part_in_the_refusal() -> None:
    other = Other(holds=lambda solved: solved.stack.text == "2.3.0")
    assert joint(asked(torch="==2.3.*", no_flash_attn=False), other).stack.flash_attn == "2.6.3"
    assert [torch for torch, _ in other.asked] == ["2.3.1", "2.3.0"]


def test_one_that_was_asked_for_does_not() -> None:
    other = Other(holds=lambda solved: solved.plan is None, says="no flash-attn 2.5.8")
    with pytest.raises(NoConsistentStack):
        joint(asked(torch="==2.3.1", flash_attn="==2.5.8"), other)
