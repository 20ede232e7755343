"""Editable installations, made by pip and by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.inspect.environment_records import Editable
from stackfix.inspect.places import Root
from tests.inspect_trees import SITE, dist_info, look, make_venv, pip_install, plain_venv, write

BACKEND = """
import zipfile
def get_requires_for_build_editable(config_settings=None):
    return []
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as archive:
        archive.writestr("_editable_impl_demo.pth", %r)
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n")
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "_editable_impl_demo.pth,,\\ndemo-1.0.dist-info/RECORD,,\\n")
    return name
"""
SP = "/venv/lib/python3.11/site-packages"


def test_what_pip_installs_editable(tmp_path: Path) -> None:
    source = tmp_path / "a source"
    write(source, "pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
          '[project]\nname = "demo"\nversion = "1.0"\n')
    write(source, "backend.py", BACKEND % str(source / "src"))
    write(source, "src/demo/__init__.py")
    write(source, "src/demo/_ext.abi3.so", "x")
    venv = make_venv(tmp_path / "venv")
    pip_install(venv, "--no-build-isolation", "--editable", source)
    environment = look(venv)
    assert environment.editables == (
        Editable(project="demo", how="path", file=f"{venv}/{SITE}/_editable_impl_demo.pth",
                 targets=(str(source / "src"),)),
        Editable(project="demo", how="direct-url", file=f"{venv}/{SITE}/demo-1.0.dist-info/direct_url.json",
                 targets=(str(source),)))
    assert [(each.module, each.owners) for each in environment.shared_objects] == [("demo._ext", ())]
    assert environment.file_faults == ()


@pytest.mark.parametrize(("name", "content", "expected"), [
    ("__editable__.demo-1.0.pth", "/src\n", ("demo", "path", ("/src",))),
    ("_demo_x-editable.pth", "import _demo_x_editable_loader\n", ("demo-x", "finder", ())),
    ("_demo_editable.pth", "import _demo_editable\n", ("demo", "finder", ())),
    ("easy-install.pth", "/src/one\n/src/two\n./x-1-py3.11.egg\n", (None, "path", ("/src/one", "/src/two"))),
    ("demo.egg-link", "/src/demo\n../\n", ("demo", "egg-link", ("/src/demo",))),
    ("demo.egg-link", "", ("demo", "egg-link", ())),
    ("__editable___demo_x_1_0_finder.py",
     "import x\nMAPPING: dict[str, str] = {'demo': '/src/demo', 'e': '/src/e.py'}\n",
     ("demo-x", "finder", ("/src/demo", "/src/e.py"))),
    ("__editable___demo_1_0_finder.py", "MAPPING = {'demo': '/src/demo'}\nraise SystemExit\n",
     ("demo", "finder", ("/src/demo",))),
    ("__editable___demo_1_0_finder.py", "MAPPING = {}\n", ("demo", "finder", ())),
])
def test_the_forms_of_build_tools(
        tmp_path: Path, name: str, content: str, expected: tuple[str | None, str, tuple[str, ...]]) -> None:
    write(plain_venv(tmp_path), name, content)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [(each.project, each.how, each.targets) for each in environment.editables] == [expected]
    assert environment.notes == ()


@pytest.mark.parametrize("content", [
    "MAPPING = {'a': f()}", "MAPPING = (", "(" * 5000, "MAPPING = 3", "\0", "MAPPING = " + "-" * 9000])
def test_a_finder_that_cannot_be_read_is_a_note(tmp_path: Path, content: str) -> None:
    write(plain_venv(tmp_path), "__editable___demo_1_0_finder.py", content)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [each.targets for each in environment.editables] == [()]
    assert [each.path for each in environment.notes] == [f"{SP}/__editable___demo_1_0_finder.py"]


def test_a_plain_path_file_and_a_remote_origin_are_no_editables(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    write(site, "mine.pth", "/src\n")
    write(site, "distutils-precedence.pth", "import os\n")
    dist_info(site, "demo", "1", extra={"direct_url.json": json.dumps(
        {"url": "git+ssh://host.test/x", "dir_info": {"editable": False}})})
    assert look("/venv", root=Root(str(tmp_path))).editables == ()


@pytest.mark.parametrize("egg_info", ["/src/demo.egg-info", "/src/lib/demo.egg-info"])
def test_the_egg_info_that_a_build_leaves_in_the_source_is_no_second_copy(tmp_path: Path, egg_info: str) -> None:
    """setuptools writes it at each editable build, in the folder to which the .pth leads."""
    site = plain_venv(tmp_path)
    write(site, "__editable__.demo-1.0.pth", f"{egg_info.rpartition('/')[0]}\n")
    dist_info(site, "demo", "1.0", extra={"direct_url.json": json.dumps(
        {"url": "file:///src", "dir_info": {"editable": True}})})
    write(tmp_path, f"{egg_info[1:]}/PKG-INFO", "Metadata-Version: 2.1\nName: demo\nVersion: 0.9\n")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [each.kind for each in environment.distributions] == ["dist-info", "egg-info"]
    assert environment.copies == ()


def test_a_copy_in_a_folder_that_another_project_leads_to_is_one(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    write(site, "__editable__.other-1.0.pth", "/src\n")
    dist_info(site, "demo", "1.0")
    write(tmp_path, "src/demo.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: demo\nVersion: 0.9\n")
    assert [each.project for each in look("/venv", root=Root(str(tmp_path))).copies] == ["demo"]
