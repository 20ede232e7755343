"""What a plan leaves, and why: each reason under its own finding, and no claim that was not simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.errors import StackfixError, Unreachable
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.install_choice import Offers, Wanted, unreached_by
from stackfix.plan.records import InstallWheel, Left, Plan, Unreached
from stackfix.report.repair import why_none
from stackfix.sources.errors import IndexUnreachable, NoSuchProject
from tests.case_worlds import install_torch
from tests.diagnose_world import World
from tests.plan_world import Shelf, apply_plainly, cured, kinds, plan_of, shelf_for, whole
from tests.test_cases_k1 import beside_toolkit
from tests.test_plan_planner import HOSTILE

NCCL, CUPTI = "nvidia-nccl-cu12", "nvidia-cuda-cupti-cu12"
GONE = {NCCL: "nvidia/nccl/lib/libnccl.so.2", CUPTI: "nvidia/cuda_cupti/lib/libcupti.so.12"}


class Failing(Shelf):
    """A shelf that answers some projects with an error."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(world, folder)
        self.errors: dict[str, StackfixError] = {}

    def fails(self, project: str, error: StackfixError) -> Failing:
        self.errors[project] = error
        return self

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        error = next((self.errors[each.project] for each in wanted if each.project in self.errors), None)
        return super().offers(wanted) if error is None else Offers(reason=error.what(), unreached=unreached_by(error))


def shelf_of(world: World) -> Failing:
    return Failing(world, shelf_for(world).folder)


def without_files(folder: Path) -> World:
    """Files of two wheels are gone; torch needs both."""
    world = install_torch(World(folder / "machine"), "2.3.1")
    for path in GONE.values():
        world.remove(f"{world.site}/{path}")
    return world


def reasons(plan: Plan) -> dict[str, Left]:
    """By the library that a finding is about."""
    return {name: left for name in ("libnccl", "libcupti") for left in plan.left if f"{name}." in left.summary}


def test_each_reason_is_told_of_its_own_finding(tmp_path: Path) -> None:
    world = without_files(tmp_path)
    far = IndexUnreachable("https://index.example/simple/", "nobody answers", hint="look at the proxy")
    unknown = NoSuchProject(CUPTI, ("https://other.example",))
    plan = plan_of(world, shelf_of(world).fails(NCCL, far).fails(CUPTI, unknown))
    left = reasons(plan)
    assert {left["libnccl"].code, left["libcupti"].code} == {"SF401"}
    assert "nobody answers" in left["libnccl"].reason
    assert "other.example" not in left["libnccl"].reason
    assert "other.example" in left["libcupti"].reason
    assert "nobody answers" not in left["libcupti"].reason
    assert left["libnccl"].unreached == (
        Unreached(what=far.what(), hint="look at the proxy", code="index-unreachable"),)
    assert left["libcupti"].unreached == ()         # an index that was asked has answered


def test_what_can_be_had_is_planned_and_the_rest_is_out_of_reach(tmp_path: Path) -> None:
    world = without_files(tmp_path)
    shelf = shelf_of(world).fails(CUPTI, Unreachable("the cache", "has no room"))
    shelf.put(NCCL, "2.20.5")
    plan = plan_of(world, shelf)
    assert (kinds(plan), cured(plan)) == (("install",), ["SF401"])
    assert [each.unreached != () for each in plan.left] == [True]


def test_a_wheel_that_cannot_be_brought_is_out_of_reach_and_not_unfit(tmp_path: Path) -> None:
    class Full(Shelf):
        def fetch(self, wheel: InstallWheel) -> Path:
            raise Unreachable("the cache", f"has no room for {wheel.file}", "make room")

    world = install_torch(World(tmp_path / "machine"), "2.3.1", nccl="2.18.1")
    plan = plan_of(world, Full(world, shelf_for(world).folder).put(NCCL, "2.20.5"))
    [left] = [each for each in plan.left if each.code == "SF201"]
    [far] = left.unreached
    assert far.hint == "make room"
    assert "has no room for" in left.reason


def test_what_another_method_would_do_is_simulated(tmp_path: Path) -> None:
    world = beside_toolkit(tmp_path / "machine", "2.5.1").environ(LD_LIBRARY_PATH=HOSTILE)
    plan = plan_of(whole(world), method="reinstall")
    assert [each.by_auto for each in plan.left] == [("preload-hook",)]
    assert plan_of(world).left == ()
    bad = install_torch(World(tmp_path / "other"), "2.3.1", nccl="2.18.1")
    plan = plan_of(bad, shelf_for(bad).put(NCCL, "2.20.5"), method="preload")
    assert [each.by_auto for each in plan.left if each.code == "SF201"] == [()]     # nobody was asked for the wheel


def test_an_action_that_would_write_what_is_there_is_none(tmp_path: Path) -> None:
    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1").environ(LD_LIBRARY_PATH=HOSTILE))
    plan = plan_of(world)
    view = world.view(load_libraries())
    apply_plainly(world, plan, shelf_for(world))
    stale = plan_of(world, view=view)       # looked at before another repair wrote the hook, planned after it
    assert all(each.steps or each.kind == "advice" for each in stale.actions)
    assert not any("Load libnvJitLink" in each.summary for each in stale.actions if each.kind == "advice")


# --- the headline ---


LEFT = Left(code="SF101", summary="it is wrong", reason="…")
FAR = replace(LEFT, unreached=(Unreached(what="x", hint=None),))
PLAN = Plan(prefix="/venv", actions=(), left=(LEFT,))


@pytest.mark.parametrize(("plan", "said"), [
    (PLAN, "no change of it would cure any"),
    (replace(PLAN, left=(FAR,)), "what a cure of it needs is out of reach"),
    (replace(PLAN, left=(FAR, FAR)), "what a cure of all of them needs is out of reach"),
    (replace(PLAN, left=(FAR, LEFT)), "what a cure of 1 of them needs is out of reach"),
    (replace(PLAN, method="symlink"), "no link would cure any"),
    (replace(PLAN, method="reinstall", left=(replace(LEFT, by_auto=("preload-hook",)), LEFT)),
     "no installation would cure any; `--method auto` would cure 1 of them"),
    (replace(PLAN, left=(replace(LEFT, installer="conda"),)),
     "only the tool that installed what is wrong can change it"),
    (replace(PLAN, left=(replace(LEFT, is_refused=True),)), "no change that may be made would cure any"),
    (replace(PLAN, is_whole=False), "no cure was found among all that were simulated"),
], ids=lambda each: each if isinstance(each, str) else "")
def test_a_headline_says_no_more_than_what_is_known(plan: Plan, said: str) -> None:
    assert why_none(plan) == said
