"""Plans whose wheels come from a package index on loopback: chosen, downloaded, checked, laid over, judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackfix.cli.common import CommonOptions
from stackfix.cli.progress import Bars
from stackfix.cli.repairing import DiskGround, DiskPlaces, with_hooks
from stackfix.cli.repairing_download import KEPT
from stackfix.cli.repairing_nearest import nearest
from stackfix.cli.repairing_wheels import IndexChoices
from stackfix.diagnose.diagnose import diagnose
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.install_choice import Wanted
from stackfix.plan.planner import make_plan
from stackfix.plan.records import InstallWheel, Plan
from tests.case_worlds import install_torch, nvidia_files
from tests.cli_world import World as Index
from tests.cli_world import settle
from tests.diagnose_world import World, elf_bytes
from tests.inspect_trees import make_wheel
from tests.plan_world import cured, kinds
from tests.test_cases_k3 import install_cpu_torch

NCCL, PIN = "nvidia-nccl-cu12", "2.20.5"
TAG = "py3-none-manylinux2014_x86_64"


@contextmanager
def served(folder: Path, **versions: str) -> Iterator[Index]:
    """An index with wheels of NCCL: file version -> the release that is really in it."""
    files = {}
    for version, content in versions.items():
        release = version.removeprefix("v").replace("_", ".")
        inside = {name: elf_bytes(f"/venv/{name}", each) for name, each in nvidia_files(NCCL, content).items()}
        path = make_wheel(folder, NCCL.replace("-", "_"), release, inside, tag=TAG)
        files[path.name] = path.read_bytes()
    with Index(projects={NCCL: files}).served() as index:
        yield index


def plan_with(world: World, cache: Path, *, offline: bool = False) -> Plan:
    """The plan with the index that the settings name."""
    common = CommonOptions(as_json=True, quiet=True, verbose=0, offline=offline, cache_dir=cache)
    root = Root(str(world.folder))
    view = with_hooks(world.view(load_libraries()), root)
    with IndexChoices(view, common, Bars(shown=False)) as choices, DiskGround(view, root, choices.fetch) as ground:
        return make_plan(view, diagnose(view), ground=ground, places=DiskPlaces(root, view.environment.prefix),
                         resolve=choices)


@pytest.fixture
def old_nccl(tmp_path: Path) -> World:
    """torch 2.3.1 beside an older NCCL than it pins; its site folder is the venv's."""
    world = install_torch(World(tmp_path / "machine"), "2.3.1", nccl="2.18.1")
    (tmp_path / "wheels").mkdir()
    return world


def test_the_pinned_wheel_is_found_downloaded_and_judged(old_nccl: World, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "wheels", v2_18_1="2.18.1", v2_20_5="2.20.5", v2_21_5="2.21.5") as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_with(old_nccl, tmp_path / "cache")
        assert (kinds(plan), cured(plan), plan.left) == (("install",), ["SF201"], ())
        [wheel] = plan.actions[0].steps
        assert isinstance(wheel, InstallWheel)
        assert (wheel.version, wheel.source, wheel.replaces) == (PIN, f"{NCCL}=={PIN}", (f"{NCCL} 2.18.1",))
        assert [each for each in index.asked if "2.18.1" in each or "2.21.5" in each] == []     # nothing more
        # what was downloaded is kept, and is enough without the network
        asked = len(index.asked)
        assert plan_with(old_nccl, tmp_path / "cache", offline=True) == plan
        assert len(index.asked) == asked


def test_without_the_network_it_is_left_with_the_reason(old_nccl: World, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "wheels", v2_20_5="2.20.5") as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_with(old_nccl, tmp_path / "cache", offline=True)
    assert kinds(plan) == ()
    [left] = [each for each in plan.left if each.code == "SF201"]
    assert "offline" in left.reason
    assert any(each.kind == "advice" and f"{NCCL}=={PIN}" in (each.command or "") for each in plan.actions)


def test_bytes_of_another_hash_are_no_plan_and_are_not_kept(old_nccl: World, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "wheels", v2_20_5="2.20.5") as index:
        settle(monkeypatch, tmp_path, index.url)
        [name] = index.projects[NCCL]
        page = index.reply(f"GET /simple/{NCCL}/ HTTP/1.1\r\n\r\n")
        index.answers[f"/simple/{NCCL}/"] = page
        index.projects[NCCL][name] = index.projects[NCCL][name][:-1] + b"x"
        plan = plan_with(old_nccl, tmp_path / "cache")
    assert kinds(plan) == ()
    assert "its sha256 is" in next(each for each in plan.left if each.code == "SF201").reason
    assert [each for each in (tmp_path / "cache" / KEPT).rglob("*") if each.is_file()] == []


def test_a_wheel_with_less_than_its_version_promises_is_no_plan(old_nccl: World, tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "wheels", v2_20_5="2.18.1") as index:
        settle(monkeypatch, tmp_path, index.url)
        plan = plan_with(old_nccl, tmp_path / "cache")
    assert kinds(plan) == ()
    assert "install: leads to SF201" in next(each for each in plan.left if each.code == "SF201").reason


def test_another_torch_comes_with_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a lock decides it: what is installed and fits stays."""
    world = install_cpu_torch(World(tmp_path / "machine"), "2.3.1+cpu")
    world.wheel("numpy", "1.26.4").wheel("jinja2", "3.1.4")
    with Index().served() as index:
        settle(monkeypatch, tmp_path, index.url)
        common = CommonOptions(as_json=True, quiet=True, verbose=0, offline=False, cache_dir=tmp_path / "cache")
        with IndexChoices(world.view(load_libraries()), common, Bars(shown=False)) as choices:
            offers = choices.offers((Wanted(project="torch", specifier="==2.3.1", near="2.3.1+cpu", cuda="12.1"),))
    assert offers.reason is None
    [wheels] = offers.sets
    assert (wheels[0].project, wheels[0].replaces) == ("torch", ("torch 2.3.1+cpu",))
    projects = {each.project: each.version for each in wheels}
    assert projects["nvidia-nccl-cu12"] == PIN
    assert {"jinja2", "numpy"} & set(projects) == set()
    assert all(len(each.sha256) == 64 for each in wheels)


@pytest.mark.parametrize(("specifier", "near", "order"), [
    ("", "2.0", ["2.0", "2.5", "3.0", "1.0"]), (">=2.1", "1.0", ["2.5", "3.0"]), ("<2.1", "3.0", ["2.0", "1.0"]),
    ("", None, ["3.0", "2.5", "2.0", "1.0"]), ("==2.5", "1.0", ["2.5"]), ("nonsense", "1.0", []),
])
def test_the_nearest_release_is_tried_first(specifier: str, near: str | None, order: list[str]) -> None:
    versions = ("1.0", "2.0", "2.5", "3.0", "3.1rc1", "no version")
    assert nearest(versions, Wanted(project="x", specifier=specifier, near=near)) == order
