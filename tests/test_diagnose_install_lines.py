"""Lines that change what is installed: of the environment that was judged, whatever shell they are pasted into."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from stackfix.diagnose.install_lines import export_line, install_line, reinstall, uninstall, update_line
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner
from tests.diagnose_world import World

JIT = "nvidia-nvjitlink-cu12"


def owner(view: View, name: str = JIT) -> Owner:
    found = view.distributions[name]
    return Owner(manager=found.manager, name=found.name, version=found.version)


def lines(view: View) -> list[str]:
    mine = owner(view)
    return [install_line(view, mine, f"{JIT}>=12.4,<13"), update_line(view, mine), reinstall(view, mine),
            uninstall(view, mine)]


def test_pip_of_the_environment_itself(tmp_path: Path) -> None:
    assert lines(World(tmp_path).wheel(JIT, "12.4.127").view()) == [
        f"/venv/bin/python -m pip install --no-deps '{JIT}>=12.4,<13'",
        f"/venv/bin/python -m pip install --upgrade --no-deps {JIT}",
        f"/venv/bin/python -m pip install --force-reinstall --no-deps {JIT}==12.4.127",
        f"/venv/bin/python -m pip uninstall -y {JIT}"]


def test_what_uv_installed(tmp_path: Path) -> None:
    assert lines(World(tmp_path).wheel(JIT, "12.4.127", installer="uv").view()) == [
        f"uv pip install --python /venv/bin/python --no-deps '{JIT}>=12.4,<13'",
        f"uv pip install --python /venv/bin/python --upgrade --no-deps {JIT}",
        f"uv pip install --python /venv/bin/python --reinstall --no-deps {JIT}==12.4.127",
        f"uv pip uninstall --python /venv/bin/python {JIT}"]


@pytest.mark.parametrize("installer", ["pip", "", "poetry"])
def test_an_environment_without_pip(tmp_path: Path, installer: str) -> None:
    """`python -m pip` would say that there is no module of that name."""
    world = World(tmp_path).wheel(JIT, "12.4.127", installer=installer)
    for each in world.host(world.site).glob("pip-*/*"):
        each.unlink()
    for each in world.host(world.site).glob("pip-*"):
        each.rmdir()
    assert {each.split(" --python")[0] for each in lines(world.view())} == {"uv pip install", "uv pip uninstall"}


def test_what_conda_installed(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True).conda("libnvjitlink", "12.4.127", {})
    view, mine = world.view(), Owner(manager="conda", name="libnvjitlink", version="12.4.127")
    assert [install_line(view, mine, "libnvjitlink>=12.4,<13"), update_line(view, mine), reinstall(view, mine),
            uninstall(view, mine)] == [
        f"conda install --prefix {world.prefix} 'libnvjitlink>=12.4,<13'",
        f"conda update --prefix {world.prefix} libnvjitlink",
        f"conda install --prefix {world.prefix} --force-reinstall libnvjitlink=12.4.127",
        f"conda remove --prefix {world.prefix} --force libnvjitlink"]


@pytest.mark.parametrize("pip", [False, True])
def test_what_nobody_installed_yet(tmp_path: Path, pip: bool) -> None:
    """uv leaves pip out of the environments that it makes."""
    world = World(tmp_path)
    if pip:
        world.wheel("pip", "24.0")
    start = "/venv/bin/python -m pip install" if pip else "uv pip install --python /venv/bin/python"
    assert install_line(world.view(), None, JIT) == f"{start} --no-deps '{JIT}'"
    assert install_line(world.view(), None, JIT, alone=False) == f"{start} '{JIT}'"


def test_a_prefix_with_spaces_is_one_word(tmp_path: Path) -> None:
    world = World(tmp_path, prefix="/my envs/a b").wheel(JIT, "12.4.127")
    assert shlex.split(lines(world.view())[0])[0] == "/my envs/a b/bin/python"


@pytest.mark.parametrize("before", ["", "/usr/local/cuda/lib64"])
def test_folders_that_are_put_first(before: str) -> None:
    script = f"{export_line(['/my envs/lib', '/b'])}; printenv LD_LIBRARY_PATH"
    environ = {"PATH": "/usr/bin:/bin", **({"LD_LIBRARY_PATH": before} if before else {})}
    said = subprocess.run(["bash", "-c", script.replace("  # before Python starts", "")], env=environ, text=True,
                          check=True, capture_output=True).stdout
    assert said == f"/my envs/lib:/b{f':{before}' if before else ''}\n"
