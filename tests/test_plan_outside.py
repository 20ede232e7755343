"""A stack that lies outside of the prefix: in the base of a venv with --system-site-packages, or where a .pth leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.homes import home_at
from stackfix.diagnose.shadows import NOT_AT_HAND
from stackfix.errors import BadInput
from stackfix.inspect.environment_records import Environment
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.effect_installed import installed_hooks
from stackfix.plan.hook import hook_steps
from stackfix.plan.hook_folder import folder_commands, table
from stackfix.plan.records import Plan, WriteFile
from tests.case_worlds import linked, nvjitlink
from tests.diagnose_world import World, lib
from tests.plan_world import advice, apply_plainly, cured, kinds, plan_of, shelf_for, whole
from tests.test_cases_k1 import CUSPARSE, OWN, SONAME, TOOLKIT, beside_toolkit
from tests.test_cli_run_variables import cured as cured_for_one

HOSTILE = f"{TOOLKIT}/lib64"
EXTENSION = "ext/_C.cpython-311-x86_64-linux-gnu.so"
BASE, OTHER = "/usr/lib/python3.11/site-packages", "/home/me/other/lib/python3.11/site-packages"


def outside(folder: Path, home: str) -> World:
    """torch 2.5.1 with its wheels in `home`, which the venv imports from, and the toolkit 12.2 on the loader's path."""
    world = whole(beside_toolkit(folder / "machine", "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)
    world.host(home).parent.mkdir(parents=True, exist_ok=True)
    world.host(world.site).rename(world.host(home))
    world.host(world.site).mkdir()
    if home == BASE:
        config = world.host(f"{world.prefix}/pyvenv.cfg")
        config.write_text(config.read_text().replace("packages = false", "packages = true"))
    else:
        world.write(f"{world.site}/other.pth", f"{home}\n")
    return world


@pytest.fixture(params=[BASE, OTHER], ids=["base", "pth"])
def home(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(home: str, tmp_path: Path) -> World:
    return outside(tmp_path, home)


def loader_of(plan: Plan) -> str:
    """The text of the hook's second module."""
    return next(step.text for each in plan.actions for step in each.steps
                if isinstance(step, WriteFile) and step.path.endswith("_loader.py"))


def test_the_variable_is_to_blame_and_not_a_package(world: World, home: str) -> None:
    found = [each for each in diagnose(world.view(load_libraries())).findings if each.severity == "error"]
    assert [(each.code, each.winner, each.loser, each.culprit.variable, each.repairable) for each in found] == [
        ("SF101", f"{HOSTILE}/{SONAME}", f"{home}/{OWN}", "LD_LIBRARY_PATH", True)]
    assert found[0].requester is not None
    assert found[0].requester.path == f"{home}/{CUSPARSE}"
    assert found[0].cure[0].startswith("unset LD_LIBRARY_PATH")


def test_a_hook_in_the_venv_loads_it_from_there(world: World, home: str) -> None:
    before = {path: path.lstat().st_mtime_ns for path in world.host(home).rglob("*")}
    shelf = shelf_for(world)
    plan = plan_of(world, shelf)
    assert (kinds(plan), cured(plan), plan.left) == (("preload-hook",), ["SF101"], ())
    assert all(change.path.startswith("lib/") for change in plan.actions[0].changes)
    [note] = plan.actions[0].notes
    assert note == (f"{home}/{OWN.rpartition('/')[0]} lies outside of /venv: it is loaded from there, by its whole "
                    "path, and nothing in it is changed")
    assert table(loader_of(plan), "LIBRARIES") == {"torch": (f"{home}/{OWN}",)}
    assert table(loader_of(plan), "ELSEWHERE") == {"torch": home}
    apply_plainly(world, plan, shelf)
    assert plan_of(world).actions == ()
    assert {path: path.lstat().st_mtime_ns for path in world.host(home).rglob("*")} == before


def test_the_same_in_a_folder_of_ones_own(world: World, home: str) -> None:
    plan = plan_of(world)
    command = folder_commands("/venv", world.site, loader_of(plan)) or ""
    assert f"'{home}/{OWN}'" in command
    assert f"{world.site}/{home}" not in command


def test_activation_and_one_command_name_its_folder(world: World, home: str) -> None:
    variables = (("LD_LIBRARY_PATH", f"{home}/{OWN.rpartition('/')[0]}:{HOSTILE}"),)
    plan = plan_of(world, method="activate")
    assert (kinds(plan), cured(plan), plan.variables) == (("write-activation",), ["SF101"], variables)
    one = cured_for_one(world)
    assert (one.variables, one.left) == (variables, ())


def test_no_link_leads_out_of_the_prefix(world: World, home: str) -> None:
    plan = plan_of(world, method="symlink")
    assert [each.code for each in plan.left] == ["SF101"]
    assert not any(home in getattr(step, "target", "") for each in plan.actions for step in each.steps)


def unreached(folder: Path) -> World:
    """An extension in the venv, and what it needs, which it has no way to, where a .pth file leads."""
    world = World(folder / "machine")
    world.wheel("libneeded", "2", {"libneeded/lib/libneeded.so.1": lib()}, site=OTHER)
    world.wheel("ext", "1", linked({EXTENSION: lib(needs=("libneeded.so.1",))}))
    return whole(world.write(f"{world.site}/other.pth", f"{OTHER}\n"))


def test_what_is_not_reached_is_loaded_from_there_and_not_linked(tmp_path: Path) -> None:
    world = unreached(tmp_path)
    assert kinds(plan_of(world, method="symlink")) == ()
    plan = plan_of(world)
    assert (kinds(plan), cured(plan)) == (("preload-hook",), ["SF402"])
    assert table(loader_of(plan), "LIBRARIES") == {"ext": (f"{OTHER}/libneeded/lib/libneeded.so.1",)}


def test_a_folder_of_pythonpath_is_named_by_no_hook(tmp_path: Path) -> None:
    """The next shell has another PYTHONPATH."""
    world = outside(tmp_path, OTHER)
    world.remove("other.pth")
    plan = plan_of(world.environ(PYTHONPATH=OTHER))
    assert kinds(plan) == ()
    assert [(each.code, each.reason) for each in plan.left] == [("SF101", f"{OTHER}/{OWN} {NOT_AT_HAND}")]


def test_a_hook_of_the_base_is_seen_by_its_venvs(tmp_path: Path) -> None:
    """Python reads its .pth file for them, too."""
    world = outside(tmp_path, BASE)
    for step in hook_steps("lib", {"torch": (OWN,)}, "3.11"):
        assert isinstance(step, WriteFile)
        world.write(f"{BASE}/{step.path.rpartition('/')[2]}", step.text)
    assert plan_of(world).actions == ()


def test_a_package_manager_is_asked_before_it_removes(world: World) -> None:
    world.write("/etc/os-release", "ID=ubuntu\n")
    for method in ("auto", "preload", "symlink", "reinstall"):
        for each in plan_of(world, method=method).actions:
            assert "dpkg" not in (each.command or "")


def test_hooks_are_read_with_whole_paths(world: World, home: str) -> None:
    plan, environment = plan_of(world), world.view(load_libraries()).environment
    texts = {step.path.rpartition("/")[2]: step.text for each in plan.actions for step in each.steps
             if isinstance(step, WriteFile)}
    assert [each.library for each in installed_hooks(environment, Texts(environment, texts))] == [f"{home}/{OWN}"]


class Texts:
    """Files of the venv's site folder."""

    def __init__(self, environment: Environment, texts: dict[str, str]) -> None:
        self.site = next(each.path for each in environment.sites if each.kind == "environment")
        self.texts = texts

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(self.texts) if folder == self.site else ()

    def text(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        return self.texts.get(name) if folder == self.site else None


@pytest.mark.parametrize("path", ["/base/../etc/liba.so", "/base//liba.so", "/based/liba.so", "/base", "/base/./a.so"])
def test_only_what_lies_plainly_in_such_a_folder_is_named(path: str) -> None:
    with pytest.raises(BadInput):
        hook_steps("site", {"a": (path,)}, "3.11", outside=("/base",))
    assert "'/base/a.so'" in "".join(step.text for step in hook_steps(
        "site", {"a": ("/base/a.so",)}, "3.11", outside=("/base",)) if isinstance(step, WriteFile))


@pytest.mark.parametrize("prefix", ["/usr", "/home/me/other"])
def test_what_is_wrong_in_the_other_environment_is_mended_there(prefix: str, tmp_path: Path) -> None:
    """An installation into the venv would lie where the RUNPATH of the base's cuSPARSE never leads."""
    home = BASE if prefix == "/usr" else OTHER
    world = outside(tmp_path, home)
    world.variables.clear()
    world.link(f"{prefix}/bin/python3", "/usr/bin/python3.11")
    world.remove(f"{home}/{OWN}")
    plan, program = plan_of(world), f"{prefix}/bin/python3{'.11' if prefix == '/usr' else ''}"
    assert (kinds(plan), [(each.code, each.reason) for each in plan.left]) == (
        (), [("SF401", f"{home}/{OWN} lies outside of the environment")])
    assert advice(plan).splitlines() == [
        f"stackfix repair --prefix {prefix}",
        f"{program} -m pip install --force-reinstall --no-deps nvidia-nvjitlink-cu12==12.4.127"]


def test_an_old_library_of_the_base_is_left_to_it(tmp_path: Path) -> None:
    world = outside(tmp_path, BASE)
    world.variables.clear()
    world.wheel("nvidia-nvjitlink-cu12", "12.0.140", {OWN: nvjitlink("12.0.140")}, site=BASE)
    plan = plan_of(world)
    assert [(each.code, each.reason) for each in plan.left if each.code == "SF201"] == [
        ("SF201", f"{BASE}/{OWN} lies outside of the environment")]
    assert advice(plan).splitlines()[0] == "stackfix repair --prefix /usr"


def test_two_folders_with_one_environment_each(world: World, home: str) -> None:
    """What the venv has itself is its own: nothing of another environment is told of it."""
    view = world.wheel("mine", "1", {"mine/libmine.so.1": lib()}).view(load_libraries())
    assert home_at(view, f"{world.site}/mine/libmine.so.1") is None
    assert home_at(view, "/usr/lib/x86_64-linux-gnu/libc.so.6") is None
    assert (home_at(view, f"{home}/{OWN}") is not None) == (home == BASE)       # no Python lies in the other
