"""Which variables cure one command, on machines of public reports; the loader of this machine is asked, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.cli.repairing import DiskGround
from stackfix.cli.run_variables import Cured, by_variables, no_wheel, place_variables, unnamed_folder, why_unwritten
from stackfix.inspect.environment_records import CondaPrefix
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.effect_records import Effect, Linked, Variable
from tests import test_cases_k7 as k7
from tests.diagnose_world import World
from tests.plan_cases import lost_link
from tests.plan_world import whole
from tests.test_cases_k1 import OWN, TOOLKIT, beside_toolkit

HOSTILE = f"{TOOLKIT}/lib64"


def cured(world: World) -> Cured:
    root, view = Root(str(world.folder)), world.view(load_libraries())
    with DiskGround(view, root, no_wheel) as ground:
        return by_variables(view, ground)


def test_the_folder_of_the_right_library_comes_first(tmp_path: Path) -> None:
    world = whole(beside_toolkit(tmp_path, "2.5.1")).environ(LD_LIBRARY_PATH=HOSTILE)
    found = cured(world)
    own = world.inside(OWN).rpartition("/")[0]
    assert (found.variables, found.left) == ((("LD_LIBRARY_PATH", f"{own}:{HOSTILE}"),), ())


def test_a_python_that_nobody_activates_is_cured_for_one_command(tmp_path: Path) -> None:
    """Nothing is written, so it does not matter that there is no script to write to."""
    world = beside_toolkit(tmp_path, "2.5.1").environ(LD_LIBRARY_PATH=HOSTILE)
    for name in ("pyvenv.cfg", "bin/python"):
        world.remove(f"{world.prefix}/{name}")
    assert [name for name, _ in cured(world).variables] == ["LD_LIBRARY_PATH"]


@pytest.mark.parametrize("make", [lost_link, lambda folder: k7.tokenizer(folder, "torch")], ids=["link", "system's"])
def test_what_no_folder_can_be_named_for_is_loaded_first(make: Callable[[Path], World], tmp_path: Path) -> None:
    """conda's lib folder holds everything: it is never put on the path, but one library of it can be named."""
    world = whole(make(tmp_path))
    found = cured(world)
    assert found.left == ()
    assert [name for name, _ in found.variables] == ["LD_PRELOAD"]
    [(_, value)] = found.variables
    assert value is not None
    assert value.startswith(f"{world.prefix}/lib/libstdc++.so.6")
    assert ":" not in value
    assert world.host(value).is_file()


@pytest.mark.parametrize(("folder", "may"), [("/a", True), ("/a b", False), ("/a:b", False), ("/a;b", False)])
def test_a_folder_that_no_variable_can_name_is_not_named(folder: str, may: bool) -> None:
    effect = Effect(variables=(Variable(name="LD_PRELOAD", first=(f"{folder}/libx.so",)),))
    assert (why_unwritten(effect) is None) == may


def test_files_are_not_changed_for_one_command() -> None:
    assert why_unwritten(Effect(links=(Linked(path="/x", target="y"),))) is not None
    assert why_unwritten(Effect()) is None


def test_the_environment_is_active_for_the_command(tmp_path: Path) -> None:
    world = whole(beside_toolkit(tmp_path, "2.5.1"))
    environment, prefix = world.view(load_libraries()).environment, world.prefix
    assert place_variables(environment, {"PATH": "/usr/bin:/bin", "PYTHONHOME": "/x"}) == {
        "VIRTUAL_ENV": prefix, "PYTHONHOME": None, "PATH": f"{prefix}/bin:/usr/bin:/bin"}
    assert place_variables(environment, {"PATH": f"/usr/bin:{prefix}/bin", "VIRTUAL_ENV": prefix}) == {
        "PATH": f"{prefix}/bin:/usr/bin"}
    assert place_variables(environment, {"PATH": f"{prefix}/bin:/usr/bin", "VIRTUAL_ENV": prefix}) == {}
    conda = replace(environment, venv=None, conda=CondaPrefix(history=None, base=False, packages=(),
                                                              variables=(("MINE", "1"),)))
    assert place_variables(conda, {"PATH": f"{prefix}/bin"}) == {"CONDA_PREFIX": prefix, "MINE": "1"}
    system = replace(environment, venv=None)
    assert place_variables(system, {"PATH": f"/usr/bin:{prefix}/bin"}) == {}
    assert place_variables(system, {"PATH": "/usr/bin"}) == {"PATH": f"{prefix}/bin:/usr/bin"}


def test_a_folder_with_a_colon_is_not_named_in_path(tmp_path: Path) -> None:
    environment = whole(beside_toolkit(tmp_path, "2.5.1")).view(load_libraries()).environment
    assert unnamed_folder(environment) is None
    odd = replace(environment, prefix="/co:lon/v")
    assert unnamed_folder(odd) == "/co:lon/v/bin"
    assert place_variables(odd, {"PATH": "/usr/bin:/bin"}) == {"VIRTUAL_ENV": "/co:lon/v"}


def test_another_environment_is_not_active_for_the_command(tmp_path: Path) -> None:
    """What the command starts, uv or stackfix, would work on the other one."""
    world = whole(beside_toolkit(tmp_path, "2.5.1"))
    venv, prefix = world.view(load_libraries()).environment, world.prefix
    plain = replace(venv, venv=None)
    active = {"PATH": "/other/bin:/usr/bin", "VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/opt/conda/"}
    assert place_variables(plain, active) == {
        "VIRTUAL_ENV": None, "CONDA_PREFIX": None, "PATH": f"{prefix}/bin:/usr/bin"}
    assert place_variables(plain, {**active, "PATH": f"/opt/conda/bin:/other/bin:{prefix}/bin"}) == {
        "VIRTUAL_ENV": None, "CONDA_PREFIX": None, "PATH": f"{prefix}/bin"}
    assert place_variables(plain, {"PATH": f"{prefix}/bin", "VIRTUAL_ENV": f"{prefix}/"}) == {}
    conda = replace(plain, conda=CondaPrefix(history=None, base=False, packages=(), variables=()))
    assert place_variables(conda, {**active, "PATH": f"{prefix}/bin"}) == {"VIRTUAL_ENV": None, "CONDA_PREFIX": prefix}
    assert place_variables(venv, {"PATH": f"{prefix}/bin", "CONDA_PREFIX": "/opt/conda"}) == {"VIRTUAL_ENV": prefix}
