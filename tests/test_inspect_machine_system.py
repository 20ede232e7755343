"""The system below Python, over trees that stand for distributions, WSL, Jetson and containers."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackfix.inspect.machine_records import Container, Jetson, LoadedModule, Release, Wsl
from stackfix.inspect.machine_system import (
    find_container,
    find_glibc,
    find_jetson,
    find_library,
    find_wsl,
    library_folders,
    newest_versions,
    read_architecture,
    read_kernel,
    read_modules,
    read_release,
)
from stackfix.inspect.places import Root
from tests.inspect_trees import link, write

FOLDERS = library_folders("x86_64")


def compile_library(path: Path, *versions: str) -> Path:
    """A shared object that defines these symbol versions, in this order."""
    gcc = shutil.which("gcc")
    assert gcc is not None, "gcc makes the libraries of these tests"
    path.parent.mkdir(parents=True, exist_ok=True)
    source, script = path.with_suffix(".c"), path.with_suffix(".map")
    source.write_text("".join(f"int f{at}(void) {{ return {at}; }}\n" for at in range(len(versions))))
    script.write_text("".join(f"{name} {{ global: f{at}; }};\n" for at, name in enumerate(versions)))
    subprocess.run([gcc, "-shared", "-fPIC", "-o", str(path), str(source), f"-Wl,--version-script={script}",
                    f"-Wl,-soname,{path.name}"], check=True, timeout=60)
    return path


def test_the_newest_version_is_the_highest_number(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "usr/lib64/libstdc++.so.6.0.30", "GLIBCXX_3.4.30", "GLIBCXX_3.4.9",
                              "GLIBCXX_3.4", "CXXABI_1.3.13", "GLIBCXX_DEBUG_MESSAGE_LENGTH")
    link(tmp_path, "usr/lib64/libstdc++.so.6", library.name)
    found = find_library(Root(str(tmp_path)), "libstdc++.so.6", FOLDERS, {})
    assert found is not None
    assert (found.path, found.real_path, found.version) == (
        "/usr/lib64/libstdc++.so.6", "/usr/lib64/libstdc++.so.6.0.30", "6.0.30")
    assert found.newest == (("CXXABI", "1.3.13"), ("GLIBCXX", "3.4.30"))


def test_the_cache_of_the_loader_comes_before_its_folders(tmp_path: Path) -> None:
    for folder in ("opt/gcc/lib64", "usr/lib64"):
        compile_library(tmp_path / folder / "libgcc_s.so.1", "GCC_3.0")
    root = Root(str(tmp_path))
    cached = find_library(root, "libgcc_s.so.1", FOLDERS, {"libgcc_s.so.1": "/opt/gcc/lib64/libgcc_s.so.1"})
    assert cached is not None
    assert cached.path == "/opt/gcc/lib64/libgcc_s.so.1"
    gone = find_library(root, "libgcc_s.so.1", FOLDERS, {"libgcc_s.so.1": "/gone"})
    assert gone is not None
    assert (gone.path, gone.version) == ("/usr/lib64/libgcc_s.so.1", None)


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF" + b"\xff" * 60])
def test_a_library_that_cannot_be_read_has_no_versions(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "lib64/libc.so.6", content)
    found = find_glibc(Root(str(tmp_path)), FOLDERS, {})
    assert found is not None
    assert (found.version, found.newest) == (None, ())


def test_no_library_is_none(tmp_path: Path) -> None:
    link(tmp_path, "lib64/libc.so.6", "loop")
    link(tmp_path, "lib64/loop", "libc.so.6")
    assert find_glibc(Root(str(tmp_path)), FOLDERS, {}) is None


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the machine of these tests has no glibc")
def test_glibc_of_this_machine_is_what_the_process_says() -> None:
    found = find_glibc(Root(), library_folders(os.uname().machine), {})
    assert found is not None
    assert found.version == str(os.confstr("CS_GNU_LIBC_VERSION")).removeprefix("glibc ")
    assert dict(found.newest).keys() >= {"GLIBC"}


def test_prefixes_without_numbers_do_not_count() -> None:
    assert newest_versions(("GLIBC_2.9", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "OTHER_9.9")) == (
        ("GLIBC", "2.34"),)


def test_the_architecture_of_a_tree_is_that_of_its_loader(tmp_path: Path) -> None:
    assert read_architecture(Root(str(tmp_path))) is None
    write(tmp_path, "lib/ld-linux-aarch64.so.1")
    assert read_architecture(Root(str(tmp_path))) == "aarch64"
    assert read_architecture(Root()) == os.uname().machine


@pytest.mark.parametrize(("text", "expected"), [
    ('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
     Release(id="ubuntu", version="22.04", name="Ubuntu 22.04.4 LTS", like=("debian",))),
    ("# x\nID='amzn'\nVERSION_ID=2023\nID_LIKE=\"fedora rhel\"\nPRETTY_NAME=\"It's broken\nHOME\n",
     Release(id="amzn", version="2023", name="\"It's broken", like=("fedora", "rhel"))),
    ("", Release(id="linux", version=None, name=None, like=())),
])
def test_the_distribution(tmp_path: Path, text: str, expected: Release) -> None:
    write(tmp_path, "usr/lib/os-release", text)
    link(tmp_path, "etc/os-release", "/usr/lib/os-release")
    assert read_release(Root(str(tmp_path))) == expected


def test_no_distribution_is_none(tmp_path: Path) -> None:
    assert read_release(Root(str(tmp_path))) is None


@pytest.mark.parametrize(("kernel", "version"), [
    ("5.15.90.1-microsoft-standard-WSL2", 2), ("4.4.0-19041-Microsoft", 1), ("6.8.0-31-generic", None),
])
def test_wsl_by_its_kernel(tmp_path: Path, kernel: str, version: int | None) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", f"{kernel}\n")
    root = Root(str(tmp_path))
    assert read_kernel(root) == kernel
    expected = None if version is None else Wsl(version=version, library_folder=None, found_via="kernel release")
    assert find_wsl(root, read_kernel(root)) == expected


def test_wsl_by_its_library_folder(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/wsl/lib").mkdir(parents=True)
    assert find_wsl(Root(str(tmp_path)), None) == Wsl(
        version=None, library_folder="/usr/lib/wsl/lib", found_via="/usr/lib/wsl/lib")


def test_a_jetson_by_its_release_and_by_its_device_tree(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    assert find_jetson(root) is None
    write(tmp_path, "proc/device-tree/compatible", "nvidia,p3737-0000\0nvidia,tegra234\0")
    write(tmp_path, "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    assert find_jetson(root) == Jetson(model="NVIDIA Jetson AGX Orin Developer Kit", release=None,
                                       found_via="/proc/device-tree/compatible")
    write(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 3.0, GCID: 36191598, BOARD: generic\n")
    jetson = find_jetson(root)
    assert jetson is not None
    assert (jetson.release, jetson.found_via) == ("36.3.0", "/etc/nv_tegra_release")


@pytest.mark.parametrize(("files", "environ", "expected"), [
    ({"/.dockerenv": ""}, {}, ("docker", "/.dockerenv")),
    ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ("kubernetes", "KUBERNETES_SERVICE_HOST")),
    ({"/run/.containerenv": ""}, {"container": "podman"}, ("podman", "/run/.containerenv")),
    ({}, {"container": "lxc"}, ("lxc", "container")),
    ({"/run/systemd/container": "systemd-nspawn\n"}, {}, ("systemd-nspawn", "/run/systemd/container")),
    ({}, {"APPTAINER_CONTAINER": "/x.sif", "SINGULARITY_CONTAINER": "/x.sif"}, ("apptainer", "APPTAINER_CONTAINER")),
    ({"/proc/1/cgroup": "0::/kubepods/besteffort/pod1\n"}, {}, ("kubernetes", "/proc/1/cgroup")),
    ({"/proc/1/cgroup": "0::/system.slice/docker-ab.scope\n"}, {}, ("docker", "/proc/1/cgroup")),
    ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, None),
])
def test_a_container_by_its_marks(
        tmp_path: Path, files: Mapping[str, str], environ: Mapping[str, str], expected: tuple[str, str] | None) -> None:
    for path, text in files.items():
        write(tmp_path, path.lstrip("/"), text)
    found = find_container(Root(str(tmp_path)), environ)
    assert found == (Container(kind=expected[0], found_via=expected[1]) if expected else None)


def test_loaded_modules() -> None:
    assert read_modules({"LOADEDMODULES": "gcc/12.2:cuda/12.1", "_LMFILES_": "/m/gcc/12.2.lua:/m/cuda/12.1.lua"}) == (
        LoadedModule(name="gcc/12.2", file="/m/gcc/12.2.lua"), LoadedModule(name="cuda/12.1", file="/m/cuda/12.1.lua"))
    assert read_modules({"LOADEDMODULES": "gcc/12.2:cuda/12.1", "_LMFILES_": "/m/gcc/12.2.lua"}) == (
        LoadedModule(name="gcc/12.2", file=None), LoadedModule(name="cuda/12.1", file=None))
    assert read_modules({"LOADEDMODULES": ""}) == ()
