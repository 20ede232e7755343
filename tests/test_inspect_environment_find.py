"""Which environment is meant, and the refusals where none is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.places import Root
from tests.inspect_trees import conda_package, link, make_venv, plain_venv, write


def found(root: Root, environ: Mapping[str, str] | None = None, **asked: str) -> tuple[str, str]:
    answer = find_environment(root, environ or {}, **asked)
    return answer.prefix, answer.found_via


def test_the_order_of_the_steps(tmp_path: Path) -> None:
    for name in ("asked", "active"):
        plain_venv(tmp_path, name)
    conda_package(tmp_path / "conda", "python", "3.11.7", {})
    root, both = Root(str(tmp_path)), {"VIRTUAL_ENV": "/active", "CONDA_PREFIX": "/conda"}
    assert found(root, both, prefix="/asked/") == ("/asked", "--prefix")
    assert found(root, both) == ("/active", "VIRTUAL_ENV")
    assert found(root, {"CONDA_PREFIX": "/conda"}) == ("/conda", "CONDA_PREFIX")
    assert found(root, {"VIRTUAL_ENV": "", "CONDA_PREFIX": "/conda"}) == ("/conda", "CONDA_PREFIX")
    assert found(Root(), {}, running=sys.prefix) == (sys.prefix, "running interpreter")


@pytest.mark.parametrize(("prefix", "reason", "hint"), [
    ("/none", "no such folder", "--prefix DIR"),
    ("/empty", "no environment", "--prefix DIR"),
    ("/empty/python", "is a file", "--python /empty/python"),
    ("/loop", "in a circle", "--prefix DIR"),
    ("/dangling", "is a link to /gone, where nothing is", "--prefix DIR"),
    ("/pipe", "is neither a folder nor a file", "--prefix DIR"),
    ("relative", "no absolute path", "from the root"),
])
def test_a_prefix_that_is_none_is_refused(tmp_path: Path, prefix: str, reason: str, hint: str) -> None:
    write(tmp_path, "empty/python")
    link(tmp_path, "loop", "loop")
    link(tmp_path, "dangling", "/gone")
    os.mkfifo(tmp_path / "pipe")
    for asked in ({"prefix": prefix}, {}):
        with pytest.raises(BadInput, match=reason) as caught:
            found(Root(str(tmp_path)), {"VIRTUAL_ENV": prefix}, **asked)
        assert prefix in caught.value.what()
        assert hint in str(caught.value.next_step())


def test_an_active_environment_that_is_gone_is_not_passed_over(tmp_path: Path) -> None:
    conda_package(tmp_path / "conda", "python", "3.11.7", {})
    with pytest.raises(BadInput, match="VIRTUAL_ENV=/gone"):
        found(Root(str(tmp_path)), {"VIRTUAL_ENV": "/gone", "CONDA_PREFIX": "/conda"})


def test_a_closed_folder_is_no_missing_one(tmp_path: Path) -> None:
    class Closed(Root):
        def resolve(self, path: str) -> str:
            raise PermissionError(13, "Permission denied", path)

    with pytest.raises(Unreachable, match="Permission denied"):
        found(Closed(str(tmp_path)), {}, prefix="/asked")


def test_a_venv_by_its_python(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "a venv")
    for name in ("python", "python3"):
        answer = find_environment(Root(), {}, python=str(venv / "bin" / name))
        assert (answer.prefix, answer.executable) == (str(venv), str(venv / "bin" / name))
    link(tmp_path, "py", f"{venv}/bin/python")
    # As CPython: beside a link without pyvenv.cfg the Python behind all links counts
    assert find_environment(Root(), {}, python=str(tmp_path / "py")).prefix == sys.base_prefix


def program(tree: Path, path: str, content: str = "") -> None:
    write(tree, path, content).chmod(0o755)


def test_a_python_by_its_name_on_path(tmp_path: Path) -> None:
    plain_venv(tmp_path, "venv")
    program(tmp_path, "venv/bin/python3.11")
    write(tmp_path, "text/python3.11")          # a shell passes over what may not be executed
    root, environ = Root(str(tmp_path)), {"PATH": "relative:/none:/text:/venv/bin"}
    assert found(root, environ, python="python3.11") == ("/venv", "--python")
    with pytest.raises(BadInput, match="no such program on PATH"):
        found(root, environ, python="python3.12")


@pytest.mark.parametrize(("python", "reason"), [
    ("/none", "no such file"), ("/shims", "is a folder"), ("/shims/python", "is a script"),
    ("/opt/bin/python", "no environment around it"), ("/opt/bin/pipe", "is no file"),
    ("/opt/bin/loop", "in a circle"), ("/opt/bin/python3", "is a link to /opt/bin/python3.9, where nothing is"),
    ("/usr/bin/ls", "/usr/bin/ls: is no Python interpreter"),
    ("/usr/bin/python3-config", "is no Python interpreter"), ("/venv/bin/pip", "is no Python interpreter"),
])
def test_a_python_that_is_none_is_refused(tmp_path: Path, python: str, reason: str) -> None:
    program(tmp_path, "shims/python", "#!/bin/sh\nexec pyenv\n")
    program(tmp_path, "opt/bin/python", "ELF")
    os.mkfifo(tmp_path / "opt/bin/pipe")
    link(tmp_path, "opt/bin/loop", "loop")
    link(tmp_path, "opt/bin/python3", "python3.9")
    write(tmp_path, "usr/lib/python3.11/os.py")
    for name in ("usr/bin/ls", "usr/bin/python3-config", "venv/bin/pip"):
        program(tmp_path, name)
    plain_venv(tmp_path, "venv")
    with pytest.raises(BadInput, match=reason):
        found(Root(str(tmp_path)), {}, python=python)


def test_a_shim_on_path_is_told_by_its_own_place(tmp_path: Path) -> None:
    program(tmp_path, "pyenv/shims/python3.11", "#!/bin/sh\nexec pyenv\n")
    with pytest.raises(BadInput, match=r"--python python3\.11, on PATH /pyenv/shims/python3\.11") as caught:
        found(Root(str(tmp_path)), {"PATH": "/pyenv/shims"}, python="python3.11")
    assert "pyenv which python3.11" in str(caught.value.next_step())


@pytest.mark.parametrize("name", ["python3.13t", "pypy3.10", "python3-dbg", "platform-python3.6", "python3.11d"])
def test_the_names_that_pythons_have(tmp_path: Path, name: str) -> None:
    write(tmp_path, "usr/lib/python3.11/os.py")
    program(tmp_path, f"usr/bin/{name}")
    link(tmp_path, "usr/bin/py", name)
    for called in (name, "py"):
        assert found(Root(str(tmp_path)), python=f"/usr/bin/{called}") == ("/usr", "--python")


def test_a_venv_whose_base_is_gone_is_found_by_its_python(tmp_path: Path) -> None:
    plain_venv(tmp_path, "venv")
    link(tmp_path, "venv/bin/python", "/gone/bin/python3.11")
    assert found(Root(str(tmp_path)), python="/venv/bin/python") == ("/venv", "--python")


def test_two_names_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="twice"):
        found(Root(str(tmp_path)), {}, prefix="/a", python="/b")


def test_a_tree_answers_by_its_path_then_by_its_usual_places(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    with pytest.raises(BadInput, match="usual places have none"):
        found(root, {}, running=sys.prefix)
    plain_venv(tmp_path, "opt/venv")
    # its base Python in /usr is an environment too
    with pytest.raises(BadInput, match="/opt/venv, /usr"):
        found(root)
    program(tmp_path, "opt/venv/bin/python")
    assert found(root, {"PATH": "/opt/venv/bin:/usr/bin"}) == ("/opt/venv", "PATH")
