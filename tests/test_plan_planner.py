"""What a plan is: simulated as a whole, the smallest of its kind, the same whatever the order of the findings."""

from __future__ import annotations

import hashlib
import posixpath
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.errors import BadInput
from stackfix.inspect.plain import to_json
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.records import MakeLink, Node, SetAside, WriteFile
from tests.case_worlds import install_nvidia, install_torch, linked, nvjitlink
from tests.diagnose_world import World, lib
from tests.plan_world import advice, cured, kinds, plan_of, shelf_for, whole
from tests.test_cases_k1 import CUSPARSE, OWN, SONAME, TOOLKIT, beside_toolkit

HOSTILE = f"{TOOLKIT}/lib64"


@pytest.fixture
def shadowed(tmp_path: Path) -> World:
    """torch 2.5.1 with the toolkit 12.2 on the loader's path."""
    return whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that is on disk."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.readlink() if path.is_symlink() else \
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return found


# --- the means, one after the other ---


def test_what_an_installation_brings_is_then_loaded_first(tmp_path: Path) -> None:
    """Neither cures alone: no good copy is there before the installation, and another one wins after it."""
    world = whole(install_torch(World(tmp_path / "machine"), "2.3.1", nvjitlink="12.0.140"))
    world.library(f"/opt/old/{SONAME}", nvjitlink("12.0.140")).environ(LD_LIBRARY_PATH="/opt/old")
    plan = plan_of(world, shelf_for(world).put("nvidia-nvjitlink-cu12", "12.1.105"))
    assert (kinds(plan), plan.left) == (("preload-hook", "install"), ())
    assert sorted(cured(plan)) == ["SF101", "SF201"]


def test_the_hook_is_the_smallest_cure_of_a_bad_path(shadowed: World) -> None:
    plan = plan_of(shadowed)
    assert (kinds(plan), cured(plan), plan.left) == (("preload-hook",), ["SF101"], ())
    texts = {Path(step.path).name: step.text for step in plan.actions[0].steps if isinstance(step, WriteFile)}
    assert sum("'nvidia/nvjitlink/lib/libnvJitLink.so.12'" in text for text in texts.values()) == 1
    assert plan.variables == ()         # it holds where nothing is activated


def test_activation_when_it_is_chosen(shadowed: World) -> None:
    plan = plan_of(shadowed, method="activate")
    assert (kinds(plan), cured(plan), plan.left) == (("write-activation",), ["SF101"], ())
    own = shadowed.inside(OWN).rpartition("/")[0]
    assert plan.variables == (("LD_LIBRARY_PATH", f"{own}:{HOSTILE}"),)
    assert "bin/activate" in {change.path for change in plan.actions[0].changes}


def test_a_link_beside_cusparse_alone_does_not_beat_a_bad_path(shadowed: World) -> None:
    """People are told so. The path is searched before the RUNPATH, so only the two together are a plan."""
    plan = plan_of(shadowed, method="symlink")
    assert kinds(plan) == ("relink", "write-activation")
    assert (cured(plan), plan.left) == (["SF101", "SF101"], ())
    link = next(step for step in plan.actions[0].steps if isinstance(step, MakeLink))
    folder = CUSPARSE.rpartition("/")[0]
    assert link.path.endswith(f"{folder}/{SONAME}")
    assert link.target == f"../../nvjitlink/lib/{SONAME}"
    assert plan.variables[0][1] == f"{shadowed.inside(folder)}:{HOSTILE}"
    # what this machine's own loader says of it: with the link alone, then with the path too
    shadowed.link(f"{shadowed.prefix}/{link.path}", link.target)
    shadowed.opens_nothing().opens(CUSPARSE)
    assert "__nvJitLinkComplete_12_4" in shadowed.really()
    assert shadowed.environ(LD_LIBRARY_PATH=str(plan.variables[0][1])).really() == ""


def test_a_link_where_the_path_cannot_be_set_is_no_plan(tmp_path: Path) -> None:
    """Nobody activates a Python that is neither a venv nor conda's."""
    world = beside_toolkit(tmp_path, "2.5.1").environ(LD_LIBRARY_PATH=HOSTILE)
    for name in ("pyvenv.cfg", "bin/python"):
        world.remove(f"{world.prefix}/{name}")
    plan = plan_of(world, method="symlink")
    assert kinds(plan) == ()
    assert "relink: does not cure it" in plan.left[0].reason
    assert "neither a venv nor a conda prefix" in plan.left[0].reason


def test_what_is_preloaded_is_taken_out_at_activation(tmp_path: Path) -> None:
    """It is mapped before Python begins: a hook comes too late."""
    world = whole(beside_toolkit(tmp_path, "2.5.1")).environ(LD_PRELOAD=f"{HOSTILE}/{SONAME}")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.variables) == (("write-activation",), ["SF101"], (("LD_PRELOAD", None),))
    assert plan_of(world, method="preload").actions[0].kind == "advice"


# --- a file of nobody's in the prefix ---


def by_hand(folder: Path, *, path: str, is_link: bool = False) -> World:
    """A package without a table's row, whose RPATH or RUNPATH looks beside it first, and what somebody put there."""
    world = World(folder)
    both = lib(offers=("old@libneeded.so.1", "new@libneeded.so.1"))
    world.wheel("libneeded", "2", {"libneeded/lib/libneeded.so.1": both})
    world.wheel("ext", "1", linked({"ext/_C.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libneeded.so.1",), wants=("new@libneeded.so.1",), **{path: "$ORIGIN:$ORIGIN/../libneeded/lib"})}))
    bad = f"{world.site}/ext/libneeded.so.1"
    world.library("/opt/old/libneeded.so.1" if is_link else bad, lib(offers=("old@libneeded.so.1",)))
    if is_link:
        world.link(bad, posixpath.relpath("/opt/old/libneeded.so.1", f"{world.site}/ext"))
    return world.opens("ext/_C.cpython-311-x86_64-linux-gnu.so", project="ext", what="import ext")


@pytest.mark.parametrize("linked", [False, True])
def test_what_nobody_has_and_no_smaller_means_beats_is_set_aside(linked: bool, tmp_path: Path) -> None:
    """No hook can be heard in a folder without code, and an RPATH goes before any variable."""
    world = by_hand(tmp_path / "machine", path="rpath", is_link=linked)
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.left) == (("remove-shadow",), ["SF101"], ()), plan
    [step] = plan.actions[0].steps
    assert step == SetAside(path=f"{world.site.removeprefix(f'{world.prefix}/')}/ext/libneeded.so.1")
    assert "new" in world.really()
    world.remove(f"{world.prefix}/{step.path}")
    assert (world.really(), plan_of(world).actions) == ("", ())


def test_a_link_by_hand_that_leads_nowhere_is_led_to_the_library(tmp_path: Path) -> None:
    world = by_hand(tmp_path / "machine", path="rpath")
    world.remove("ext/libneeded.so.1")
    world.link(f"{world.site}/ext/libneeded.so.1", "libneeded.so.1")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.left) == (("relink",), ["SF801"], ()), plan
    [step] = plan.actions[0].steps
    assert isinstance(step, MakeLink)
    assert step.target == "../libneeded/lib/libneeded.so.1"


def test_a_smaller_means_is_taken_where_it_does(tmp_path: Path) -> None:
    world = by_hand(tmp_path / "machine", path="runpath")
    assert kinds(plan_of(whole(world))) == ("preload-hook",)


def test_only_the_mismatched_wheel_is_installed(tmp_path: Path) -> None:
    world = install_nvidia(World(tmp_path / "machine"), "nvidia-cusparse-cu12", "12.5.10.65")
    world.wheel("cuml-cu12", "26.4.0", linked({"cuml/base.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",),
        runpath="$ORIGIN/../nvidia/cusparse/lib")}), requires=("nvidia-cusparse-cu12",))
    install_nvidia(world, "nvidia-nvjitlink-cu12", "12.8.93")
    shelf = shelf_for(world)
    for version in ("12.6.85", "12.8.93", "12.9.41", "12.9.86"):
        shelf.put("nvidia-nvjitlink-cu12", version)
    plan = plan_of(world, shelf)
    assert (kinds(plan), cured(plan), plan.left) == (("install",), ["SF201"], ())
    named = next(each for found in diagnose(world.view(load_libraries())).findings for each in found.installs).version
    assert named in {"12.9.41", "12.9.86"}
    [wheel] = plan.actions[0].steps
    assert (wheel, plan.actions[0].command) == (
        shelf.wheel("nvidia-nvjitlink-cu12", named),
        f"{world.prefix}/bin/python -m pip install --no-deps 'nvidia-nvjitlink-cu12=={named}'")
    assert [(Path(each.path).name, each.before.kind, each.after.kind) for each in plan.actions[0].changes] == [
        ("nvjitlink", "folder", "folder"), ("nvidia_nvjitlink_cu12-12.8.93.dist-info", "folder", "absent"),
        (f"nvidia_nvjitlink_cu12-{named}.dist-info", "absent", "folder")]


def test_without_an_index_the_finding_is_left_with_the_reason(tmp_path: Path) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1", nccl="2.18.1")
    plan = plan_of(world)
    assert kinds(plan) == ()
    [left] = [each for each in plan.left if each.code == "SF201"]
    assert "the index has no nvidia-nccl-cu12==2.20.5" in left.reason
    assert "nvidia-nccl-cu12==2.20.5" in advice(plan)


def test_a_wheel_that_does_not_cure_is_no_plan(tmp_path: Path) -> None:
    """The index's file is not what its version promises: what is in it decides."""
    world = install_torch(World(tmp_path / "machine"), "2.3.1", nccl="2.18.1")
    old = linked({"nvidia/nccl/lib/libnccl.so.2": lib(offers=("ncclSend",))})
    plan = plan_of(world, shelf_for(world).put("nvidia-nccl-cu12", "2.20.5", old))
    assert kinds(plan) == ()
    assert "install: " in next(each for each in plan.left if each.code == "SF201").reason


def test_an_installation_may_leave_a_pin_unmet_and_says_so(tmp_path: Path) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.8.0", cusparse="12.5.10.65")
    shelf = shelf_for(world).put("nvidia-nvjitlink-cu12", "12.9.41").put("nvidia-nvjitlink-cu12", "12.9.86")
    plan = plan_of(world, shelf)
    assert (kinds(plan), cured(plan)) == (("install",), ["SF201"])
    assert any("torch 2.8.0 requires nvidia-nvjitlink-cu12==12.8.93" in each.summary for each in plan.left)


# --- several findings, and none ---


def test_findings_of_different_roots_are_cured_together(tmp_path: Path) -> None:
    """A bad path, and a link that is gone: two means, one plan."""
    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)
    world.wheel("other", "1.0", linked({"other/lib/libother.so.3.1": lib(soname="libother.so.3"),
                                        "other/lib/libother.so.3": lib(),
                                        "other/_ext.cpython-311-x86_64-linux-gnu.so": lib(
                                            needs=("libother.so.3",), runpath="$ORIGIN/lib")}))
    whole(world).remove("other/lib/libother.so.3")
    plan = plan_of(world)
    assert (kinds(plan), cured(plan), plan.left) == (("preload-hook", "relink"), ["SF101", "SF801"], ())
    assert [each.id for each in plan.actions] == ["preload-hook-1", "relink-1"]
    assert [each.cures for each in plan.actions] == [("SF101",), ("SF801",)]
    [change] = plan.actions[1].changes
    assert (change.before, change.after) == (Node(kind="absent"), Node(kind="link", target="libother.so.3.1"))


def test_the_second_copy_behind_the_first_is_seen_too(tmp_path: Path) -> None:
    """Both elements of the path lead to older copies: with one taken away the other would win."""
    world = whole(beside_toolkit(tmp_path / "machine", "2.5.1"))
    world.library(f"/opt/other/lib/{SONAME}", nvjitlink("12.1.105"))
    world.environ(LD_LIBRARY_PATH=f"{HOSTILE}:/opt/other/lib")
    for method in ("auto", "activate"):
        plan = plan_of(world, method=method)
        assert (cured(plan), plan.left) == (["SF101"], ())


def test_a_healthy_environment_needs_no_plan(tmp_path: Path) -> None:
    plan = plan_of(whole(install_torch(World(tmp_path / "machine"), "2.5.1")))
    assert (plan.actions, plan.left, plan.variables) == ((), (), ())


def test_a_hook_that_is_there_is_seen(shadowed: World) -> None:
    """The next plan has nothing to do; a second library goes into the same hook."""
    for step in plan_of(shadowed).actions[0].steps:
        assert isinstance(step, WriteFile)
        shadowed.write(f"{shadowed.prefix}/{step.path}", step.text)
    again = plan_of(shadowed)
    assert again.actions == ()


# --- laws ---


@pytest.mark.parametrize("method", ["auto", "activate", "symlink"])
def test_a_plan_is_the_same_bytes_however_the_findings_came(method: str, shadowed: World) -> None:
    install_nvidia(shadowed, "nvidia-nccl-cu12", "2.18.1")
    plans = [to_json(plan_of(shadowed, method=method, turned=turned)) for turned in (False, True, False)]
    assert plans[0] == plans[1] == plans[2]


def test_nothing_on_disk_changes(shadowed: World) -> None:
    install_nvidia(shadowed, "nvidia-nccl-cu12", "2.18.1")
    shelf = shelf_for(shadowed).put("nvidia-nccl-cu12", "2.21.5")
    shelf.wheel("nvidia-nccl-cu12", "2.21.5")
    before = tree(shadowed.folder)
    for method in ("auto", "activate", "preload", "symlink", "reinstall"):
        plan_of(shadowed, shelf, method=method)
    assert tree(shadowed.folder) == before


def test_a_place_that_leads_out_of_the_prefix_is_no_place_for_a_link(tmp_path: Path) -> None:
    """A folder of the environment is a link to one elsewhere: a link made there would change that."""
    world = World(tmp_path / "machine")
    world.library("/opt/shared/lib/libother.so.3.1", lib(soname="libother.so.3"))
    world.wheel("other", "1.0", linked({"other/_ext.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libother.so.3",), runpath="$ORIGIN/lib")}))
    world.link(world.inside("other/lib"), "/opt/shared/lib")
    plan = plan_of(whole(world))
    assert [step for each in plan.actions for step in each.steps] == []


def test_an_unknown_method_is_one_clear_error(shadowed: World) -> None:
    with pytest.raises(BadInput, match="--method magic: is no method"):
        plan_of(shadowed, method="magic")


def test_the_hook_loads_what_needs_others_after_them(tmp_path: Path) -> None:
    from tests.test_cases_k2 import onnxruntime

    world = whole(onnxruntime(tmp_path / "machine"))
    [action] = plan_of(world).actions
    text = next(step.text for step in action.steps if isinstance(step, WriteFile) and "libcublas.so.12" in step.text)
    assert "onnxruntime" in text
    view = world.view(load_libraries())
    assert any(each.code == "SF402" for each in diagnose(view).findings)
