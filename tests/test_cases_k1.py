"""Public reports on libraries that a foreign copy hides, or that are older than what needs them: built and judged.

Each is the report's own machine in small, judged by the whole command; the same machine without the fault has
nothing above a note. Where this machine's loader can open it, it says the report's own line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.case_worlds import TAG, bare, install_nvidia, install_torch, is_clean, judge, linked, nvjitlink, of_minor
from tests.cli_world import Say
from tests.diagnose_world import World, lib

SONAME = "libnvJitLink.so.12"
OWN, CUSPARSE = f"nvidia/nvjitlink/lib/{SONAME}", "nvidia/cusparse/lib/libcusparse.so.12"
COMPLETE_12_4 = f"libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version {SONAME}"
ERROR_LOG_12_9 = f"libcusparse.so.12: undefined symbol: __nvJitLinkGetErrorLogSize_12_9, version {SONAME}"


def really(world: World) -> str:
    """What this machine's loader says to torch's, or cuSPARSE's, own file."""
    world.opens_nothing()
    torch = world.host(world.inside("torch/lib")).exists()
    for each in ("torch/lib/libtorch_global_deps.so", f"torch/_C.{TAG}") if torch else (CUSPARSE,):
        world.opens(each)
    return world.really()


def is_shadow(finding: dict[str, Any], world: World, culprit: str, minor: int, *, first: str,
              variable: str = "LD_LIBRARY_PATH", package: str | None = None, loser: str | None = None) -> None:
    """The whole of a shadowed nvJitLink under cuSPARSE."""
    assert (finding["code"], finding["kind"], finding["severity"]) == ("SF101", "shadowed-library", "error")
    assert (finding["level"], finding["repairable"]) == ("cuda", True)
    assert finding["culprit"] == {"path": culprit, "package": package, "variable": variable}
    assert (finding["winner"], finding["loser"]) == (culprit, loser or world.inside(OWN))
    assert finding["requester"]["path"].endswith(CUSPARSE)
    assert finding["requester"]["package"].startswith("nvidia-cusparse-cu12 ")
    assert tuple(finding["symbols"]) == of_minor(minor, first)
    line = f"libcusparse.so.12: undefined symbol: __nvJitLink{first}_12_{minor}, version {SONAME}"
    assert bare(finding["error"]) == line
    assert f"_12_{minor} is needed" in finding["why"]
    put_first = f"{folder(loser or world.inside(OWN))}${{LD_LIBRARY_PATH"
    assert any(put_first in each for each in finding["cure"]) == (variable == "LD_LIBRARY_PATH")


def folder(path: str) -> str:
    return path.rpartition("/")[0]


# --- pytorch/pytorch#134929: a notebook's base conda folder on LD_LIBRARY_PATH ---

@pytest.mark.parametrize(("torch", "prefix", "old", "minor", "first"), [
    ("2.5.1", "/opt/conda", "12.1.105", 4, "Complete"),
    ("2.4.0", "/opt/conda", "12.0.140", 1, "AddData"),
    ("2.5.1", "/home/me/miniforge3", "12.3.101", 4, "Complete"),
])
def test_the_conda_folder_of_a_notebook(torch: str, prefix: str, old: str, minor: int, first: str, tmp_path: Path,
                                        say: Say) -> None:
    world = install_torch(World(tmp_path, conda=True, prefix=prefix), torch)
    world.conda("libnvjitlink", old, {f"lib/{SONAME}": nvjitlink(old)})
    world.write(f"{prefix}/share/jupyter/kernels/python3/kernel.json",
                f'{{"argv": ["{prefix}/bin/python", "-m", "ipykernel_launcher"], "display_name": "Python 3"}}')
    assert is_clean(say, world)                             # CUDA_HOME alone does no harm, the path does
    world.environ(CUDA_HOME=prefix)
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_LIBRARY_PATH=f"{prefix}/lib:/usr/local/lib"))
    assert judged.status == 1
    finding = judged.only("SF101")
    is_shadow(finding, world, f"{prefix}/lib/{SONAME}", minor, first=first, package=f"libnvjitlink {old}")
    assert any(f"_12_{minor} is in nvidia-nvjitlink-cu12 from 12.{minor}." in each for each in finding["evidence"])
    assert any(f"take {prefix}/lib out of LD_LIBRARY_PATH" in each for each in finding["cure"])
    assert any("kernel.json" in each for each in finding["cure"])
    assert any("torch to 2.6 or later" in each for each in finding["cure"])
    assert any(f"conda update --prefix {prefix} libnvjitlink" in each for each in finding["cure"])
    assert bare(finding["error"]) in bare(really(world))
    # the wheel's folder first
    world.environ(LD_LIBRARY_PATH=f"{folder(world.inside(OWN))}:{prefix}/lib")
    assert judge(say, world).status == 0
    assert really(world) == ""


def test_torch_26_loads_its_own_copy_before_the_one_of_conda(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path, conda=True, prefix="/opt/conda"), "2.6.0")
    world.conda("libnvjitlink", "12.1.105", {f"lib/{SONAME}": nvjitlink("12.1.105")})
    assert judge(say, world.environ(LD_LIBRARY_PATH="/opt/conda/lib")).status == 0


# --- pytorch/pytorch#140797: the toolkit 12.2 on the loader's path ---

TOOLKIT = "/usr/local/cuda-12.2"


def beside_toolkit(folder: Path, torch: str) -> World:
    """torch beside a toolkit of CUDA 12.2 and one that is as new as any."""
    world = install_torch(World(folder), torch)
    for release, version in (("12.2", "12.2.91"), ("12.9", "12.9.86")):
        world.toolkit(f"/usr/local/cuda-{release}", f"{release}.0")
        world.library(f"/usr/local/cuda-{release}/lib64/{SONAME}", nvjitlink(version))
    return world


def test_the_toolkit_122_under_torch_251(tmp_path: Path, say: Say) -> None:
    world = beside_toolkit(tmp_path, "2.5.1")
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_LIBRARY_PATH=f"{TOOLKIT}/lib64"))
    assert (judged.status, judged.codes) == (1, ["SF101"])
    finding = judged.only("SF101")
    is_shadow(finding, world, f"{TOOLKIT}/lib64/{SONAME}", 4, first="Complete")
    assert bare(finding["error"]) == COMPLETE_12_4
    assert COMPLETE_12_4 in bare(really(world))
    assert "RUNPATH of libcusparse.so.12" in finding["why"]
    assert "up to _12_2" in finding["why"]
    assert any(f"the CUDA toolkit 12.2.0 in {TOOLKIT}" in each for each in finding["evidence"])
    assert finding["cure"][0] == "unset LD_LIBRARY_PATH"
    assert any("torch to 2.6 or later" in each for each in finding["cure"])


@pytest.mark.parametrize(("torch", "path"), [
    ("2.4.1", f"{TOOLKIT}/lib64"),          # its cuSPARSE asks for functions of 12.1 only
    ("2.5.1", "/usr/local/cuda-12.9/lib64"),            # each nvJitLink has the functions of all before
    ("2.5.1", f"/venv/lib/python3.11/site-packages/nvidia/nvjitlink/lib:{TOOLKIT}/lib64"),
    ("2.6.0", f"{TOOLKIT}/lib64"), ("2.8.0", f"{TOOLKIT}/lib64"),
])
def test_where_that_toolkit_does_no_harm(torch: str, path: str, tmp_path: Path, say: Say) -> None:
    assert is_clean(say, beside_toolkit(tmp_path, torch).environ(LD_LIBRARY_PATH=path))


def test_the_cache_comes_behind_the_runpath(tmp_path: Path, say: Say) -> None:
    world = beside_toolkit(tmp_path, "2.5.1").cached(f"{TOOLKIT}/lib64/{SONAME}")
    assert is_clean(say, world)


@pytest.mark.parametrize("torch", ["2.5.1", "2.6.0", "2.8.0"])
def test_a_preloaded_copy_breaks_later_releases_too(torch: str, tmp_path: Path, say: Say) -> None:
    """What is mapped under the soname first serves cuSPARSE, whatever torch opens by its path."""
    world = beside_toolkit(tmp_path, torch).environ(LD_PRELOAD=f"{TOOLKIT}/lib64/{SONAME}")
    judged = judge(say, world)
    assert judged.status == 1
    minor = 8 if torch == "2.8.0" else 4
    finding = judged.only("SF101")
    is_shadow(finding, world, f"{TOOLKIT}/lib64/{SONAME}", minor, first="Complete" if minor == 4 else "AddData",
              variable="LD_PRELOAD")
    assert finding["cure"][0] == "unset LD_PRELOAD"
    assert bare(finding["error"]) in bare(really(world))


# --- NVIDIA/cuml#7794: pip keeps an older nvJitLink, and its metadata allows it ---

@pytest.mark.parametrize(("cusparse", "minor", "old", "least", "first"), [
    ("12.5.10.65", 9, "12.8.93", "12.9.41", "GetErrorLogSize"),
    ("12.5.8.93", 8, "12.6.85", "12.8.61", "AddData"),
    ("12.1.0.106", 1, "12.0.140", "12.1.55", "AddData"),
])
def test_nvjitlink_older_than_cusparse(cusparse: str, minor: int, old: str, least: str, first: str, tmp_path: Path,
                                       say: Say) -> None:
    world = World(tmp_path)
    install_nvidia(world, "nvidia-cusparse-cu12", cusparse)
    world.wheel("cuml-cu12", "26.4.0", linked({f"cuml/internals/base.{TAG}": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",),
        runpath="$ORIGIN/../../nvidia/cusparse/lib")}), requires=("nvidia-cusparse-cu12",))
    judged = judge(say, install_nvidia(world, "nvidia-nvjitlink-cu12", old))
    assert (judged.status, judged.codes) == (1, ["SF201"])
    finding = judged.only("SF201")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("library-too-old", "error", "cuda")
    assert finding["culprit"] == {"path": world.inside(OWN), "package": f"nvidia-nvjitlink-cu12 {old}",
                                  "variable": None}
    assert finding["requester"]["path"].endswith(CUSPARSE)
    assert finding["requester"]["package"] == f"nvidia-cusparse-cu12 {cusparse}"
    assert tuple(finding["symbols"]) == of_minor(minor, first)
    line = f"libcusparse.so.12: undefined symbol: __nvJitLink{first}_12_{minor}, version {SONAME}"
    assert bare(finding["error"]) == line
    assert bare(finding["error"]) in bare(really(world))
    assert "pip check is content" in finding["why"]
    assert f"_12_{minor} is in nvidia-nvjitlink-cu12 from {least} on, not in {old}; {old} is inst" in finding["why"]
    command, _, told = finding["cure"][0].partition("==")
    assert told.startswith(f"{least}'")
    assert command == f"{world.prefix}/bin/python -m pip install --no-deps 'nvidia-nvjitlink-cu12"
    for enough in (least, told.partition("'")[0], "12.9.86"):
        assert is_clean(say, install_nvidia(world, "nvidia-nvjitlink-cu12", enough))
    assert really(world) == ""


def test_where_torch_pins_the_older_nvjitlink(tmp_path: Path, say: Say) -> None:
    """cuSPARSE was brought forward; the cure breaks torch's own pin, and says so."""
    world = install_torch(World(tmp_path), "2.8.0", cusparse="12.5.10.65")
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF201", "SF601")
    assert finding["culprit"]["package"] == "nvidia-nvjitlink-cu12 12.8.93"
    assert bare(finding["error"]) == ERROR_LOG_12_9
    assert "pip will warn that torch 2.8.0 requires nvidia-nvjitlink-cu12==12.8.93" in finding["cure"]


# --- jax-ml/jax#30050: the HPC SDK's CUDA 12.4 before the wheels of 12.9; JAX only says that there is no cuSPARSE ---

JAX_WHEELS = {"nvidia-nvjitlink-cu12": "12.9.86", "nvidia-cusparse-cu12": "12.5.10.65",
              "nvidia-cublas-cu12": "12.9.1.4", "nvidia-cuda-runtime-cu12": "12.9.79",
              "nvidia-cuda-nvrtc-cu12": "12.9.86", "nvidia-cuda-cupti-cu12": "12.9.79",
              "nvidia-cufft-cu12": "11.4.1.4", "nvidia-cusolver-cu12": "11.7.5.82",
              "nvidia-cudnn-cu12": "9.10.1.4", "nvidia-nccl-cu12": "2.27.3", "nvidia-nvshmem-cu12": "3.2.5"}


def jax(folder: Path, sdk: str, cuda: str, version: str) -> World:
    """JAX 0.6.2 with its wheels of CUDA 12.9 beside an HPC SDK."""
    world = World(folder)
    for name, release in JAX_WHEELS.items():
        install_nvidia(world, name, release)
    world.wheel("jax", "0.6.2", {"jax/__init__.py": ""}, requires=("jaxlib==0.6.2",))
    world.wheel("jaxlib", "0.6.2", linked({f"jaxlib/_jax.{TAG}": lib()}))
    world.wheel("jax-cuda12-pjrt", "0.6.2", linked({"jax_plugins/xla_cuda12/xla_cuda_plugin.so": lib(
        runpath="$ORIGIN/../../nvidia/nccl/lib")}))
    world.wheel("jax-cuda12-plugin", "0.6.2", linked({f"jax_cuda12_plugin/_sparse.{TAG}": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",),
        runpath="$ORIGIN/../nvidia/cusparse/lib")}), requires=("jax-cuda12-pjrt==0.6.2",))
    return world.library(f"{sdk}/cuda/{cuda}/lib64/{SONAME}", nvjitlink(version))


@pytest.mark.parametrize(("release", "cuda", "version"), [("24.5", "12.4", "12.4.127"), ("23.11", "12.3", "12.3.101")])
def test_the_hpc_sdk_under_jax(release: str, cuda: str, version: str, tmp_path: Path, say: Say) -> None:
    sdk = f"/opt/nvidia/hpc_sdk/Linux_x86_64/{release}"
    world = jax(tmp_path, sdk, cuda, version)
    assert is_clean(say, world)
    path = (f"{sdk}/cuda/{cuda}/lib64", f"{sdk}/cuda/{cuda}/extras/CUPTI/lib64", f"{sdk}/comm_libs/nvshmem/lib",
            f"{sdk}/comm_libs/nccl/lib", f"{sdk}/math_libs/{cuda}/lib64")
    world.environ(LD_LIBRARY_PATH=":".join(path), LOADEDMODULES=f"nvhpc/{release}",
                  _LMFILES_=f"/opt/nvidia/hpc_sdk/modulefiles/nvhpc/{release}")
    judged = judge(say, world)
    assert (judged.status, judged.codes) == (1, ["SF101"])
    finding = judged.only("SF101")
    is_shadow(finding, world, f"{path[0]}/{SONAME}", 9, first="GetErrorLogSize")
    assert bare(finding["error"]) == ERROR_LOG_12_9
    assert any(f"the NVIDIA HPC SDK {release} with CUDA {cuda}" in each for each in finding["evidence"])
    assert finding["cure"][0] == f"module unload nvhpc/{release}"
    assert ERROR_LOG_12_9 in bare(really(world))
    world.environ(LD_LIBRARY_PATH=":".join((folder(world.inside(OWN)), *path)))
    assert is_clean(say, world)


# --- LMCache/LMCache#180: a second torch, in the environment that a build is isolated in ---

@pytest.mark.parametrize(("prefix", "torch", "has_python"), [
    ("/tmp/pip-build-env-x7f3k2qa/overlay", "2.5.1", False),        # noqa: S108 - as pip calls it
    ("/home/me/.cache/uv/builds-v0/.tmpQkJ3aX", "2.5.1", True),
])
def test_the_torch_of_an_isolated_build(prefix: str, torch: str, has_python: bool, tmp_path: Path,
                                        say: Say) -> None:
    world = install_torch(World(tmp_path, prefix=prefix), torch)
    if not has_python:                                      # pip's is no virtual environment
        world.remove(f"{prefix}/pyvenv.cfg").remove(f"{prefix}/bin/python")
    path = "/apps/cuda/12.2.2/lib64"
    world.library(f"{path}/{SONAME}", nvjitlink("12.2.140"))
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_LIBRARY_PATH=path, LOADEDMODULES="cuda/12.2.2"))
    assert (judged.status, judged.codes) == (1, ["SF101"])
    finding = judged.only("SF101")
    is_shadow(finding, world, f"{path}/{SONAME}", 4, first="Complete")
    assert finding["error"].startswith(prefix)
    assert bare(finding["error"]) == COMPLETE_12_4
    assert finding["cure"][:2] == ["module unload cuda/12.2.2", "unset LD_LIBRARY_PATH"]
    assert COMPLETE_12_4 in bare(really(world))
    # a build with torch 2.6 imports it under the same path, and builds against another torch than will run it
    later = install_torch(World(tmp_path / "later", prefix=prefix), "2.6.0")
    later.library(f"{path}/{SONAME}", nvjitlink("12.2.140"))
    assert is_clean(say, later.environ(LD_LIBRARY_PATH=path))


def test_the_environments_own_torch_of_conda_is_not_touched_by_that_path(tmp_path: Path, say: Say) -> None:
    """Its libraries lie together in the prefix and find each other by RPATH, before the path."""
    world = World(tmp_path, conda=True)
    rpath = "$ORIGIN"
    world.conda("libnvjitlink", "12.4.127", {f"lib/{SONAME}": nvjitlink("12.4.127")})
    world.conda("libcusparse", "12.3.1.170", {"lib/libcusparse.so.12": lib(
        needs=(SONAME,), wants=[f"{each}@{SONAME}" for each in of_minor(4)], rpath=rpath,
        offers=("cusparseCreate@libcusparse.so.12",))})
    path = "/apps/cuda/12.2.2/lib64"
    world.library(f"{path}/{SONAME}", nvjitlink("12.2.140"))
    world.conda("torchac-cuda", "0.2.5", {f"lib/python3.11/site-packages/torchac_cuda.{TAG}": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",), rpath="$ORIGIN/../..")})
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=path))
