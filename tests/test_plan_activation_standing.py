"""Activation as an earlier repair has left it: what it cures is not planned again; new scripts do all that it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.plan.records import Plan, WriteFile
from tests.case_worlds import install_nvidia, linked
from tests.diagnose_world import World, lib
from tests.plan_world import advice, cured, kinds, plan_of, whole
from tests.test_cases_k1 import OWN, TOOLKIT, beside_toolkit

HOSTILE = f"{TOOLKIT}/lib64"
PATH = "LD_LIBRARY_PATH"
OTHER, OTHERS = "libother.so.1", "/opt/other"


@pytest.fixture
def shadowed(tmp_path: Path) -> World:
    """torch 2.5.1 with the toolkit 12.2 on the loader's path."""
    return whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)


def write(world: World, plan: Plan) -> None:
    """The plan's files; no shell sources them."""
    for step in (step for action in plan.actions for step in action.steps):
        assert isinstance(step, WriteFile)
        world.write(f"{world.prefix}/{step.path}", step.text)


def is_left_to_activation(plan: Plan) -> bool:
    return kinds(plan) == () and bool(plan.left) and all(each.by_scripts for each in plan.left)


def with_another(world: World) -> World:
    """A second package whose library another folder of the path shadows."""
    world.wheel("other", "2", {f"other/lib/{OTHER}": lib(offers=(f"old@{OTHER}", f"new@{OTHER}"))})
    world.wheel("ext", "1", linked({"ext/_C.cpython-311-x86_64-linux-gnu.so": lib(
        needs=(OTHER,), wants=(f"new@{OTHER}",), runpath="$ORIGIN/../other/lib")}))
    return world.library(f"{OTHERS}/{OTHER}", lib(offers=(f"old@{OTHER}",)))


def test_what_is_written_is_not_planned_again(shadowed: World) -> None:
    write(shadowed, plan_of(shadowed, method="activate"))
    again = plan_of(shadowed, method="activate")
    assert is_left_to_activation(again), again
    [said] = [each for each in again.actions if each.kind == "advice"]
    assert (said.cures, said.command) == (("SF101",), f"source {shadowed.prefix}/bin/activate")
    assert "activated anew" in again.left[0].reason
    assert is_left_to_activation(plan_of(shadowed, method="symlink"))


def test_all_means_find_the_hook_that_needs_no_activation(shadowed: World) -> None:
    write(shadowed, plan_of(shadowed, method="activate"))
    for method in ("auto", "preload"):
        assert kinds(plan_of(shadowed, method=method)) == ("preload-hook",)


def test_where_activation_is_the_only_means_all_means_say_the_same(tmp_path: Path) -> None:
    world = install_nvidia(World(tmp_path / "machine"), "nvidia-nccl-cu12", "2.20.5")
    install_nvidia(world, "nvidia-nccl-cu12", "2.18.1", site="/home/me/libs")
    whole(world).environ(PYTHONPATH="/home/me/libs:/opt/more")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan)) == (("write-activation",), ["SF704"])
    write(world, plan)
    assert is_left_to_activation(plan_of(world))


def test_in_an_activated_shell_nothing_is_left(shadowed: World) -> None:
    plan = plan_of(shadowed, method="activate")
    write(shadowed, plan)
    assert plan_of(shadowed.environ(**{PATH: str(dict(plan.variables)[PATH])}), method="activate").left == ()


def test_new_scripts_do_what_the_old_ones_did(shadowed: World) -> None:
    """The block is one: a second repair that named its own folder alone would bring the first fault back."""
    first = plan_of(shadowed, method="activate")
    write(shadowed, first)
    with_another(shadowed).environ(**{PATH: f"{dict(first.variables)[PATH]}:{OTHERS}"})     # activated
    plan = plan_of(shadowed, method="activate")
    assert cured(plan) == ["SF101"]
    own, other = (shadowed.inside(each).rpartition("/")[0] for each in (OWN, f"other/lib/{OTHER}"))
    assert plan.variables == ((PATH, f"{own}:{other}:{HOSTILE}:{OTHERS}"),)
    write(shadowed, plan)
    shadowed.environ(**{PATH: f"{HOSTILE}:{OTHERS}"})       # a shell that sources neither
    assert [each.code for each in diagnose(shadowed.view()).findings if each.severity == "error"] == ["SF101"]
    assert is_left_to_activation(plan_of(shadowed, method="activate"))


def test_another_fault_is_planned_while_the_first_waits_for_activation(shadowed: World) -> None:
    write(shadowed, plan_of(shadowed, method="activate"))
    with_another(shadowed).environ(**{PATH: f"{HOSTILE}:{OTHERS}"})
    plan = plan_of(shadowed, method="activate")
    own, other = (shadowed.inside(each).rpartition("/")[0] for each in (OWN, f"other/lib/{OTHER}"))
    assert (plan.left, plan.variables) == ((), ((PATH, f"{own}:{other}:{HOSTILE}:{OTHERS}"),))


def test_scripts_that_do_not_do_it_any_more_are_no_cure(shadowed: World) -> None:
    """The folder that they name is gone from the environment's library."""
    write(shadowed, plan_of(shadowed, method="activate"))
    text = shadowed.host(f"{shadowed.prefix}/bin/activate").read_text()
    shadowed.write(f"{shadowed.prefix}/bin/activate", text.replace("nvidia/nvjitlink/lib", "nvidia/nothing/lib"))
    assert kinds(plan_of(shadowed, method="activate")) == ("write-activation",)


def test_a_venv_that_was_moved_is_no_place_for_activation(tmp_path: Path) -> None:
    """Its scripts activate another folder; what was simulated would never come about."""
    world = beside_toolkit(tmp_path / "machine", "2.5.1").environ(LD_LIBRARY_PATH=HOSTILE)
    whole(world)
    for name in ("activate", "activate.fish", "activate.csh"):
        path = f"{world.prefix}/bin/{name}"
        world.write(path, world.host(path).read_text().replace(world.prefix, "/home/old place"))
    plan = plan_of(world, method="activate")
    assert kinds(plan) == ()
    assert "bin/activate: it activates /home/old place" in plan.left[0].reason
    assert plan.left[0].by_auto == ("preload-hook",)
    assert advice(plan)


def test_a_check_says_of_the_scripts_what_was_simulated_of_them(tmp_path: Path) -> None:
    """Another package's script puts an older cuDNN first; ours comes after it, in a shell that sources both."""
    world = World(tmp_path / "machine", conda=True)
    world.conda("cudnn", "8.1.0.77", {"lib/libcudnn.so.8": lib()})
    world.wheel("nvidia-cudnn-cu11", "8.6.0.163", {
        "nvidia/cudnn/lib/libcudnn.so.8": lib(), "nvidia/cudnn/__init__.py": ""})
    world.wheel("tensorflow", "2.12.0", {"tensorflow/tf.so": lib(needs=("libcudnn.so.8",))},
                requires=("nvidia-cudnn-cu11>=8.6",))
    world.write(f"{world.prefix}/etc/conda/activate.d/env_vars.sh",
                "export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH\n")
    world.write(f"{world.prefix}/etc/conda/deactivate.d/env_vars.sh", "unset LD_LIBRARY_PATH\n")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan)) == (("write-activation",), ["SF1101"])
    write(world, plan)
    for variables in ({}, {PATH: str(dict(plan.variables)[PATH])}):     # before this shell has sourced them, and after
        view = world.environ(**variables).view()
        assert [each.code for each in diagnose(view).findings if each.severity != "note"] == []
        assert not any("activate.d" in each.subject for each in diagnose(view).undecided)
        again = plan_of(world)
        assert (kinds(again), {each.code for each in again.left} & {"SF1101"}) == ((), set())
