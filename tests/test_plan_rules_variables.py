"""Variables that a plan changes: Python's own, those of notebooks, elements of a path that a script sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.plan.records import WriteFile
from tests.case_worlds import install_nvidia, install_torch, linked
from tests.diagnose_world import World, lib
from tests.plan_world import cured, kinds, plan_of, whole

KERNEL = "share/jupyter/kernels/python3/kernel.json"


def two_copies(folder: Path, site: str) -> World:
    """A conda environment's NCCL, and another one in a folder that Python searches first."""
    world = install_nvidia(World(folder, conda=True), "nvidia-nccl-cu12", "2.20.5")
    return install_nvidia(world, "nvidia-nccl-cu12", "2.18.1", site=site)


def test_the_users_own_site_folder_is_switched_off(tmp_path: Path) -> None:
    world = two_copies(tmp_path / "machine", "/home/me/.local/lib/python3.11/site-packages").environ(HOME="/home/me")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.left) == (("write-activation",), ["SF704"], ())
    assert plan.variables == (("PYTHONNOUSERSITE", "1"),)


def test_a_folder_is_taken_out_of_pythonpath(tmp_path: Path) -> None:
    world = two_copies(tmp_path / "machine", "/home/me/libs").environ(PYTHONPATH="/home/me/libs:/opt/more")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.left) == (("write-activation",), ["SF704"], ())
    assert plan.variables == (("PYTHONPATH", "/opt/more"),)


@pytest.fixture
def notebook(tmp_path: Path) -> World:
    """A library that only the variable leads to, and a kernel that does not get it."""
    world = World(tmp_path / "machine").library("/opt/x/libneeded.so.1", lib())
    world.wheel("ext", "1", linked({"ext/_C.cpython-311-x86_64-linux-gnu.so": lib(needs=("libneeded.so.1",))}))
    world.write(f"{world.prefix}/{KERNEL}", json.dumps({"argv": ["python", "-m", "ipykernel_launcher"],
                                                        "env": {"OTHER": "1"}}))
    return whole(world).environ(LD_LIBRARY_PATH="/opt/x")


def test_a_kernel_is_changed_on_request_only(notebook: World) -> None:
    plan = plan_of(notebook)
    assert (kinds(plan), [each.code for each in plan.left]) == ((), ["SF1104"])
    plan = plan_of(notebook, kernels=True)
    assert (kinds(plan), cured(plan), plan.left) == (("write-activation",) * 2, ["SF1104"] * 2, ())
    [step] = plan.actions[1].steps
    assert isinstance(step, WriteFile)
    assert (step.path, json.loads(step.text)["env"]) == (KERNEL, {"LD_LIBRARY_PATH": "/opt/x", "OTHER": "1"})
    # what was simulated is what comes of it
    notebook.write(f"{notebook.prefix}/{step.path}", step.text)
    assert [each.code for each in plan_of(notebook).left] == []


def test_kernels_get_what_activation_sets(tmp_path: Path) -> None:
    """Where activation is chosen, a notebook would not have it."""
    from tests.test_cases_k1 import TOOLKIT, beside_toolkit

    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=f"{TOOLKIT}/lib64")
    world.write(f"{world.prefix}/{KERNEL}", json.dumps({"argv": [f"{world.prefix}/bin/python"]}))
    plan = plan_of(world, method="activate", kernels=True)
    texts = [json.loads(step.text) for each in plan.actions for step in each.steps
             if isinstance(step, WriteFile) and step.path == KERNEL]
    assert [each["env"] for each in texts] == [dict(plan.variables)]
    action = next(each for each in plan.actions if KERNEL in {change.path for change in each.changes})
    assert action.cures == ("SF101",)
    assert f"LD_LIBRARY_PATH={dict(plan.variables)['LD_LIBRARY_PATH']}" in action.summary
    # once more in a shell that is not activated: nothing is to be written
    for step in (step for each in plan.actions for step in each.steps if isinstance(step, WriteFile)):
        world.write(f"{world.prefix}/{step.path}", step.text)
    again = plan_of(world, method="activate", kernels=True)
    assert (kinds(again), [each.by_scripts for each in again.left]) == ((), [True])
    # activation as it stands, and a kernel that came later
    world.write(f"{world.prefix}/{KERNEL}", json.dumps({"argv": [f"{world.prefix}/bin/python"]}))
    later = plan_of(world, method="activate", kernels=True)
    assert ([change.path for each in later.actions for change in each.changes], later.left) == ([KERNEL], ())
    assert cured(later) == ["SF101"]


def test_why_no_kernel_is_changed_is_said(tmp_path: Path) -> None:
    from tests.test_cases_k1 import TOOLKIT, beside_toolkit

    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=f"{TOOLKIT}/lib64")
    world.write(f"{world.prefix}/{KERNEL}", json.dumps({"argv": [f"{world.prefix}/bin/python"]}))
    plan = plan_of(world, kernels=True)
    assert (kinds(plan), plan.variables) == (("preload-hook",), ())     # the hook needs none
    assert plan.actions[0].notes == ("no kernel.json is changed: the hook works in notebooks, too",)
    assert plan_of(world).actions[0].notes == ()
    world.remove(f"{world.prefix}/{KERNEL}")
    [note] = plan_of(world, method="activate", kernels=True).actions[0].notes
    assert "no kernel.json of this environment is known" in note


def test_a_stub_of_the_driver_is_taken_off_the_path(tmp_path: Path) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1").toolkit("/usr/local/cuda-12.1", "12.1.1")
    stubs = "/usr/local/cuda-12.1/lib64/stubs"
    world.library(f"{stubs}/libcuda.so.1", lib(offers=("cuInit",))).environ(LD_LIBRARY_PATH=f"{stubs}:/opt/keep")
    plan = plan_of(whole(world))
    assert (kinds(plan), plan.left) == (("write-activation",), ())
    assert "SF803" in cured(plan)
    assert plan.variables == (("LD_LIBRARY_PATH", "/opt/keep"),)
