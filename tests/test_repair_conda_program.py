"""`stackfix repair` of a package of conda, linked by this machine's conda; without one, that is told."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackfix.cli.repairing_conda import CondaChoices, NotByConda, fault_of, is_no, step_of, why_never
from stackfix.errors import Unreachable
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.rules_conda import Program, WantedConda
from tests.apply_faults.world import tree_of
from tests.case_worlds import nvjitlink
from tests.conda_packages import JIT, Package, jit, python_package, stack_packages
from tests.conda_world import install, load, served
from tests.diagnose_world import World
from tests.judges.command import Run, run
from tests.test_cases_k1 import SONAME

CONDA = Program(kind="conda", word="conda")
NAME, SPECIFIER = "libnvjitlink", ">=12.1,<13"
STATED = {"url": "https://x.invalid/libnvjitlink-12.4-0.conda", "sha256": "1" * 64, "version": "12.4", "build": "0"}


# --- with a real conda ---


@contextmanager
def broken(folder: Path, *, version: str) -> Iterator[Path]:
    """A prefix whose package needs the nvJitLink of CUDA 12.1, with one of that version."""
    (folder / "old").mkdir()
    good, sparse, torch = stack_packages(folder / "stack", "lib")
    packages = [
        python_package(folder / "python"), good, dataclasses.replace(sparse, depends=(NAME,)),
        dataclasses.replace(torch, depends=("libcusparse", "python")),
        Package(name=NAME, version="12.0.140", build="lib", files={f"lib/{JIT}": jit(folder / "old", 0)})]
    with served(folder / "channel", packages) as channel:
        yield install(folder / "env", channel, ("faketorch", f"{NAME} =={version}"), folder / "cache")


def say(prefix: Path, command: str, *words: str) -> Run:
    """A command line of ours, with a conda that keeps all that is its own beside the prefix."""
    folder = prefix.parent
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1",
        "STACKFIX_CACHE_DIR": str(folder / "stackfix"),
        "CONDA_PKGS_DIRS": str(folder / "pkgs"), "CONDA_SOLVER": os.environ.get("CONDA_SOLVER", "libmamba"),
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return run([sys.executable, "-m", "stackfix", command, "--prefix", prefix, *words], cwd=folder, env=environ)


@pytest.mark.skipif(shutil.which("conda") is None, reason="no conda on PATH")
@pytest.mark.parametrize(("version", "told"), [
    ("12.1.105", f"Reinstall {NAME}=12.1.105=lib of conda, and nothing else: {JIT} is gone"),
    ("12.0.140", f"Install {NAME}=12.1.105=lib of conda in place of {NAME} 12.0.140, and nothing else: as conda "),
])
def test_a_package_of_conda_is_repaired_and_given_back(version: str, told: str, tmp_path: Path) -> None:
    with broken(tmp_path, version=version) as prefix:
        if version == "12.1.105":
            (prefix / "lib" / JIT).unlink()
        before = tree_of(prefix)
        assert "Error" in load(prefix, {})
        planned = say(prefix, "repair", "--dry-run", "--json")
        assert (planned.status, tree_of(prefix)) == (1, before), planned
        assert [each["kind"] for each in planned.json["plan"]["actions"]] == ["install"], planned.json["plan"]["left"]
        done = say(prefix, "repair", "--yes", "--json")
        assert done.status == 0, done
        assert [(each["kind"], each["changes"]) for each in done.json["plan"]["actions"]] == [
            (each["kind"], each["changes"]) for each in planned.json["plan"]["actions"]]
        [action] = done.json["plan"]["actions"]
        assert action["summary"].startswith(told)
        assert (done.json["verified"]["static"], done.json["verified"]["load"]) == ("clean", "works")
        assert load(prefix, {}) == str(prefix / "lib" / JIT)
        listed = run(["conda", "list", "--json", "--prefix", prefix], cwd=tmp_path,
                     env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        assert [each["version"] for each in listed.json if each["name"] == NAME] == ["12.1.105"]
        assert say(prefix, "undo").status == 0
        assert tree_of(prefix) == before


# --- what conda is asked, and where it is not ---


def prefix_with(folder: Path) -> World:
    world = World(folder, conda=True, prefix="/opt/env")
    world.conda(NAME, "12.0", {f"lib/{SONAME}": nvjitlink("12.0.140")})
    return world


def test_without_conda_the_reason_is_told(tmp_path: Path) -> None:
    choices = CondaChoices(prefix_with(tmp_path).view(load_libraries()), {"PATH": str(tmp_path)}, offline=False)
    for package, says in ((NAME, "conda itself is not at hand"), ("none", "conda has no none here")):
        offers = choices.offers(WantedConda(package=package, specifier=SPECIFIER))
        assert offers.sets == ()
        assert says in (offers.reason or "")


@pytest.mark.parametrize(("prefix", "base", "says"), [
    ("/opt/conda", True, "conda itself runs in it"), ("/home/me/work/.pixi/envs/gpu", False, "pixi workspace"),
    ("/opt/my env", False, "a blank"), ("/opt/a:b", False, "a colon"),
])
def test_some_prefixes_are_never_changed_with_conda(prefix: str, base: bool, says: str) -> None:
    assert says in (why_never(prefix, is_base=base) or "")
    assert why_never("/opt/env", is_base=False) is None


def test_a_step_names_the_archive_with_its_hash(tmp_path: Path) -> None:
    conda = prefix_with(tmp_path).view(load_libraries()).environment.conda
    assert conda is not None
    package = next(each for each in conda.packages if each.name == NAME)
    step = step_of(package, STATED, CONDA, why="")
    assert (step.file, step.record) == ("libnvjitlink-12.4-0.conda", "conda-meta/libnvjitlink-12.4-0.json")
    assert step.replaces == (f"{NAME} 12.0",)
    assert step.records == (f"conda-meta/{Path(package.record).name}",)
    for missing in STATED:
        with pytest.raises(NotByConda):
            step_of(package, {name: value for name, value in STATED.items() if name != missing}, CONDA, why="")


def test_a_no_of_condas_is_not_an_index_out_of_reach() -> None:
    far = fault_of(CONDA, {"exception_name": "CondaHTTPError", "message": "HTTP 000 CONNECTION FAILED"})
    near = fault_of(CONDA, {"exception_name": "UnsatisfiableError", "message": "", "error": "no such\nmore"})
    assert isinstance(far, Unreachable)
    assert isinstance(near, NotByConda)
    assert near.what() == "conda: says no: no such"
    assert is_no({"success": False})
    assert is_no({"error": "no such", "caused_by": "None"})
    assert not is_no({"success": True, "actions": {}})
    assert not is_no({"libnvjitlink": []})

