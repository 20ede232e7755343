"""Activation scripts sourced by the shell of this machine, and what is said of those that fail."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.cli.repair_activate import activate, is_kept
from stackfix.inspect.environment import inspect_environment
from stackfix.inspect.environment_records import CondaPrefix, Environment
from stackfix.inspect.places import Root
from tests.inspect_trees import make_venv

BEFORE = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/bad"}
WANTED = {"LD_LIBRARY_PATH": "/good:/bad"}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return make_venv(tmp_path / "an env")


def environment(prefix: Path) -> Environment:
    return inspect_environment(Root(), {}, prefix=str(prefix))


def add(prefix: Path, *lines: str) -> None:
    with (prefix / "bin" / "activate").open("a") as script:
        script.write("\n".join((*lines, "")))


def test_the_variables_are_those_that_the_script_leaves(prefix: Path) -> None:
    add(prefix, "echo talk", 'export LD_LIBRARY_PATH="/good:$LD_LIBRARY_PATH"')
    found = activate(environment(prefix), BEFORE, WANTED, timeout=30)
    assert (found.step.verdict, found.step.detail) == ("works", "LD_LIBRARY_PATH")
    assert found.environ["LD_LIBRARY_PATH"] == "/good:/bad"
    assert found.environ["VIRTUAL_ENV"] == str(prefix)
    assert os.environ.get("VIRTUAL_ENV") != str(prefix)


def test_a_variable_that_is_to_be_unset(prefix: Path) -> None:
    assert activate(environment(prefix), BEFORE, {"LD_LIBRARY_PATH": None}, timeout=30).step.verdict == "fails"
    add(prefix, "unset LD_LIBRARY_PATH")
    assert activate(environment(prefix), BEFORE, {"LD_LIBRARY_PATH": None}, timeout=30).step.verdict == "works"


@pytest.mark.parametrize(("line", "told"), [
    ("", "LD_LIBRARY_PATH is '/bad', not '/good:/bad'"),
    ("exit 7", "/bin/sh ended with status 7"),
    ("echo why >&2; exit 1", "why"),
    ("sleep 60", "timed out"),
])
def test_a_script_that_does_not_do_it_fails(line: str, told: str, prefix: Path) -> None:
    add(prefix, line)
    found = activate(environment(prefix), BEFORE, WANTED, timeout=3)
    assert found.step.verdict == "fails"
    assert told in found.step.detail


@pytest.mark.parametrize(("before", "wanted", "found", "kept"), [
    ("/bad", "/good:/bad", "/good:/theirs:/bad", True),         # another package's folder, behind ours
    ("/bad", "/good:/bad", "/good:/bad:/theirs", True),
    ("/bad", "/good:/bad", "/theirs:/good:/bad", False),        # before ours it may shadow again
    ("/bad", "/good:/bad", "/good", False),                     # somebody's own element is lost
    ("/bad", None, "/theirs", True),
    ("/bad", None, "/theirs:/bad", False),
    ("/a:/bad:/b", "/a:/b", "/a:/x:/b", True),
    ("/a:/bad:/b", "/a:/b", "/b:/a", False),
    ("/a:/b", "/b:/a", "/b:/x:/a", True),                       # what was there already, put first
    ("/a:/b", "/b:/a", "/a:/b", False),
    (None, "/good", None, False), (None, "/good", "/good", True), ("", None, "", True),
])
def test_what_other_scripts_add_is_theirs(before: str | None, wanted: str | None, found: str | None,
                                          kept: bool) -> None:
    assert is_kept("LD_LIBRARY_PATH", before, wanted, found) == kept


def test_a_prefix_that_is_named_by_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real" / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    wanted, found = f"{tmp_path}/link/lib:/bad", f"{tmp_path}/real/lib:/bad"
    assert is_kept("LD_LIBRARY_PATH", "/bad", wanted, found)
    assert not is_kept("LD_LIBRARY_PATH", "/bad", wanted, found.replace("real", "other"))


def test_a_relocatable_venv_is_sourced_by_a_shell_that_tells_where(prefix: Path) -> None:
    script = prefix / "bin" / "activate"
    script.write_text('VIRTUAL_ENV="$(dirname -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")")"\n'
                      'export LD_LIBRARY_PATH="$VIRTUAL_ENV/own:$LD_LIBRARY_PATH"\n')
    found = activate(environment(prefix), BEFORE, {"LD_LIBRARY_PATH": f"{prefix}/own:/bad"}, timeout=30)
    assert found.step.verdict == "works", found.step


def test_scripts_of_conda_are_sourced_by_name(prefix: Path) -> None:
    folder = prefix / "etc" / "conda" / "activate.d"
    folder.mkdir(parents=True)
    (folder / "zz.sh").write_text('export LD_LIBRARY_PATH="$CONDA_PREFIX/lib:$LD_LIBRARY_PATH"\n')
    (folder / "a.sh").write_text("export LD_LIBRARY_PATH=/first\n")
    (folder / "a.fish").write_text("exit 1\n")
    conda = CondaPrefix(history=None, base=False, packages=(), variables=(("OF_CONDA", "1"),))
    wanted = {"LD_LIBRARY_PATH": f"{prefix}/lib:/first"}
    found = activate(replace(environment(prefix), venv=None, conda=conda), BEFORE, wanted, timeout=30)
    assert (found.step.verdict, found.environ["OF_CONDA"]) == ("works", "1"), found.step
