"""A venv that was copied or moved: its scripts activate the old place, whatever is written into them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.plan.activation import activation_steps
from stackfix.plan.activation_home import finds_itself, other_home
from stackfix.plan.effect_records import Variable
from tests.hook_world import write
from tests.shell_world import SHELLS, Shell, is_here, run
from tests.test_plan_activation_venv import MAKERS, NAME, PROMPT, make, planned, scripts_of, source

READ = ("activate", "activate.fish", "activate.csh")


def made(maker: str, prefix: Path) -> Path:
    prefix.parent.mkdir(exist_ok=True)
    make(maker, prefix)
    return prefix


def without_strict(name: str) -> Shell:
    """The makers' own scripts do not all bear `set -eu`."""
    return replace(SHELLS[name], strict="")


@pytest.mark.parametrize("folder", ["plain", "two  words", "it's"])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_script_is_of_the_place_where_it_was_made(maker: str, folder: str, tmp_path: Path) -> None:
    prefix = made(maker, tmp_path / folder)
    for script in scripts_of(prefix):
        if script.path.rpartition("/")[2] in READ:
            assert other_home(script.text, lambda place: place == str(prefix)) is None, script.path
            assert not finds_itself(script.text), script.path
            if folder != "it's" or maker in {"uv", "virtualenv"}:     # some releases of venv quote it for no shell
                assert other_home(script.text, lambda place: False) == str(prefix), script.path


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("maker", ["uv", MAKERS[0]])
def test_a_copy_is_what_its_scripts_say_and_gets_no_block(maker: str, name: str, tmp_path: Path) -> None:
    """Each shell is asked which environment the copied script activates."""
    if not is_here(name):
        pytest.skip(f"no {name} here")
    prefix, copy = made(maker, tmp_path / "made"), tmp_path / "copy"
    shutil.copytree(prefix, copy, symlinks=True)
    lines = [*PROMPT.get(name, []), source(SHELLS[name], copy / "bin"), "?"]
    (found,) = run(without_strict(name), lines, {}, tmp_path)
    assert found["VIRTUAL_ENV"] == str(prefix)
    refused = planned(copy, scripts_of(copy))
    assert refused.steps == ()
    assert dict(refused.skipped)["bin/activate"].startswith(f"it activates {prefix}, ")


@pytest.mark.parametrize("name", ["bash", "zsh", "ksh", "fish"])
def test_a_relocatable_one_works_where_it_lies(name: str, tmp_path: Path) -> None:
    if not is_here(name):
        pytest.skip(f"no {name} here")
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not os.access(uv, os.X_OK):
        pytest.skip("no uv here")
    prefix, moved = tmp_path / "made", tmp_path / "moved"
    subprocess.run([uv, "venv", "-q", "--offline", "--relocatable", str(prefix)], check=True, capture_output=True)
    prefix.rename(moved)
    scripts = scripts_of(moved)
    assert all(finds_itself(each.text) for each in scripts if each.path in {"bin/activate", "bin/activate.fish"})
    write(moved, activation_steps(str(moved), "venv", [Variable(name=NAME, first=(f"{moved}/jit",))], scripts).steps)
    inside, after = run(without_strict(name), [source(SHELLS[name], moved / "bin"), "?", "deactivate", "?"],
                        {NAME: "/x"}, tmp_path)
    assert (inside["VIRTUAL_ENV"], inside[NAME], after[NAME]) == (str(moved), f"{moved}/jit:/x", "/x")
