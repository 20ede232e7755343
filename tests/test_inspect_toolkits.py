"""CUDA toolkits and cuDNN on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.inspect.machine_records import SystemCudnn
from stackfix.inspect.places import Root
from stackfix.inspect.toolkits import find_cudnn, find_toolkits
from tests.inspect_trees import link, write

NVCC = "#!not run\0 Cuda compilation tools, release 12.4, V12.4.131\0"
CUDA_H = "#ifndef X\n#define CUDA_VERSION 12040\n"
CUDNN_H = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"


def test_a_toolkit_and_all_its_names(tmp_path: Path) -> None:
    real = "usr/local/cuda-12.4"
    write(tmp_path, f"{real}/version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}')
    write(tmp_path, f"{real}/bin/nvcc", NVCC)
    write(tmp_path, f"{real}/targets/x86_64-linux/lib/stubs/libcuda.so")
    write(tmp_path, f"{real}/compat/libcuda.so.1")
    link(tmp_path, f"{real}/lib64", "targets/x86_64-linux/lib")
    link(tmp_path, "usr/local/cuda", "/etc/alternatives/cuda")
    link(tmp_path, "etc/alternatives/cuda", "/usr/local/cuda-12.4")
    environ = {"CUDA_HOME": "/usr/local/cuda-12.4/", "PATH": "/usr/local/cuda/bin:/none", "CUDA_PATH": "/gone"}
    (found,) = find_toolkits(Root(str(tmp_path)), environ)
    assert (found.path, found.real_path) == ("/usr/local/cuda", "/usr/local/cuda-12.4")
    assert (found.version, found.version_from) == ("12.4.1", "/usr/local/cuda/version.json")
    assert (found.nvcc, found.nvcc_release) == ("/usr/local/cuda/bin/nvcc", "12.4.131")
    assert found.library_folders == ("/usr/local/cuda/lib64",)
    assert (found.stubs, found.compat) == (("/usr/local/cuda/lib64/stubs",), ("/usr/local/cuda/compat",))
    assert found.found_via == ("usual place", "CUDA_HOME", "nvcc on PATH")


@pytest.mark.parametrize(("files", "version", "source"), [
    ({"version.txt": "CUDA Version 10.2.89\n"}, "10.2.89", "version.txt"),
    ({"version.json": "{", "include/cuda.h": CUDA_H}, "12.4", "include/cuda.h"),
    ({"version.json": '{"cuda": {"version": 12}}', "targets/sbsa-linux/include/cuda.h": CUDA_H}, "12.4",
     "targets/sbsa-linux/include/cuda.h"),
    ({"include/cuda_runtime_api.h": "#define CUDART_VERSION  13000\n"}, "13.0", "include/cuda_runtime_api.h"),
    ({"bin/nvcc": NVCC}, "12.4", "bin/nvcc"),
    ({"lib64/libcudart.so.12": ""}, None, None),
])
def test_where_a_version_is_stated(
        tmp_path: Path, files: dict[str, str], version: str | None, source: str | None) -> None:
    for path, text in files.items():
        write(tmp_path, f"opt/cuda/{path}", text)
    (found,) = find_toolkits(Root(str(tmp_path)), {})
    assert (found.version, found.version_from) == (version, source and f"/opt/cuda/{source}")


def test_what_only_looks_like_a_toolkit(tmp_path: Path) -> None:
    write(tmp_path, "usr/local/cuda-12.4/README", "removed")
    write(tmp_path, "usr/bin/nvcc", "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc\n")
    write(tmp_path, "opt/cuda-gdb/version.txt", "CUDA Version 12.4.0\n")
    assert find_toolkits(Root(str(tmp_path)), {"PATH": "/usr/bin", "CUDA_HOME": "/usr/local/cuda-12.4"}) == ()


def test_other_places(tmp_path: Path) -> None:
    write(tmp_path, "opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/version.json", '{"cuda": {"version": "12.4.0"}}')
    write(tmp_path, "usr/lib/nvidia-cuda-toolkit/bin/nvcc", NVCC)
    write(tmp_path, "env/targets/x86_64-linux/include/cuda.h", CUDA_H)
    found = find_toolkits(Root(str(tmp_path)), {}, "/env")
    assert [(each.path, each.version, each.found_via) for each in found] == [
        ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4", "12.4.0", ("NVIDIA HPC SDK",)),
        ("/usr/lib/nvidia-cuda-toolkit", "12.4", ("usual place",)), ("/env", "12.4", ("conda",))]


def test_an_endless_nvcc_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "usr/local/cuda/version.txt", "CUDA Version 11.8.0")
    link(tmp_path, "usr/local/cuda/bin/nvcc", "nvcc")
    (found,) = find_toolkits(Root(str(tmp_path)), {"PATH": "/usr/local/cuda/bin"})
    assert (found.nvcc, found.nvcc_release, found.version) == (None, None, "11.8.0")


def test_cudnn_of_the_system_and_of_a_toolkit(tmp_path: Path) -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    write(tmp_path, "usr/include/x86_64-linux-gnu/cudnn_version_v9.h", CUDNN_H)
    link(tmp_path, "usr/include/cudnn_version.h", "x86_64-linux-gnu/cudnn_version_v9.h")
    write(tmp_path, f"{folder[1:]}/libcudnn.so.9.1.0")
    link(tmp_path, f"{folder[1:]}/libcudnn.so.9", "libcudnn.so.9.1.0")
    write(tmp_path, "usr/local/cuda/version.txt", "CUDA Version 11.8.0")
    write(tmp_path, "usr/local/cuda/lib64/libcudnn.so.8.9.7")
    write(tmp_path, "usr/local/cuda/include/cudnn.h", "#define CUDNN_MAJOR 7\n")
    root = Root(str(tmp_path))
    assert find_cudnn(root, (folder, "/lib/x86_64-linux-gnu"), find_toolkits(root, {})) == (
        SystemCudnn(version="9.1.0", header="/usr/include/cudnn_version.h", libraries=(f"{folder}/libcudnn.so.9.1.0",)),
        SystemCudnn(version="8.9.7", header=None, libraries=("/usr/local/cuda/lib64/libcudnn.so.8.9.7",)))
