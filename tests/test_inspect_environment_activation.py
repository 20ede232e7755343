"""Activation scripts and kernels: which lines tell, and what is no kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.inspect.environment_records import ActivationScript, JupyterKernel
from stackfix.inspect.places import Root
from tests.inspect_trees import conda_package, link, look, make_venv, plain_venv, write

GUIDE = """#!/bin/sh
# LD_LIBRARY_PATH is set here
CUDNN_PATH=$(dirname $(python -c "import nvidia.cudnn;print(nvidia.cudnn.__file__)"))
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$CONDA_PREFIX/lib/:$CUDNN_PATH/lib
echo done
"""


def test_condas_scripts_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    conda_package(tmp_path / "env", "python", "3.11.7", {"lib/python3.11/os.py": b""})
    write(tmp_path, "env/etc/conda/activate.d/env_vars.sh", GUIDE)
    write(tmp_path, "env/etc/conda/activate.d/a.fish", "echo nothing\n")
    write(tmp_path, "env/etc/conda/activate.d/README", "LD_PRELOAD=x\n")
    write(tmp_path, "env/etc/conda/deactivate.d/env_vars.sh", "unset LD_LIBRARY_PATH\n")
    link(tmp_path, "env/etc/conda/activate.d/z.sh", "z.sh")
    environment = look("/env", root=Root(str(tmp_path)))
    folder = "/env/etc/conda"
    assert environment.activation == (
        ActivationScript(path=f"{folder}/activate.d/a.fish", phase="activate", lines=()),
        ActivationScript(path=f"{folder}/activate.d/env_vars.sh", phase="activate", lines=(
            (3, GUIDE.splitlines()[2]), (4, GUIDE.splitlines()[3]))),
        ActivationScript(path=f"{folder}/deactivate.d/env_vars.sh", phase="deactivate",
                         lines=((1, "unset LD_LIBRARY_PATH"),)))
    assert [each.path for each in environment.notes] == [f"{folder}/activate.d/z.sh"]


def test_a_venvs_scripts_tell_only_what_was_added(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv")
    assert look(venv).activation == ()
    with (venv / "bin" / "activate").open("a") as stream:
        stream.write("export LD_PRELOAD=/opt/x.so\n")
    (script,) = look(venv).activation
    assert (script.path, [text for _, text in script.lines]) == (
        f"{venv}/bin/activate", ["export LD_PRELOAD=/opt/x.so"])


def test_kernels_of_the_prefix_and_the_user(tmp_path: Path) -> None:
    plain_venv(tmp_path)
    write(tmp_path, "venv/share/jupyter/kernels/a/kernel.json", json.dumps(
        {"argv": ["/venv/bin/python", "-m", "ipykernel"], "env": {"LD_LIBRARY_PATH": "/x"}}))
    write(tmp_path, "home/me/.local/share/jupyter/kernels/b/kernel.json", json.dumps({"argv": []}))
    write(tmp_path, "venv/share/jupyter/kernels/none/logo.svg")
    found = look("/venv", {"HOME": "/home/me"}, root=Root(str(tmp_path))).kernels
    assert found == (
        JupyterKernel(path="/venv/share/jupyter/kernels/a/kernel.json", name="a", python="/venv/bin/python",
                      variables=(("LD_LIBRARY_PATH", "/x"),)),
        JupyterKernel(path="/home/me/.local/share/jupyter/kernels/b/kernel.json", name="b", python=None, variables=()))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"argv": "x"}', '{"argv": [], "env": []}', '{"argv": [], "env": 3}',
                                  "[" * 30_000])
def test_a_wrong_kernel_is_a_note(tmp_path: Path, text: str) -> None:
    plain_venv(tmp_path)
    write(tmp_path, "venv/share/jupyter/kernels/a/kernel.json", text)
    environment = look("/venv", root=Root(str(tmp_path)))
    if environment.kernels:
        assert text == '{"argv": [], "env": []}'    # an empty list says as much as an empty table
    else:
        assert [each.reason for each in environment.notes] == ["is no kernel.json"]
