"""Shared objects and their folders, from what lies on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.inspect.environment_objects import is_shared_object, module_of
from stackfix.inspect.environment_records import LibraryFolder, Owner
from stackfix.inspect.places import Root
from tests.inspect_trees import conda_package, dist_info, link, look, plain_venv, write

SP = "/venv/lib/python3.11/site-packages"


def owner(name: str, manager: str = "pip") -> Owner:
    return Owner(manager=manager, name=name, version="1")


def test_folders_come_from_the_disk_and_not_from_a_pattern(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    for name, library in (("nvidia_cublas_cu12", "nvidia/cublas/lib/libcublas.so.12"),
                          ("nvidia_cuda_runtime", "nvidia/cu13/lib/libcudart.so.13"),
                          ("nvidia_cusparselt_cu12", "cusparselt/lib/libcusparseLt.so.0"),
                          ("torch", "torch/lib/libtorch_cuda.so"),
                          ("numpy", "numpy.libs/libopenblas64_p-r0-0cf96a72.3.23.dev.so")):
        dist_info(site, name, "1", {library: b"x"})
    write(site, "nvidia/cublas/lib/libcublasLt.so.12", "unowned")
    link(site, "torch/lib/libcudart.so", "/usr/local/cuda/lib64/libcudart.so")
    write(site, "torch/lib/readme.so.txt")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert environment.library_folders == (
        LibraryFolder(path=f"{SP}/cusparselt/lib", owners=(owner("nvidia-cusparselt-cu12"),),
                      libraries=("libcusparseLt.so.0",)),
        LibraryFolder(path=f"{SP}/numpy.libs", owners=(owner("numpy"),),
                      libraries=("libopenblas64_p-r0-0cf96a72.3.23.dev.so",)),
        LibraryFolder(path=f"{SP}/nvidia/cu13/lib", owners=(owner("nvidia-cuda-runtime"),),
                      libraries=("libcudart.so.13",)),
        LibraryFolder(path=f"{SP}/nvidia/cublas/lib", owners=(owner("nvidia-cublas-cu12"),),
                      libraries=("libcublas.so.12", "libcublasLt.so.12")),
        LibraryFolder(path=f"{SP}/torch/lib", owners=(owner("torch"),),
                      libraries=("libcudart.so", "libtorch_cuda.so")))
    linked = next(each for each in environment.shared_objects if each.link)
    assert (linked.link, linked.owners) == ("/usr/local/cuda/lib64/libcudart.so", ())


@pytest.mark.parametrize(("path", "expected"), [
    ("torch/_C.cpython-311-x86_64-linux-gnu.so", ("torch._C", "cpython-311-x86_64-linux-gnu")),
    ("flash_attn_2_cuda.cpython-313t-x86_64-linux-gnu.so", ("flash_attn_2_cuda", "cpython-313t-x86_64-linux-gnu")),
    ("torchvision/_C.so", ("torchvision._C", None)),
    ("vllm/_C.abi3.so", ("vllm._C", "abi3")),
    ("libfoo.abi3.so", ("libfoo", "abi3")),
    ("torch/lib/libtorch.so", (None, None)),
    ("numpy.libs/libx.so.3", (None, None)),
    ("numpy.libs/x.so", (None, None)),
    ("a-b/x.so", (None, None)),
    ("pkg/x.y.so", (None, None)),
    ("pkg/x.so.1", (None, None)),
])
def test_names_that_python_could_import(path: str, expected: tuple[str | None, str | None]) -> None:
    assert module_of(path) == expected


def test_condas_library_folder_counts(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    conda_package(prefix, "python", "1", {"lib/python3.11/os.py": b""})
    conda_package(prefix, "libstdcxx-ng", "1", {"lib/libstdc++.so.6.0.33": b"x"})
    link(prefix, "lib/libstdc++.so.6", "libstdc++.so.6.0.34")
    write(prefix, "pkgs/ignored/lib/libstdc++.so.6", "x")
    environment = look("/env", root=Root(str(tmp_path)))
    assert [(each.path, each.link, each.module, each.owners) for each in environment.shared_objects] == [
        ("/env/lib/libstdc++.so.6", "libstdc++.so.6.0.34", None, ()),
        ("/env/lib/libstdc++.so.6.0.33", None, None, (owner("libstdcxx-ng", "conda"),))]


def test_a_source_tree_is_searched_without_what_is_not_source(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = plain_venv(tmp_path)
    write(site, "_editable_impl_demo.pth", "/src\n")
    for inside in ("demo/_ext.so", ".git/x.so", "old/.libs/liba.so.1", ".venv/lib/y.so", "env/lib/z.so"):
        write(tmp_path, f"src/{inside}", "x")
    write(tmp_path, "src/env/pyvenv.cfg")
    link(tmp_path, "src/loop", ".")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [(each.path, each.module) for each in environment.shared_objects] == [
        ("/src/demo/_ext.so", "demo._ext"), ("/src/old/.libs/liba.so.1", None)]
    monkeypatch.setattr("stackfix.inspect.environment_objects.MAX_FOREIGN_FOLDERS", 2)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [(each.path, each.reason) for each in environment.notes] == [
        ("/src", "searched for shared objects in 2 folders only")]


def test_a_linked_folder_is_entered_once_and_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = plain_venv(tmp_path)
    write(tmp_path, "shared/nvidia/cublas/lib/libcublas.so.12", "x")
    write(site, "real/lib/liba.so.1", "x")
    link(site, "nvidia", "/shared/nvidia")
    link(site, "aaa", "real")
    link(site, "up", ".")
    link(site, "nvidia_again", "nvidia")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [each.path for each in environment.shared_objects] == [
        f"{SP}/nvidia/cublas/lib/libcublas.so.12", f"{SP}/real/lib/liba.so.1"]
    link(site, "zzz", "/")
    monkeypatch.setattr("stackfix.inspect.environment_objects.MAX_FOREIGN_FOLDERS", 6)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert [each.path for each in environment.notes] == [SP]


@pytest.mark.parametrize(("name", "is_one"), [
    ("libz.so", True), ("libz.so.1.2.11", True), ("libssl-81259c47.so.1.1.1k", True), ("_core.abi3.so", True),
    ("libz.so.gz", False), ("libz.so.1.debug", False), ("libz.a", False), (".so", False), ("libz.so.", False),
])
def test_which_names_are_shared_objects(name: str, *, is_one: bool) -> None:
    assert is_shared_object(name) is is_one
