"""Which Python an environment has, told from files and compared with what the Python itself says."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.inspect.environment_records import Note
from stackfix.inspect.places import Root
from tests.inspect_trees import UV, conda_package, link, look, make_venv, plain_venv, run_tool, write

ASK = ("import json, sys, platform; print(json.dumps([platform.python_version(), sys.prefix, sys.base_prefix,"
       " sys.implementation.name, sys.executable]))")


def says(python: Path) -> list[str]:
    done = subprocess.run([str(python), "-I", "-c", ASK], capture_output=True, text=True, check=True, timeout=60)
    answer: list[str] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("maker", ["venv", "uv"])
def test_a_real_venv(tmp_path: Path, maker: str) -> None:
    prefix = tmp_path / "venv"
    if maker == "uv":
        assert UV is not None
        run_tool(UV, "venv", "--offline", "--no-config", "--python", sys.executable, prefix)
    else:
        make_venv(prefix)
    environment = look(prefix)
    python, venv = environment.python, environment.venv
    version, said_prefix, base, implementation, executable = says(prefix / "bin" / "python")
    assert python is not None
    assert venv is not None
    assert (environment.prefix, python.version, python.implementation) == (said_prefix, version, implementation)
    assert Path(python.base_prefix).resolve() == Path(base).resolve()
    assert python.executable == executable
    assert (venv.made_by or "").startswith("uv " if maker == "uv" else "")
    assert not venv.system_site_packages
    assert not python.externally_managed
    assert environment.notes == ()


def test_the_python_that_runs_this(tmp_path: Path) -> None:
    python = look(sys.base_prefix).python
    assert python is not None
    assert python.version == "{}.{}.{}".format(*sys.version_info[:3])
    assert python.standard_library == sysconfig.get_path("stdlib")
    machine = sysconfig.get_config_var("MULTIARCH").partition("-")[0]
    assert python.platform == {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(machine)


def test_a_venv_whose_base_is_gone(tmp_path: Path) -> None:
    write(tmp_path, "venv/pyvenv.cfg", "home = /opt/python/bin\nversion_info = 3.12.4.final.0\nuv = 0.5.9\n")
    (tmp_path / "venv/lib/python3.12/site-packages").mkdir(parents=True)
    link(tmp_path, "venv/bin/python", "/opt/python/bin/python3.12")
    environment = look("/venv", root=Root(str(tmp_path)))
    python = environment.python
    assert python is not None
    assert (python.version, python.executable, python.executable_reaches) == ("3.12.4", "/venv/bin/python", None)
    assert python.standard_library is None
    assert environment.notes == (Note(path="/venv/pyvenv.cfg",
                                      reason="its base Python is not there: home = /opt/python/bin"),)


def test_conda_states_its_python(tmp_path: Path) -> None:
    conda_package(tmp_path / "env", "python", "3.11.9", {"lib/python3.11/os.py": b""})
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.python is not None
    assert (environment.python.version, environment.python.platform) == ("3.11.9", "linux-64")
    assert environment.venv is None


def test_condas_short_link_is_no_python_of_its_own(tmp_path: Path) -> None:
    conda_package(tmp_path / "env", "python", "3.11.9", {"lib/python3.11/os.py": b""})
    (tmp_path / "env/lib/python3.11/site-packages").mkdir()
    link(tmp_path, "env/lib/python3.1", "python3.11")
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.python is not None
    assert environment.python.minor == "3.11"
    assert [each.path for each in environment.sites] == ["/env/lib/python3.11/site-packages"]


def test_what_an_older_python_of_the_prefix_left_behind_is_not_it(tmp_path: Path) -> None:
    conda_package(tmp_path / "env", "python", "3.12.4", {"lib/python3.12/os.py": b""})
    for minor in ("3.9", "3.10", "3.12"):
        (tmp_path / f"env/lib/python{minor}/site-packages").mkdir(parents=True)
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.python is not None
    assert (environment.python.minor, environment.python.version) == ("3.12", "3.12.4")
    assert [each.path for each in environment.sites] == ["/env/lib/python3.12/site-packages"]
    assert environment.notes == ()


def test_a_conda_prefix_without_python(tmp_path: Path) -> None:
    conda_package(tmp_path / "env", "cuda-cudart", "12.4.127", {"lib/libcudart.so.12": b"x"})
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.python is None
    assert [each.path for each in environment.library_folders] == ["/env/lib"]


def test_a_venv_inside_a_conda_prefix_has_both(tmp_path: Path) -> None:
    plain_venv(tmp_path, "env")
    conda_package(tmp_path / "env", "cuda-cudart", "12.4.127", {})
    environment = look("/env", root=Root(str(tmp_path)))
    assert environment.venv is not None
    assert environment.conda is not None


@pytest.mark.parametrize(("folders", "link_to", "expected"), [
    (("python3.10", "python3.12"), "python3.12", "3.12"),
    (("python3.10", "python3.12"), "python3.10", "3.10"),
    (("python3.13t",), None, "3.13"),
    (("pypy3.10",), None, "3.10"),
])
def test_the_folder_of_the_python_that_bin_names(
        tmp_path: Path, folders: tuple[str, ...], link_to: str | None, expected: str) -> None:
    for folder in folders:
        write(tmp_path, f"opt/py/lib/{folder}/os.py")
    if link_to:
        write(tmp_path, f"opt/py/bin/{link_to}")
        link(tmp_path, "opt/py/bin/python3", link_to)
    python = look("/opt/py", root=Root(str(tmp_path))).python
    assert python is not None
    assert (python.minor, python.version) == (expected, None)
    assert python.free_threaded == folders[0].endswith("t")
    assert python.implementation == ("pypy" if folders[0].startswith("pypy") else "cpython")


def test_two_pythons_and_no_word_is_refused(tmp_path: Path) -> None:
    for folder in ("python3.10", "python3.12"):
        write(tmp_path, f"opt/py/lib/{folder}/os.py")
    with pytest.raises(BadInput, match="several Pythons"):
        look("/opt/py", root=Root(str(tmp_path)))


def test_the_patch_level_comes_from_the_headers(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/python3.11/os.py")
    write(tmp_path, "usr/lib/python3.11/EXTERNALLY-MANAGED")
    write(tmp_path, "usr/lib/python3.11/_sysconfigdata__linux_aarch64-linux-gnu.py", "raise SystemExit")
    write(tmp_path, "usr/include/python3.11/patchlevel.h", '#define PY_VERSION      \t"3.11.2+"\n')
    python = look("/usr", root=Root(str(tmp_path))).python
    assert python is not None
    assert (python.version, python.platform, python.externally_managed) == ("3.11.2", "linux-aarch64", True)


def test_a_venv_of_a_managed_python_is_not_managed(tmp_path: Path) -> None:
    plain_venv(tmp_path)
    write(tmp_path, "usr/lib/python3.11/EXTERNALLY-MANAGED")
    python = look("/venv", root=Root(str(tmp_path))).python
    assert python is not None
    assert python.standard_library == "/usr/lib/python3.11"
    assert not python.externally_managed


def test_a_venv_without_any_packages_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "venv/pyvenv.cfg", "home = /usr/bin\n")
    with pytest.raises(BadInput, match="which Python it is for cannot be told"):
        look("/venv", root=Root(str(tmp_path)))
