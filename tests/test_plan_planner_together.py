"""Plans of several means for several findings: what cures one may cure others; smaller means are tried first."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.plan.records import MakeLink
from tests.diagnose_world import World
from tests.plan_world import Shelf, apply_plainly, cured, kinds, plan_of, shelf_for, whole
from tests.test_cases_k1 import CUSPARSE, OWN, SONAME, beside_toolkit
from tests.test_plan_planner import HOSTILE

NVJITLINK = "nvidia-nvjitlink-cu12"
MOVED = f"{OWN}.4.127"


@pytest.fixture
def without_its_name(tmp_path: Path) -> World:
    """torch 2.5.1 whose nvJitLink lies under another name; one of the toolkit stands in for it (SF403, SF801)."""
    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)
    own = world.host(world.inside(OWN))
    own.rename(own.with_name(Path(MOVED).name))
    return world


def test_a_link_with_the_hook_comes_before_a_reinstallation(without_its_name: World) -> None:
    """The library that stands in has no means of its own: what cures the link that is gone has to come first."""
    plan = plan_of(without_its_name, shelf_with(without_its_name))
    assert (kinds(plan), plan.left, plan.variables) == (("preload-hook", "relink"), (), ())
    assert cured(plan) == ["SF403", "SF801"]
    [link] = [step for action in plan.actions for step in action.steps if isinstance(step, MakeLink)]
    assert (f"{without_its_name.prefix}/{link.path}", link.target) == (
        without_its_name.inside(OWN), f"{SONAME}.4.127")
    shelf = shelf_with(without_its_name)
    apply_plainly(without_its_name, plan, shelf)
    assert kinds(plan_of(without_its_name, shelf)) == ()


@pytest.mark.parametrize("method", ["symlink", "activate"])
def test_a_link_with_activation_where_either_is_asked_for(method: str, without_its_name: World) -> None:
    """With the link alone the path still wins; that is no new fault, for what it hurts was hurt before."""
    plan = plan_of(without_its_name, shelf_with(without_its_name), method=method)
    assert (kinds(plan), plan.left) == (("relink", "write-activation"), ())
    assert [each.cures for each in plan.actions] == [("SF403", "SF801")] * 2    # neither does it alone
    folder = without_its_name.inside(OWN).rpartition("/")[0]
    assert plan.variables == (("LD_LIBRARY_PATH", f"{folder}:{HOSTILE}"),)
    # what this machine's own loader says of it: as it is, with the link alone, then with the path, too
    world = without_its_name.opens_nothing().opens(CUSPARSE)
    assert "__nvJitLinkComplete_12_4" in world.really()
    world.link(world.inside(OWN), f"{SONAME}.4.127")
    assert "__nvJitLinkComplete_12_4" in world.really()
    assert world.environ(LD_LIBRARY_PATH=str(plan.variables[0][1])).really() == ""


def test_what_auto_would_do_is_told_of_each_finding(without_its_name: World) -> None:
    plan = plan_of(without_its_name, method="preload")
    assert {each.code: each.by_auto for each in plan.left} == dict.fromkeys(
        ("SF403", "SF801"), ("preload-hook", "relink"))


def test_without_the_file_only_an_installation_does(without_its_name: World) -> None:
    without_its_name.remove(MOVED)
    plan = plan_of(without_its_name, shelf_with(without_its_name))
    assert kinds(plan) == ("preload-hook", "install")


def shelf_with(world: World) -> Shelf:
    """An index that has the wheel that is there."""
    return shelf_for(world).put(NVJITLINK, "12.4.127")
