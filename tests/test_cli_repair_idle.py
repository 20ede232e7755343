"""A package is uninstalled after a repair: the hook harms nobody, the commands tell of it, and undo leaves nothing."""

from __future__ import annotations

import os
import platform
import sys

import pytest

from stackfix.apply.transaction import apply_plan
from stackfix.cli.repair_apply import no_wheels
from stackfix.plan.records import Action, Plan, WriteFile
from tests.judges.command import run
from tests.real_environments.workshop import Workshop
from tests.repair_world import Bench, Tree, bench_in

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")


def uninstall(bench: Bench, tool: str, *projects: str) -> None:
    """With the real tool, as its user would."""
    words = (("pip", "--python", bench.made.python, "uninstall", "--yes", "--quiet") if tool == "pip"
             else ("uv", "pip", "uninstall", "--quiet", "--python", bench.made.python))
    done = run([sys.executable, "-m", *words, *projects], cwd=bench.workshop.folder,
               env=bench.workshop.quiet(PIP_CONFIG_FILE=os.devnull, PYTHONDONTWRITEBYTECODE="1",
                                        UV_CACHE_DIR=str(bench.workshop.cache)))
    assert done.status == 0, done


def plain(tree: Tree) -> dict[str, tuple[object, ...]]:
    """Mode, content and links of all in a tree: another environment has other inodes."""
    return {path: (facts[0], *facts[2:]) for path, facts in tree.items() if "pyvenv.cfg" not in path}


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_hook_whose_package_is_uninstalled_is_told_and_taken_back_whole(tool: str, workshop: Workshop) -> None:
    bench = bench_in(workshop)
    uninstall(bench, tool, "torch")
    without = {path.replace(bench.prefix.name, "env"): facts for path, facts in plain(bench.tree()).items()}

    bench = bench_in(workshop)
    assert bench.say("repair", "--yes").status == 0
    assert "of no use" not in bench.say("undo", "--list").stdout
    assert "of no use" not in bench.say("check").stderr
    uninstall(bench, tool, "torch")
    for options in ((), ("-I",)):
        done = run([bench.made.python, *options, "-c", "import json, importlib.util as u; print(u.find_spec('torch'))"],
                   cwd=bench.workshop.folder, env={**bench.hostile, "PYTHONDONTWRITEBYTECODE": "1"})
        assert (done.status, done.stdout, done.stderr) == (0, "None\n", "")
    line = (f"stackfix: repair 1 is of no use any more, for torch is gone; `stackfix undo --prefix {bench.prefix}` "
            "takes it back\n")
    for command in (("check",), ("check", "--json"), ("repair", "--dry-run")):
        said = bench.say(*command)
        assert said.status == 0, said
        assert line in said.stderr
    assert bench.say("check", "-q").stderr == ""
    assert "\n  of no use any more, for torch is gone\n" in bench.say("undo", "--list").stdout
    assert [each["gone"] for each in bench.say("undo", "--list", "--json").json["repairs"]] == [["torch"]]
    assert bench.say("undo").status == 0
    assert not (bench.prefix / ".stackfix").exists()
    after = {path.replace(bench.prefix.name, "env"): facts for path, facts in plain(bench.tree()).items()}
    assert after.keys() == without.keys()
    assert {path: facts for path, facts in after.items() if path.startswith("lib/")} == {
        path: facts for path, facts in without.items() if path.startswith("lib/")}


def test_a_repair_below_a_later_one_is_taken_back_after_it(workshop: Workshop) -> None:
    bench = bench_in(workshop)
    assert bench.say("repair", "--yes").status == 0
    later = Action(id="relink-1", kind="relink", summary="Another", cures=(), changes=(),
                   steps=(WriteFile(path="lib/later", text=""),))
    apply_plan(Plan(prefix=str(bench.prefix), actions=(later,), left=()), bench.prefix, installer=no_wheels)
    uninstall(bench, "uv", "torch")
    said = bench.say("check")
    assert said.stderr == ("stackfix: repair 1 is of no use any more, for torch is gone; `stackfix undo --prefix "
                           f"{bench.prefix}` takes it back after the later ones\n")
