"""Any bytes in any file that is read: an answer or one clear refusal, never a crash."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stackfix.errors import StackfixError
from stackfix.inspect.environment import inspect_environment
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.machine import inspect_machine
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.places import Root
from stackfix.inspect.plain import from_json, to_json
from tests.inspect_trees import conda_package, dist_info, plain_venv, write

SP = "venv/lib/python3.11/site-packages"
ENVIRON = {"VIRTUAL_ENV": "/venv", "HOME": "/home/me", "PATH": "/usr/bin", "CUDA_HOME": "/usr/local/cuda"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv in a conda prefix, on a machine that has one of everything."""
    root = tmp_path_factory.mktemp("tree")
    site = plain_venv(root)
    dist_info(site, "demo", "1", {"demo/__init__.py": b"1", "demo/_c.so": b"2"}, extra={
        "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n", "REQUESTED": "",
        "direct_url.json": json.dumps({"url": "file:///src/demo", "dir_info": {"editable": True}})})
    conda_package(root / "venv", "cudatoolkit", "11.8", {"lib/libcudart.so.11.0": b"x"})
    write(root, "usr/include/python3.11/patchlevel.h", '#define PY_VERSION "3.11.2"\n')
    for path, text in {
        f"{SP}/demo.pth": "/src\n", f"{SP}/__editable___demo_1_finder.py": "MAPPING = {'demo': '/src/demo'}\n",
        f"{SP}/old.egg-link": "/src\n", f"{SP}/old.egg-info": "Name: old\nVersion: 1\n",
        "venv/conda-meta/state": '{"env_vars": {"A": "b"}}', "venv/conda-meta/history": "",
        "venv/etc/conda/activate.d/a.sh": "export LD_LIBRARY_PATH=/x\n", "venv/bin/activate": "LD_PRELOAD=x\n",
        "venv/share/jupyter/kernels/a/kernel.json": '{"argv": ["python"], "env": {"A": "b"}}',
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\n', "etc/nv_tegra_release": "# R36 (release), REVISION: 3.0\n",
        "proc/device-tree/model": "x", "proc/1/cgroup": "0::/docker", "run/systemd/container": "lxc",
        "proc/sys/kernel/osrelease": "6.1", "sys/module/nvidia/version": "550.54.15",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n",
        "proc/driver/nvidia/gpus/0000:41:00.0/information": "Model: L4\nGPU UUID: GPU-1\n",
        "sys/bus/pci/devices/0000:41:00.0/vendor": "0x10de", "sys/bus/pci/devices/0000:41:00.0/class": "0x030200",
        "sys/bus/pci/devices/0000:41:00.0/device": "0x27b8", "lib64/libstdc++.so.6": "\x7fELF",
        "lib64/libc.so.6": "GNU C Library (x) release version 2.36",
        "usr/local/cuda/version.txt": "CUDA Version 12.4.1",
        "usr/local/cuda/version.json": '{"cuda": {"version": "12.4.1"}}',
        "usr/local/cuda/include/cuda.h": "#define CUDA_VERSION 12040",
        "usr/local/cuda/bin/nvcc": "Cuda compilation tools, release 12.4, V12.4.131",
        "usr/include/cudnn_version.h": "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n",
    }.items():
        write(root, path, text)
    return root


def look(tree: Path) -> None:
    """Both descriptions, and their way through JSON."""
    root = Root(str(tree))
    with contextlib.suppress(StackfixError):
        environment = inspect_environment(root, ENVIRON, deep=True)
        assert from_json(json.loads(json.dumps(to_json(environment))), Environment) == environment
    machine = inspect_machine(root, ENVIRON, conda_prefix="/venv")
    assert from_json(json.loads(json.dumps(to_json(machine))), Machine) == machine


def test_the_tree_is_read_as_it_is(tree: Path) -> None:
    environment = inspect_environment(Root(str(tree)), ENVIRON, deep=True)
    assert environment.notes == ()
    assert {each.name for each in environment.distributions} == {"demo", "old"}
    assert {each.how for each in environment.editables} == {"direct-url", "egg-link", "finder"}
    assert len(inspect_machine(Root(str(tree)), ENVIRON).toolkits) == 1


PIECES = st.sampled_from([b"\0", b"\xff", b"\xed\xa0\x80", b"{", b"[", b'"', b"'", b"\\ud800", b"9" * 5000, b"-", b"=",
                          b",", b":", b"\n", b"\r", b"../" * 40, b"/", b"\n\n", b"\xe2\x80\xa8", b"null", b"[[",
                          b"sha256=", b"1e999"])


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0), at=st.integers(0), cut=st.integers(0, 40), pieces=st.lists(PIECES, max_size=4))
@example(which=0, at=0, cut=1000, pieces=[])
def test_any_bytes_end_in_an_answer(tree: Path, which: int, at: int, cut: int, pieces: list[bytes]) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    path = files[which % len(files)]
    content = path.read_bytes()
    start = at % (len(content) + 1)
    try:
        path.write_bytes(content[:start] + b"".join(pieces) + content[start + cut:])
        look(tree)
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("url", ["file://[", "file:///\\ud800\\u0000", ""])
def test_addresses_that_are_none(tree: Path, url: str) -> None:
    text = f'{{"url": "{url}", "dir_info": {{"editable": true}}}}'
    path = tree / SP / "demo-1.dist-info" / "direct_url.json"
    content = path.read_bytes()
    try:
        path.write_text(text)
        look(tree)
    finally:
        path.write_bytes(content)
