"""A repair of conda prefixes by activation scripts, which real shells then read as `conda activate` has them read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.apply_faults.world import tree_of
from tests.conda_packages import JIT
from tests.conda_world import BAD, LAYOUTS, NAME, OWN, PATH, Conda, World, load, opened
from tests.shell_world import SHELLS, Shell, is_here, run

pytest.importorskip("rattler", reason="py-rattler, which makes the prefixes, is not installed")

BEFORE = [None, "", BAD, f"{BAD}:/a b:/c", f"/a:{BAD}/:"]
LAYOUT_ORDERS = [("lib", "wheels"), ("wheels", "lib")]
RATTLERS = ["bash", "zsh", "fish"]      # py-rattler writes no script for csh


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        with opened(tmp_path_factory.mktemp("conda")) as made:
            yield made


@pytest.fixture(scope="module")
def prefixes(world: World) -> dict[str, Path]:
    """Repaired ones by their layout."""
    return world.repaired()


def shell_named(name: str) -> Shell:
    if not is_here(name):
        pytest.skip(f"no {name} here")
    return SHELLS[name]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    return shell_named(request.param)


def own(prefixes: Mapping[str, Path], layout: str) -> str:
    """The folder that activation puts first."""
    return f"{prefixes[layout]}/{OWN[layout]}"


def library(prefixes: Mapping[str, Path], layout: str) -> str:
    """The file that ought to be mapped."""
    return os.path.realpath(f"{own(prefixes, layout)}/{JIT}")


def or_empty(environ: Mapping[str, str]) -> dict[str, str]:
    """The same; a variable that is not set as an empty one, which is all that some packages' scripts leave of it."""
    return {**environ, NAME: environ.get(NAME, "")}


# --- what shells have before, in and after ---


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_before_in_and_after(layout: str, before: str | None, shell: Shell, world: World,
                             prefixes: Mapping[str, Path], tmp_path: Path) -> None:
    """bash, dash, zsh and ksh run all of it below `set -eu`."""
    conda, environ, prefix = Conda(shell=shell), world.begun(before), prefixes[layout]
    first, inside, again, after = run(shell, [
        "?", *conda.activate(prefix), "?", *conda.sourced(prefix, "activate")[-1:], "?", *conda.deactivate(), "?",
    ], environ, tmp_path)
    folders = inside[NAME].split(":")
    assert folders[0] == own(prefixes, layout)
    assert folders.count(folders[0]) == 1
    brought = {"wheels": [str(world.hostile)], "lib": []}[layout]       # by the other package's script
    assert folders[1:] == brought + (environ[NAME].split(":") if environ.get(NAME) else [])
    assert str(prefix / "lib") not in [each.rstrip("/") for each in folders]
    assert inside["CONDA_PREFIX"] == str(prefix)
    assert again == inside
    assert load(prefix, inside) == library(prefixes, layout)
    assert first.items() >= environ.items()
    assert after == first if layout == "lib" else or_empty(after) == or_empty(first)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_activation_the_import_fails(layout: str, world: World, prefixes: Mapping[str, Path]) -> None:
    """What the other tests rest on: the folder is bad."""
    assert "undefined symbol: __nvJitLinkAddData_12_1" in load(prefixes[layout], world.begun(BAD))
    assert load(prefixes[layout], world.begun()) == library(prefixes, layout)


@pytest.mark.parametrize("turned", [False, True], ids=["conda's order", "rattler's order"])
@pytest.mark.parametrize("before", BEFORE[1:])
def test_scripts_taken_back_in_either_order(before: str, shell: Shell, turned: bool, world: World,
                                            prefixes: Mapping[str, Path], tmp_path: Path) -> None:
    """Our script is the last to be read at activation, whatever the other packages of the prefix called theirs."""
    conda, environ = Conda(shell=shell, turned=turned), world.begun(before)
    lines = conda.sourced(prefixes["wheels"], "activate")
    assert ["zz-toolkit" in each for each in lines] == [True, False]
    (after,) = run(shell, [*conda.activate(prefixes["wheels"]), *conda.deactivate(), "?"], environ, tmp_path)
    assert after.get(NAME, "") == environ[NAME]
    assert not [name for name in after if "STACKFIX" in name.upper()]


@pytest.mark.parametrize("stacked", [False, True], ids=["in its place", "stacked"])
@pytest.mark.parametrize("order", LAYOUT_ORDERS, ids="-".join)
@pytest.mark.parametrize("before", [None, BAD])
def test_another_environment_on_top_and_back(before: str | None, order: tuple[str, str], stacked: bool, shell: Shell,
                                             world: World, prefixes: Mapping[str, Path], tmp_path: Path) -> None:
    conda, (one, other) = Conda(shell=shell), (prefixes[each] for each in order)
    first, inside, nested, back, after = run(shell, [
        "?", *conda.activate(one), "?", *conda.activate(other, stacked=stacked), "?", *conda.deactivate(), "?",
        *conda.deactivate(), "?"], world.begun(before), tmp_path)
    assert load(one, inside) == library(prefixes, order[0])
    assert load(other, nested) == library(prefixes, order[1])
    assert (own(prefixes, order[0]) in nested[NAME].split(":")) is stacked
    assert back == inside
    assert or_empty(after) == or_empty(first)


def test_powershell() -> None:
    pytest.skip("no PowerShell is to be had here: what is written for it is not run")


def test_check_is_clean_in_an_activated_shell(world: World, prefixes: Mapping[str, Path], tmp_path: Path) -> None:
    for layout, prefix in prefixes.items():
        conda = Conda(shell=SHELLS["bash"])
        (inside,) = run(conda.shell, [*conda.activate(prefix), "?"], world.begun(BAD), tmp_path)
        done = world.say("check", prefix, "--json", env=inside)
        assert (done.status, done.json["findings"]) == (0, []), layout
        assert world.say("check", prefix).status == 1
        assert world.say("repair", prefix, "--method", "activate", "--dry-run", env=inside).status == 0


# --- as rattler activates ---


@pytest.mark.parametrize("name", RATTLERS)
def test_rattler_activates_to_the_same(name: str, world: World, prefixes: Mapping[str, Path], tmp_path: Path) -> None:
    """pixi and py-rattler write one script that sources those of the prefix."""
    shell, prefix = shell_named(name), prefixes["wheels"]
    conda = Conda(shell=shell, turned=True)
    (ours,) = run(shell, [*conda.activate(prefix), "?"], world.begun(BAD), tmp_path)
    (theirs,) = run(shell, [rattlers_script(name, prefix), "?"], world.begun(BAD), tmp_path)
    assert {"CONDA_PREFIX", "PATH", "CONDA_SHLVL", NAME, "_TOOLKIT_KEPT"} <= ours.keys()
    assert len([each for each in ours if each.startswith("_STACKFIX")]) == 3
    assert theirs.items() >= ours.items()
    assert load(prefix, theirs) == library(prefixes, "wheels")


@pytest.fixture(scope="module")
def plain(world: World) -> Path:
    """A repaired prefix with a name that rattler quotes right in all shells: it has a $ mean a variable."""
    prefix = world.make("another one", "faketorch ==1.0 lib")
    assert world.repair(prefix).status == 0
    return prefix


@pytest.mark.parametrize("name", RATTLERS)
def test_rattler_goes_from_one_to_the_other(name: str, world: World, prefixes: Mapping[str, Path], plain: Path,
                                            tmp_path: Path) -> None:
    """It deactivates the first."""
    shell, one = shell_named(name), plain
    lines = [rattlers_script(name, prefixes["wheels"]), rattlers_script(name, one, prefixes["wheels"]), "?"]
    (inside,) = run(shell, lines, world.begun(BAD), tmp_path)
    assert inside[NAME] == f"{one}/{OWN['lib']}:{world.hostile}"
    assert load(one, inside) == f"{one}/lib/{JIT}"


def rattlers_script(name: str, prefix: Path, active: Path | None = None) -> str:
    """rattler's own script for a shell."""
    from rattler.shell import ActivationVariables, PathModificationBehavior, activate
    from rattler.shell import Shell as Kind

    kinds = {"bash": Kind.bash, "zsh": Kind.zsh, "fish": Kind.fish}
    variables = ActivationVariables(active, PATH.split(":"), PathModificationBehavior.Replace)
    return activate(prefix, variables, kinds[name]).script


# --- on disk ---


def test_undo_gives_the_tree_back_and_conda_knows_of_nothing(world: World) -> None:
    prefix = world.make("to undo", "faketorch ==1.0 lib", "toolkit")
    before, packages = tree_of(prefix), world.packages()
    world.repair(prefix)
    repaired = tree_of(prefix)
    assert {Path(path).stem for path in repaired.keys() - before.keys() if path.startswith("etc/conda")} == {
        "zzzz-stackfix"}
    files = {path: facts for path, facts in before.items() if not (prefix / path).is_dir()}
    assert repaired.items() >= files.items()        # conda-meta's records among them
    assert len([path for path in files if path.startswith("conda-meta/")]) == 6
    assert world.packages() == packages
    assert world.say("undo", prefix).status == 0
    assert tree_of(prefix) == before
    assert world.packages() == packages


def test_what_conda_installs_after_a_repair_survives_its_undoing(world: World) -> None:
    prefix = world.make("goes on", "faketorch ==1.0 wheels", "scripts")
    assert world.repair(prefix).status == 0
    scripts = {path for path in tree_of(prefix) if "stackfix" in path and path.startswith("etc/")}
    world.make("goes on", "faketorch ==1.0 wheels", "scripts", "toolkit")
    assert tree_of(prefix).keys() >= scripts
    assert world.say("undo", prefix).status == 0
    assert {Path(path).stem for path in tree_of(prefix) if path.startswith("etc/conda/activate.d/")} == {
        "scripts", "zz-toolkit"}
