"""Folders on sys.path, compared with what real interpreters say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackfix.inspect.environment import inspect_installation
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.environment_records import Note, Python, SiteFolder
from stackfix.inspect.environment_sites import MAX_ADDED, find_sites, parse_path_file
from stackfix.inspect.places import Root
from tests.inspect_trees import SITE, link, look, make_venv, plain_venv, write

SAY = "import json, sys; print(json.dumps([p for p in sys.path if p]))"


def said_by(python: Path, environ: Mapping[str, str], cwd: str = "/") -> list[str]:
    """sys.path without the standard library, folders only."""
    done = subprocess.run([str(python), "-c", SAY], capture_output=True, text=True, check=True, timeout=60,
                          env={"PATH": os.defpath, **environ}, cwd=cwd)
    path = [Path(each) for each in json.loads(done.stdout)]
    return [str(each) for each in path
            if each.is_dir() and each.name != "lib-dynload" and not (each / "os.py").exists()]


@pytest.mark.parametrize("system", [False, True], ids=["alone", "system-site-packages"])
@pytest.mark.parametrize("user", ["1", ""], ids=["no-user-site", "user-site"])
def test_the_order_is_that_of_a_real_interpreter(tmp_path: Path, system: bool, user: str) -> None:
    venv = make_venv(tmp_path / "venv", *(["--system-site-packages"] if system else []))
    home = tmp_path / "home"
    (home / ".local" / SITE).mkdir(parents=True)
    for folder in ("first", "second", "source", "relative"):
        (tmp_path / folder).mkdir()
    write(venv, f"{SITE}/b.pth", f"import sys\n# {tmp_path}/none\n\n{tmp_path}/source\n/none/at/all\n")
    write(venv, f"{SITE}/a.pth", "../../../../relative\n")
    environ = {"HOME": str(home), "PYTHONNOUSERSITE": user, "PYTHONPATH": f"{tmp_path}/first:{tmp_path}/second"}
    sites = look(venv, environ).sites
    assert [each.path for each in sites if each.exists] == said_by(venv / "bin" / "python", environ)
    assert [each.kind for each in sites][:4] == ["PYTHONPATH", "PYTHONPATH", "environment", "pth"]
    assert ("user" in {each.kind for each in sites}) == (system and not user)
    assert {each.named_by for each in sites if each.kind == "pth"} == {f"{venv}/{SITE}/a.pth", f"{venv}/{SITE}/b.pth"}


def test_the_base_python_has_its_user_site_first(tmp_path: Path) -> None:
    (tmp_path / ".local" / SITE).mkdir(parents=True)
    environ = {"HOME": str(tmp_path)}
    found = [each.path for each in look(sys.base_prefix, environ).sites]
    assert found == said_by(Path(look(sys.base_prefix).python.executable), environ)    # type: ignore[union-attr,arg-type]
    assert found[0] == str(tmp_path / ".local" / SITE)
    assert {each.kind for each in look(sys.base_prefix, {}).sites} == {"environment"}     # Debian's has three folders


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no system Python")
def test_the_systems_own_python() -> None:
    assert [each.path for each in look("/usr").sites] == said_by(Path("/usr/bin/python3"), {"PYTHONNOUSERSITE": "1"})


def python(**changes: object) -> Python:
    stated: dict[str, object] = {
        "minor": "3.9", "version": None, "implementation": "cpython", "free_threaded": False, "executable": None,
        "executable_reaches": None, "base_prefix": "/usr", "standard_library": None, "platform": None,
        "externally_managed": False} | changes
    return Python(**stated)     # type: ignore[arg-type]


def test_wide_libraries_come_first_where_the_python_has_them(tmp_path: Path) -> None:
    """Amazon Linux: torch goes to lib64, pure wheels go to lib."""
    for lib in ("lib", "lib64"):
        for place in ("usr", "usr/local"):
            (tmp_path / place / lib / "python3.9/site-packages").mkdir(parents=True)
    found = find_sites(Root(str(tmp_path)), {}, "/usr", python(standard_library="/usr/lib64/python3.9"), None)
    assert [each.path for each in found] == [
        f"/usr/{place}/python3.9/site-packages" for place in ("local/lib64", "local/lib", "lib64", "lib")]
    assert {each.base for each in found} == {"/usr", "/usr/local"}


def test_one_real_folder_is_one_site(tmp_path: Path) -> None:
    plain_venv(tmp_path)
    link(tmp_path, "venv/lib64", "lib")
    link(tmp_path, "alias", "/venv/lib/python3.11/site-packages")
    environment = look("/venv", {"PYTHONPATH": "/alias:/gone::x"}, root=Root(str(tmp_path)))
    assert environment.sites == (
        SiteFolder(path="/alias", kind="PYTHONPATH", base="/alias", exists=True),
        SiteFolder(path="/gone", kind="PYTHONPATH", base="/gone", exists=False))
    assert environment.notes == (Note(
        path="PYTHONPATH", reason="an element is the folder in which Python is started: that folder was not searched"),)
    assert look("/venv", {"PYTHONPATH": ""}, root=Root(str(tmp_path))).notes == ()
    relative = look("/venv", {"PYTHONPATH": "x"}, root=Root(str(tmp_path))).notes
    assert [each.reason.partition(":")[0] for each in relative] == ["an element is relative"]


def test_a_relative_element_starts_where_python_is_started(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv")
    here = tmp_path / "here"
    (here / "x").mkdir(parents=True)
    (tmp_path / "y").mkdir()
    environ = {"PYTHONPATH": "x:../y:.:", "PYTHONNOUSERSITE": "1"}
    found = find_environment(Root(), environ, prefix=str(venv))
    environment, _ = inspect_installation(Root(), environ, found, cwd=str(here))
    said = said_by(venv / "bin" / "python", environ, str(here))
    assert said == [f"{here}/x", f"{tmp_path}/y", str(here), f"{venv}/{SITE}"]      # the last but one: a note
    assert [each.path for each in environment.sites] == [each for each in said if each != str(here)]
    assert [each.path for each in environment.notes] == ["PYTHONPATH"]


def test_a_path_file_is_parsed_and_never_run() -> None:
    text = "import os; os.abort()\nimport\tos\n#/x\n  \n/abs/../y  \nrel/x\nimportant\n/nul\0l\n"
    found = parse_path_file(text, "/site/z.pth")
    assert found.executes == ("import os; os.abort()", "import\tos")
    assert found.adds == ("/y", "/site/rel/x", "/site/important")


def test_a_path_file_that_cannot_be_used_is_a_note(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    link(site, "loop.pth", "loop.pth")
    write(site, "many.pth", "x\n" * (MAX_ADDED + 5))
    write(site, "latin.pth", b"/caf\xe9\n")
    write(site, ".hidden.pth", "/hidden\n")
    (site / "folder.pth").mkdir()
    environment = look("/venv", root=Root(str(tmp_path)))
    assert environment.notes == (
        Note(path="/venv/lib/python3.11/site-packages/loop.pth", reason="Too many levels of symbolic links"),
        Note(path="/venv/lib/python3.11/site-packages/many.pth",
             reason=f"adds {MAX_ADDED + 5} folders: only {MAX_ADDED} were read"))
    assert [Path(each.path).name for each in environment.path_files] == ["latin.pth", "many.pth"]
