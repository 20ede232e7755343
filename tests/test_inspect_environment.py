"""A whole environment: distributions, copies, both managers in one prefix, and a hostile one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.errors import Unreachable
from stackfix.inspect.environment import inspect_environment
from stackfix.inspect.environment_records import Copies, Environment
from stackfix.inspect.places import Root
from stackfix.inspect.plain import from_json, to_json
from tests.inspect_trees import (
    SITE,
    conda_package,
    dist_info,
    link,
    look,
    make_venv,
    make_wheel,
    pip_install,
    plain_venv,
    uv_install,
    write,
)

SP = "/venv/lib/python3.11/site-packages"
METADATA = ("import importlib.metadata as m, json; print(json.dumps(sorted("
            "[d.metadata['Name'], d.version, d.requires or []] for d in m.distributions())))")


def test_distributions_are_those_that_python_sees(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv")
    pip_install(venv, make_wheel(tmp_path, "Torch_Like", "2.3.1+cu121", {"t.py": b""},
                                 requires=("numpy>=1", "x; extra == 'y'")))
    uv_install(venv, make_wheel(tmp_path, "b.c", "1.0rc1", {"b.py": b""}))
    done = subprocess.run([str(venv / "bin" / "python"), "-I", "-c", METADATA], capture_output=True, text=True,
                          check=True, timeout=60)
    environment = look(venv)
    found = [[each.spelling, each.version, list(each.requires)] for each in environment.distributions]
    assert found == json.loads(done.stdout)
    assert [(each.name, each.installer, each.manager) for each in environment.distributions] == [
        ("torch-like", "pip", "pip"), ("b-c", "uv", "pip")]


def test_nothing_of_the_environment_is_imported_or_written(tmp_path: Path) -> None:
    """Whatever it holds would end this process, and the tree is the same afterwards."""
    site = plain_venv(tmp_path)
    for name in ("sitecustomize.py", "json.py", "demo/__init__.py", "__editable___demo_1_finder.py"):
        write(site, name, "import os\nos.abort()\n")
    write(site, "evil.pth", "import os; os.abort()\n")
    write(tmp_path, "venv/bin/python", "#!/bin/sh\nkill -9 $PPID\n").chmod(0o755)
    dist_info(site, "demo", "1", {"demo/_c.so": b"x"})

    def state() -> list[tuple[str, int, int, bytes]]:
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_ino,
                       path.read_bytes() if path.is_file() else b"") for path in tmp_path.rglob("*"))

    before = state()
    code = ("import sys, os; from stackfix.inspect.environment import inspect_environment as look;"
            "from stackfix.inspect.places import Root; from stackfix.inspect.machine import inspect_machine;"
            "root = Root(sys.argv[1]);"
            "print(look(root, {}, prefix='/venv', deep=True).prefix, inspect_machine(root, {}).live)")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True,
                          timeout=60)
    assert done.stdout == "/venv False\n"
    assert state() == before


def test_pip_over_conda(tmp_path: Path) -> None:
    """conda still lists its package; the files are pip's."""
    prefix = tmp_path / "env"
    site = prefix / "lib/python3.11/site-packages"
    conda_package(prefix, "python", "3.11.7", {"lib/python3.11/os.py": b""})
    conda_package(prefix, "pytorch", "2.0.0", {
        "lib/python3.11/site-packages/torch/__init__.py": b"conda's",
        "lib/python3.11/site-packages/torch-2.0.0.dist-info/METADATA": b"Name: torch\nVersion: 2.0.0\n"})
    (site / "torch-2.0.0.dist-info/METADATA").unlink()
    (site / "torch-2.0.0.dist-info").rmdir()
    dist_info(site, "torch", "2.1.0", {"torch/__init__.py": b"pip's own"})
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.copies == (Copies(
        project="torch", distributions=("/env/lib/python3.11/site-packages/torch-2.1.0.dist-info",),
        conda_packages=("pytorch",)),)
    shared = environment.shared_files[0]
    claims = [(each.owner.manager, each.owner.version) for each in shared.claims]
    assert claims == [("conda", "2.0.0"), ("pip", "2.1.0")]
    assert not shared.same
    kinds = {(each.kind, each.owner.manager) for each in environment.file_faults}
    assert kinds == {("size", "conda"), ("missing", "conda")}


def test_pip_over_conda_in_the_very_same_folder(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    conda_package(prefix, "python", "3.11.7", {"lib/python3.11/os.py": b""})
    info = "lib/python3.11/site-packages/torch-2.0.0.dist-info"
    conda_package(prefix, "pytorch", "2.0.0", {
        f"{info}/METADATA": b"Name: torch\nVersion: 2.0.0\n", f"{info}/RECORD": b"short"})
    assert [each.manager for each in look("/env", root=Root(str(tmp_path))).distributions] == ["conda"]
    write(prefix, f"{info}/RECORD", "torch/__init__.py,,3\n")
    environment = look("/env", root=Root(str(tmp_path)))
    assert [(each.manager, each.conda_package) for each in environment.distributions] == [("pip", None)]
    assert [each.project for each in environment.copies] == ["torch"]


def test_the_user_site_shadows_and_two_versions_lie_beside_each_other(tmp_path: Path) -> None:
    write(tmp_path, "opt/py/lib/python3.11/os.py")
    own = tmp_path / "opt/py/lib/python3.11/site-packages"
    user = tmp_path / "home/me/.local/lib/python3.11/site-packages"
    dist_info(own, "torch", "2.3.1")
    dist_info(own, "numpy", "1.26")
    dist_info(own, "numpy", "2.0")
    dist_info(user, "torch", "2.0.1")
    environment = look("/opt/py", {"HOME": "/home/me"}, root=Root(str(tmp_path)))
    copies = [(each.project, [path.rpartition("/")[2] for path in each.distributions]) for each in environment.copies]
    assert copies == [
        ("numpy", ["numpy-1.26.dist-info", "numpy-2.0.dist-info"]),
        ("torch", ["torch-2.0.1.dist-info", "torch-2.3.1.dist-info"])]
    assert look("/opt/py", {"HOME": "/home/me", "PYTHONNOUSERSITE": "1"}, root=Root(str(tmp_path))).copies[1:] == ()


def test_debians_pairs_are_no_copies(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/python3.11/os.py")
    site = tmp_path / "usr/lib/python3/dist-packages"
    dist_info(site, "cryptography", "38.0.4", installer="")
    write(site, "cryptography.egg-info/PKG-INFO", "Name: cryptography\nVersion: 38.0.4\n")
    environment = look("/usr", root=Root(str(tmp_path)))
    assert environment.copies == ()
    assert {each.manager for each in environment.distributions} == {"system"}


def test_packages_that_cannot_be_listed_are_no_empty_environment(tmp_path: Path) -> None:
    """Root may read everything here, so the refusal is the reader's own."""
    plain_venv(tmp_path)

    class Closed(Root):
        def entries(self, folder: str) -> tuple[()]:
            if folder == SP:
                raise PermissionError(13, "Permission denied", folder)
            return super().entries(folder)  # type: ignore[return-value]

    with pytest.raises(Unreachable, match="Permission denied"):
        look("/venv", root=Closed(str(tmp_path)))


def test_a_hostile_tree_ends_in_notes(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    good = dist_info(site, "good", "1", {"good.py": b"1"})
    for name in ("METADATA", "RECORD", "WHEEL", "INSTALLER", "direct_url.json"):
        folder = dist_info(site, f"loop_{name[:4].lower()}", "1")
        (folder / name).unlink(missing_ok=True)
        link(folder, name, name)
        folder = dist_info(site, f"pipe_{name[:4].lower()}", "1")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    (tmp_path / os.fsdecode(b"venv/lib/python3.11/site-packages/bad-\xff.dist-info")).mkdir()
    link(site, "loop-1.dist-info", "loop-1.dist-info")
    link(site, "zero-1.dist-info", "/dev/zero")
    environment = look("/venv", root=Root(str(tmp_path)), deep=True)
    names = {each.name for each in environment.distributions}
    assert {"good", "loop-reco", "pipe-whee", "loop-dire"} <= names
    assert {"loop-meta", "pipe-meta"} & names == set()
    assert [each for each in environment.notes if each.path.startswith(str(good))] == []
    assert [each.path.removeprefix(f"{SP}/") for each in environment.notes] == [
        os.fsdecode(b"bad-\xff.dist-info/METADATA"), "loop-1.dist-info/METADATA",
        "loop_dire-1.dist-info/direct_url.json", "loop_meta-1.dist-info/METADATA",
        "pipe_dire-1.dist-info/direct_url.json", "pipe_meta-1.dist-info/METADATA", "zero-1.dist-info/METADATA",
        "loop_reco-1.dist-info/RECORD", "pipe_reco-1.dist-info/RECORD"]
    document = json.loads(json.dumps(to_json(environment)))
    assert from_json(document, Environment) == environment


def test_the_environment_of_these_tests(tmp_path: Path) -> None:
    """Fast and clean: what pip reads is what we read, and the record survives JSON."""
    environment = inspect_environment(Root(), {}, running=sys.prefix)
    assert environment.found_via == "running interpreter"
    assert "pytest" in {each.name for each in environment.distributions}
    assert {each.kind for each in environment.file_faults} <= {"size"}      # a machine may append to a certificate list
    assert from_json(json.loads(json.dumps(to_json(environment))), Environment) == environment
    assert environment.sites[0].path == str(Path(sys.prefix) / SITE)
