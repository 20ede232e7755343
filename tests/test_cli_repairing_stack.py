"""Releases that a repair installs: those that `stackfix lock` chooses for the torch that is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackfix.cli.common import CommonOptions
from stackfix.cli.progress import Bars
from stackfix.cli.repairing import DiskGround, DiskPlaces, with_hooks
from stackfix.cli.repairing_wheels import IndexChoices
from stackfix.diagnose.diagnose import diagnose
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.install_choice import Wanted
from stackfix.plan.planner import make_plan
from stackfix.plan.records import InstallWheel, Plan
from tests.case_worlds import CHECK_OLD, install_torch, nvidia_files, set_device
from tests.cli_world import World as Index
from tests.cli_world import settle, speaker
from tests.diagnose_world import World, elf_bytes
from tests.inspect_trees import make_wheel
from tests.loader_oracle.graph import Library
from tests.plan_world import advice, cured, kinds
from tests.test_cases_k3 import VISION, extension, install_vision

JITLINK, CUSPARSE, VISION_PROJECT = "nvidia-nvjitlink-cu12", "nvidia-cusparse-cu12", "torchvision"
LOCK = "stackfix lock --torch 2.3.1 --cuda 12.1"
TAG = "py3-none-manylinux2014_x86_64"


def wheel_of(folder: Path, project: str, version: str, files: Mapping[str, Library],
             requires: tuple[str, ...] = ()) -> tuple[str, bytes]:
    """(name, bytes) of a wheel with small real libraries."""
    folder.mkdir(exist_ok=True)
    inside = {name: elf_bytes(f"/venv/{name}", each) for name, each in files.items()}
    path = make_wheel(folder, project.replace("-", "_"), version, inside, tag=TAG, requires=requires)
    return path.name, path.read_bytes()


def stocked(folder: Path, *, torch: bool = True) -> Index:
    """An index with torch 2.3.1 and what it requires; four nvJitLinks, of which the first is the too old one."""
    index = Index()
    index.projects[CUSPARSE] = dict([wheel_of(folder, CUSPARSE, "12.1.0.106", nvidia_files(CUSPARSE, "12.1.0.106"),
                                              (JITLINK,))])
    index.projects[JITLINK] = dict(wheel_of(folder, JITLINK, each, nvidia_files(JITLINK, each))
                                   for each in ("12.0.140", "12.1.55", "12.1.105", "12.9.86"))
    index.projects[VISION_PROJECT] = dict(
        wheel_of(folder, VISION_PROJECT, each, {VISION: extension(CHECK_OLD)}, (f"torch=={torch_of}", "pillow>=11"))
        for each, torch_of in (("0.17.2", "2.2.2"), ("0.18.0", "2.3.0"), ("0.18.1", "2.3.1"), ("0.19.0", "2.4.0")))
    index.projects["pillow"] = dict([wheel_of(folder, "pillow", "11.0.0", {})])
    if not torch:
        del index.projects["torch"]
    return index


@contextmanager
def choices_for(world: World, folder: Path) -> Iterator[IndexChoices]:
    common = CommonOptions(as_json=True, quiet=True, verbose=0, offline=False, cache_dir=folder / "cache")
    with IndexChoices(world.view(load_libraries()), common, Bars(shown=False)) as choices:
        yield choices


def plan_for(world: World, folder: Path) -> Plan:
    """The plan with the index that the settings name."""
    root = Root(str(world.folder))
    with choices_for(world, folder) as choices:
        view = with_hooks(world.view(load_libraries()), root)
        with DiskGround(view, root, choices.fetch) as ground:
            return make_plan(view, diagnose(view), ground=ground, resolve=choices,
                             places=DiskPlaces(root, view.environment.prefix))


def only_wheel(plan: Plan) -> InstallWheel:
    [step] = (step for action in plan.actions for step in action.steps)
    assert isinstance(step, InstallWheel)
    return step


@pytest.fixture
def old_jitlink(tmp_path: Path) -> World:
    return install_torch(World(tmp_path / "machine"), "2.3.1", nvjitlink="12.0.140")


def test_a_library_comes_in_the_release_that_a_lock_chooses(old_jitlink: World, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch,
                                                            capfd: pytest.CaptureFixture[str]) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(old_jitlink, tmp_path)
        locked = speaker(capfd)(*LOCK.split()[1:], "--python", "3.11", "--no-flash-attn", "--json").json
    [version] = [each["version"] for each in locked["targets"][0]["packages"]
                 if (each["name"], each["manager"]) == (JITLINK, "pip")]
    assert (kinds(plan), cured(plan), plan.left) == (("install",), ["SF201"], ())
    assert (only_wheel(plan).version, version) == ("12.1.105", "12.1.105")      # 12.1.55 would have done, too
    assert plan.actions[0].summary.endswith(f": as `{LOCK}` chooses it")
    assert len([each for each in index.asked if each.startswith(f"/files/{JITLINK}/") and "12.1.55" in each]) == 0


def test_check_and_advice_name_the_release_that_is_installed(old_jitlink: World, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    [cure] = [each.cure[0] for each in diagnose(old_jitlink.view(load_libraries())).findings if each.code == "SF201"]
    assert cure.endswith(f" '{JITLINK}==12.1.105'  # it goes with torch 2.3.1 for CUDA 12.1")
    with Index().served() as index:                             # nothing can be had, and the advice is the same
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(old_jitlink, tmp_path)
    assert kinds(plan) == ()
    assert f"{JITLINK}==12.1.105" in advice(plan)


@pytest.mark.parametrize(("gone", "version"), [((), "12.1.105"), (("12.1.105",), "12.1.55")])
def test_without_an_answer_of_the_lock_what_goes_with_torch_or_the_nearest_is_taken_and_that_is_said(
        gone: tuple[str, ...], version: str, old_jitlink: World, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    stock = stocked(tmp_path / "wheels", torch=False)
    stock.projects[JITLINK] = {name: body for name, body in stock.projects[JITLINK].items()
                               if name.split("-")[1] not in gone}
    with stock.served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(old_jitlink, tmp_path)
    assert (kinds(plan), cured(plan), only_wheel(plan).version) == (("install",), ["SF201"], version)
    assert plan.actions[0].summary.endswith(f": `{LOCK}` gives no answer for this environment")


def test_a_build_of_torch_that_no_lock_has_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1", local="+cu118", nvjitlink="12.0.140")
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(world, tmp_path)
    assert (kinds(plan), only_wheel(plan).version) == (("install",), "12.1.55")
    assert only_wheel(plan).why == (
        "`stackfix lock --torch 2.3.1 --cuda 11.8` gives no answer for this environment")


def test_a_release_of_the_lock_that_would_not_do_is_passed_over(old_jitlink: World, tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        with choices_for(old_jitlink, tmp_path) as choices:
            offers = choices.offers((Wanted(project=JITLINK, specifier=">=12.4", near="12.0.140", within=">=12.4"),))
    [[wheel]] = offers.sets
    assert (wheel.version, wheel.why) == ("12.9.86", f"what `{LOCK}` chooses does not do here")


def test_a_damaged_wheel_comes_again_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1", nvjitlink="12.9.86")
    world.remove(world.inside("nvidia/nvjitlink/lib/libnvJitLink.so.12"))
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(world, tmp_path)
    assert (kinds(plan), only_wheel(plan).version, only_wheel(plan).why) == (("install",), "12.9.86", "")


def test_an_extension_comes_in_the_release_that_a_lock_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                               capfd: pytest.CaptureFixture[str]) -> None:
    world = install_vision(install_torch(World(tmp_path / "machine"), "2.3.1"), "0.17.2", "2.2.2", set_device("2.2.2"))
    world.wheel("pillow", "11.0.0")
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(world, tmp_path)
        locked = speaker(capfd)(*LOCK.split()[1:], "--with", VISION_PROJECT, "--python", "3.11", "--no-flash-attn",
                                "--json").json
    [version] = [each["version"] for each in locked["targets"][0]["packages"]
                 if (each["name"], each["manager"]) == (VISION_PROJECT, "pip")]
    assert (kinds(plan), cured(plan)) == (("install",), ["SF501"])
    assert (only_wheel(plan).version, version) == ("0.18.1", "0.18.1")
    assert plan.actions[0].summary.endswith(f": as `{LOCK} --with torchvision` chooses it")


@pytest.mark.parametrize(("pillow", "note"), [
    ("11.0.0", ()), ("10.4.0", ("torchvision 0.18.1 requires pillow>=11, and 10.4.0 is installed",)),
    (None, ("torchvision 0.18.1 requires pillow>=11, and it is not installed, as before",))])
def test_what_a_wheel_requires_and_lacks_is_told_in_the_plan(pillow: str | None, note: tuple[str, ...], tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_vision(install_torch(World(tmp_path / "machine"), "2.3.1"), "0.17.2", "2.2.2", set_device("2.2.2"))
    shutil.rmtree(world.host(f"{world.site}/pillow-10.4.0.dist-info"))
    if pillow is not None:
        world.wheel("pillow", pillow)
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_for(world, tmp_path)
    assert (kinds(plan), only_wheel(plan).version, plan.actions[0].notes) == (("install",), "0.18.1", note)


def test_the_smallest_set_goes_first_then_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_vision(install_torch(World(tmp_path / "machine"), "2.3.1"), "0.17.2", "2.2.2")    # pillow 10
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        with choices_for(world, tmp_path) as choices:
            offers = choices.offers((Wanted(project=VISION_PROJECT, specifier="==0.18.0", near="0.17.2", within=""),))
    names = [[f"{each.project} {each.version}" for each in one] for one in offers.sets]
    assert names == [["torchvision 0.18.1"], ["torchvision 0.18.1", "pillow 11.0.0"], ["torchvision 0.18.0"]]


def test_without_torch_no_lock_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path / "machine").wheel(JITLINK, "12.0.140")
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        with choices_for(world, tmp_path) as choices:
            offers = choices.offers((Wanted(project=JITLINK, specifier=">=12.1", near="12.0.140", within=">=12.1"),))
    assert next(each[0].version for each in offers.sets) == "12.1.55"
    assert {each[0].why for each in offers.sets} == {"there is no torch here by which `stackfix lock` could choose"}
    assert "/simple/torch/" not in index.asked
