"""Machines of public reports, planned for: each is cured, at no higher rank than the report's right answer.

A case prints its row, and the last test the whole table: `pytest -rP tests/test_plan_cases.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.cli.repairing import with_hooks
from stackfix.diagnose.diagnose import diagnose
from stackfix.inspect.places import Root
from stackfix.plan.records import RANKS, Plan
from tests.diagnose_world import World
from tests.plan_cases import CASES, LOCKED, MORE, OUTSIDE, REPORTS, Case
from tests.plan_world import Shelf, advice, apply_plainly, cured, kinds, plan_of, shelf_for, whole

OUTCOMES: dict[str, str] = {}           # name of a case -> what the plan does; of those that ran


def planned(case: Case, folder: Path) -> tuple[World, Plan, Shelf]:
    """The machine with its plan, which is noted."""
    world = whole(case.make(folder / "machine"))
    shelf = case.shelf(shelf_for(world))
    plan = plan_of(world, shelf, view=case.view(world))
    does = f"cures {', '.join(cured(plan))} by {' and '.join(kinds(plan))}" if kinds(plan) else "advises"
    OUTCOMES[case.name] = does
    print(row(case))                    # noqa: T201 - for whoever reads the output
    return world, plan, shelf


def row(case: Case) -> str:
    """A line of the table."""
    return f"{case.source:43} {case.name:47} right: {case.right:17} {OUTCOMES.get(case.name, 'not run')}"


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case.name)
def test_the_plan_cures_it_at_no_higher_rank(case: Case, tmp_path: Path) -> None:
    world, plan, shelf = planned(case, tmp_path)
    assert set(cured(plan)) == set(case.codes), [(each.code, each.reason) for each in plan.left]
    assert [each for each in plan.left if each.code not in {"SF601", "SF602", "SF603"}] == []
    assert max(map(RANKS.index, kinds(plan))) <= RANKS.index(case.right)
    # what was simulated is what comes of it
    apply_plainly(world, plan, shelf)
    view = with_hooks(case.view(world), Root(str(world.folder)))
    assert [(each.code, each.summary) for each in diagnose(view).findings
            if each.severity == "error" or (each.code in case.codes and each.severity != "note")] == []


@pytest.mark.parametrize("case", OUTSIDE, ids=lambda case: case.name)
def test_what_lies_outside_is_advised(case: Case, tmp_path: Path) -> None:
    _, plan, _ = planned(case, tmp_path)
    assert kinds(plan) == ()
    assert {each.code for each in plan.left} == set(case.codes)
    assert all(each.reason for each in plan.left)
    for part in case.says:
        assert part in advice(plan)
    assert all(not each.steps and not each.changes for each in plan.actions)


def table() -> Iterator[str]:
    """Every report, with what came of it in this run."""
    for source in REPORTS:
        rows = [row(case) for case in (*CASES, *MORE, *OUTSIDE) if case.source == source]
        yield from rows or [f"{source:43} a question of locking, not of repair"]


def test_no_report_is_left_out() -> None:
    print(*table(), sep="\n")           # noqa: T201
    assert {case.source for case in (*CASES, *MORE, *OUTSIDE)} == set(REPORTS) - set(LOCKED)
    assert len(set(REPORTS)) == len(REPORTS) == 35
