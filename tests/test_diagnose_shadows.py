"""Foreign copies that hide the environment's libraries; beside what this machine's own loader says of the files."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.library_versions import find_library_versions
from stackfix.diagnose.missing import find_missing
from stackfix.diagnose.missing_foreign import find_foreign
from stackfix.diagnose.provenance import modules_of
from stackfix.diagnose.shadows import find_shadows
from stackfix.diagnose.shadows_harmless import find_harmless_shadows
from stackfix.inspect.machine_records import LoadedModule
from stackfix.matrix.libraries import load_libraries
from tests.case_worlds import install_torch
from tests.diagnose_world import SYSTEM, World, lib

JIT, CUSPARSE = "libnvJitLink.so.12", "nvidia/cusparse/lib/libcusparse.so.12"
NVJITLINK = f"nvidia/nvjitlink/lib/{JIT}"
NAMES = ("__nvJitLinkCreate", "__nvJitLinkAddData", "__nvJitLinkComplete")
CHECKS = (find_shadows, find_harmless_shadows, find_library_versions, find_missing, find_foreign)


def jit(*minors: int) -> tuple[str, ...]:
    return tuple(f"{name}_12_{minor}@{JIT}" for minor in minors for name in NAMES)


def stack(folder: Path, minor: int = 4, *, conda: bool = False) -> World:
    """cuSPARSE and nvJitLink of one CUDA 12 minor, as the wheels lie."""
    world = World(folder, conda=conda)
    world.wheel("nvidia-nvjitlink-cu12", f"12.{minor}.127", {NVJITLINK: lib(offers=jit(*range(minor + 1)))})
    world.wheel("nvidia-cusparse-cu12", "12.3.1.170", {CUSPARSE: lib(
        needs=(JIT,), wants=jit(minor), runpath="$ORIGIN/../../nvjitlink/lib")}, requires=("nvidia-nvjitlink-cu12",))
    return world.opens(CUSPARSE, project="torch", what="import torch")


def old(minor: int = 2) -> dict[str, tuple[str, ...]]:
    return {"offers": jit(*range(minor + 1))}


def told(world: World) -> list[Finding]:
    """All that these checks find."""
    view = world.view()
    return [each for check in CHECKS for each in check(view) if isinstance(each, Finding)]


def only(world: World) -> Finding:
    """The one finding, an error in the words of the real loader."""
    found = told(world)
    assert len(found) == 1, found
    assert found[0].error == world.really().splitlines()[0]
    return found[0]


# --- a file of nobody's, in the environment ---


def wheels(folder: Path, minor: int = 4, runpath: str = "$ORIGIN:$ORIGIN/../../nvjitlink/lib") -> World:
    """cuSPARSE of CUDA 12.4, which looks beside itself first, and nvJitLink of another minor."""
    world = World(folder)
    world.wheel("nvidia-nvjitlink-cu12", f"12.{minor}.127", {NVJITLINK: lib(offers=jit(*range(minor + 1)))})
    world.wheel("nvidia-cusparse-cu12", "12.3.1.170", {CUSPARSE: lib(needs=(JIT,), wants=jit(4), runpath=runpath)},
                requires=("nvidia-nvjitlink-cu12",))
    return world.opens(CUSPARSE, project="torch", what="import torch")


def beside(world: World, *, linked: bool) -> World:
    """An old nvJitLink beside cuSPARSE."""
    path = f"{world.site}/nvidia/cusparse/lib/{JIT}"
    if not linked:
        return world.library(path, lib(**old()))
    world.library(f"/opt/cuda-12.2/lib64/{JIT}", lib(**old()))
    world.link(path, posixpath.relpath(f"/opt/cuda-12.2/lib64/{JIT}", path.rpartition("/")[0]))
    return world


@pytest.mark.parametrize("linked", [False, True])
def test_what_somebody_put_beside_the_requester_is_a_shadow(linked: bool, tmp_path: Path) -> None:
    world = beside(wheels(tmp_path), linked=linked)
    found = only(world)
    assert (found.code, found.repairable) == ("SF101", True)
    assert found.winner == found.culprit.path == f"{world.site}/nvidia/cusparse/lib/{JIT}"
    assert found.loser == world.inside(NVJITLINK)
    assert "no package of the environment has the file" in found.why.lower()
    assert found.cure[0].startswith(f"mv {found.winner} ")
    world.remove(found.winner)
    assert (told(world), world.really()) == ([], "")


def test_a_good_copy_that_no_requester_reaches_is_put_first_by_a_variable(tmp_path: Path) -> None:
    """The copy by hand is all that the search comes to: without it nothing is found at all."""
    world = wheels(tmp_path, runpath="$ORIGIN")
    found = only(beside(world, linked=False))
    assert (found.code, found.loser) == ("SF101", world.inside(NVJITLINK))
    assert not any(each.startswith("mv ") for each in found.cure)
    assert any(each.startswith("export LD_LIBRARY_PATH=") for each in found.cure)


def test_a_package_that_is_too_old_is_no_shadow_of_anything(tmp_path: Path) -> None:
    """A link to it by hand changes nothing: it is the package that has to be newer."""
    world = wheels(tmp_path, minor=2)
    world.link(f"{world.site}/nvidia/cusparse/lib/{JIT}", f"../../nvjitlink/lib/{JIT}")
    found = only(world)
    assert (found.code, found.culprit.package) == ("SF201", "nvidia-nvjitlink-cu12 12.2.127")


def test_a_healthy_stack_gives_nothing(tmp_path: Path) -> None:
    world = stack(tmp_path)
    assert told(world) == []
    assert world.really() == ""


def test_an_older_copy_of_a_toolkit_on_the_path(tmp_path: Path) -> None:
    world = stack(tmp_path).toolkit("/usr/local/cuda-12.2", "12.2.2")
    world.library(f"/usr/local/cuda-12.2/lib64/{JIT}", lib(**old()))
    world.environ(LD_LIBRARY_PATH="/usr/local/cuda-12.2/lib64:/opt/other", LOADEDMODULES="gcc/12.2:cuda/12.2.2",
                  _LMFILES_="/apps/gcc/12.2.lua:/apps/cuda/12.2.2.lua")
    finding = only(world)
    assert (finding.code, finding.severity, finding.level) == ("SF101", "error", "cuda")
    assert finding.culprit.path == finding.winner == f"/usr/local/cuda-12.2/lib64/{JIT}"
    assert finding.culprit.variable == "LD_LIBRARY_PATH"
    assert finding.loser == world.inside(NVJITLINK)
    assert finding.symbols == tuple(f"{name}_12_4" for name in NAMES)
    assert finding.summary == (f"{JIT} of /usr/local/cuda-12.2/lib64 (LD_LIBRARY_PATH) wins, and lacks 3 symbols that "
                               "libcusparse.so.12 needs (__nvJitLinkCreate_12_4, …)")
    assert finding.requester is not None
    assert (finding.requester.path, finding.requester.package) == (
        world.inside(CUSPARSE), "nvidia-cusparse-cu12 12.3.1.170")
    assert "up to _12_2, and _12_4 is needed" in finding.why
    assert finding.repairable
    text = "\n".join(finding.evidence)
    assert "CUDA toolkit 12.2.2 in /usr/local/cuda-12.2" in text
    assert "environment module cuda/12.2.2 is loaded (/apps/cuda/12.2.2.lua)" in text
    assert "gcc" not in text
    assert "element 1 of 2" in text
    assert finding.cure[0] == "module unload cuda/12.2.2"
    assert any(each.startswith(f"export LD_LIBRARY_PATH={world.site}/nvidia/nvjitlink/lib") for each in finding.cure)


def test_one_element_is_unset(tmp_path: Path) -> None:
    world = stack(tmp_path).library(f"/opt/old/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH="/opt/old")
    finding = only(world)
    assert finding.cure[0] == "unset LD_LIBRARY_PATH"
    assert any("no file of the environment sets it" in each for each in finding.evidence)


@pytest.mark.parametrize(("folder", "variables", "belongs"), [
    ("/opt/conda/lib", {"CONDA_EXE": "/opt/conda/bin/conda"}, "another conda environment, /opt/conda"),
    ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/lib64", {"LOADEDMODULES": "nvhpc/24.5"},
     "the NVIDIA HPC SDK 24.5 with CUDA 12.4"),
    ("/srv/env/lib/python3.10/site-packages/nvidia/nvjitlink/lib", {}, "another environment, /srv/env"),
])
def test_what_a_folder_belongs_to_is_said(tmp_path: Path, folder: str, variables: dict[str, str], belongs: str) -> None:
    world = stack(tmp_path).library(f"{folder}/{JIT}", lib(**old()))
    finding = only(world.environ(LD_LIBRARY_PATH=folder, **variables))
    assert finding.culprit.path == f"{folder}/{JIT}"
    assert any(belongs in each for each in finding.evidence)
    assert ("module unload nvhpc/24.5" in finding.cure) is ("LOADEDMODULES" in variables)


def test_a_copy_in_the_cache_names_its_conf_file(tmp_path: Path) -> None:
    # without RUNPATH: the wheel's own copy is found by nobody
    world = World(tmp_path).wheel("nvidia-nvjitlink-cu12", "12.4.127", {NVJITLINK: lib(offers=jit(4))})
    world.wheel("nvidia-cusparse-cu12", "12.3.1.170", {CUSPARSE: lib(needs=(JIT,), wants=jit(4))})
    world.library(f"/usr/local/cuda-12.2/lib64/{JIT}", lib(**old())).cached(f"/usr/local/cuda-12.2/lib64/{JIT}")
    findings = told(world.opens(CUSPARSE))
    assert [(each.code, each.winner, each.loser) for each in findings] == [
        ("SF101", f"/usr/local/cuda-12.2/lib64/{JIT}", world.inside(NVJITLINK))]
    assert findings[0].culprit.variable is None
    assert "/etc/ld.so.conf.d/cuda.conf, line 1: /usr/local/cuda-12.2/lib64" in findings[0].evidence
    assert "sudo ldconfig" in findings[0].cure[0]


def test_a_preloaded_copy(tmp_path: Path) -> None:
    world = stack(tmp_path).library(f"/opt/old/{JIT}", lib(**old())).environ(LD_PRELOAD=f"/opt/old/{JIT}")
    finding = only(world)
    assert (finding.code, finding.culprit.variable, finding.culprit.path) == (
        "SF101", "LD_PRELOAD", f"/opt/old/{JIT}")
    assert finding.cure[0] == "unset LD_PRELOAD"
    assert finding.loser == world.inside(NVJITLINK)


def test_a_copy_that_another_import_loaded_before(tmp_path: Path) -> None:
    world = stack(tmp_path)
    world.wheel("early", "1.0", {f"early/{JIT}": lib(**old()), "early/_e.abi3.so": lib(needs=(JIT,), rpath="$ORIGIN")})
    world.opens_nothing().opens("early/_e.abi3.so", project="early", what="import early").opens(CUSPARSE)
    finding = only(world)
    assert (finding.code, finding.culprit.path, finding.culprit.package) == (
        "SF101", world.inside(f"early/{JIT}"), "early 1.0")
    assert finding.loser == world.inside(NVJITLINK)


def test_an_own_conda_folder_before_the_wheel(tmp_path: Path) -> None:
    world = stack(tmp_path, conda=True)
    world.conda("libnvjitlink", "12.2.140", {f"lib/{JIT}": lib(**old())})
    finding = only(world.environ(LD_LIBRARY_PATH=f"{world.prefix}/lib"))
    assert (finding.code, finding.culprit.path, finding.culprit.package) == (
        "SF101", f"{world.prefix}/lib/{JIT}", "libnvjitlink 12.2.140")
    assert finding.loser == world.inside(NVJITLINK)
    line = f"conda update --prefix {world.prefix} libnvjitlink  # or bring libnvjitlink to a newer version"
    assert line in finding.cure


def test_garbage_on_the_path_is_a_shadow_too(tmp_path: Path) -> None:
    world = stack(tmp_path).library(f"/opt/old/{JIT}", lib(garbage=True)).environ(LD_LIBRARY_PATH="/opt/old")
    finding = only(world)
    assert (finding.code, finding.winner, finding.loser) == ("SF101", f"/opt/old/{JIT}", world.inside(NVJITLINK))
    assert finding.summary == f"{JIT} of /opt/old (LD_LIBRARY_PATH) wins, and cannot be loaded"


def test_a_foreign_requester_is_the_shadow(tmp_path: Path) -> None:
    """A toolkit's newer cuSOLVER comes in, and the environment's own cuBLAS does not have what it needs."""
    blas, solver = "nvidia/cublas/lib/libcublas.so.12", "nvidia/cusolver/lib/libcusolver.so.11"
    version = "libcublas.so.12"
    world = World(tmp_path).wheel("nvidia-cublas-cu12", "12.1.3.1", {blas: lib(offers=(f"cublasCreate@{version}",))})
    world.wheel("nvidia-cusolver-cu12", "11.4.5.107", {solver: lib(
        needs=(version,), wants=(f"cublasCreate@{version}",), runpath="$ORIGIN/../../cublas/lib")})
    world.library("torch/lib/libtorch_cuda.so", lib(needs=(version, "libcusolver.so.11"), runpath=(
        "$ORIGIN/../../nvidia/cusolver/lib")))
    world.library("/opt/cuda/lib64/libcusolver.so.11", lib(
        needs=(version,), wants=(f"cublasSetEnvironmentMode@{version}",)))
    world.opens(blas).opens("torch/lib/libtorch_cuda.so", project="torch").environ(LD_LIBRARY_PATH="/opt/cuda/lib64")
    finding = only(world)
    assert (finding.code, finding.winner, finding.loser) == (
        "SF101", "/opt/cuda/lib64/libcusolver.so.11", world.inside(solver))
    assert finding.symbols == ("cublasSetEnvironmentMode",)


def test_where_the_own_copy_would_not_do_either_both_are_told(tmp_path: Path) -> None:
    world = stack(tmp_path).wheel("nvidia-nvjitlink-cu12", "12.1.105", {NVJITLINK: lib(offers=jit(0, 1))})
    world.library(f"/opt/old/{JIT}", lib(**old(0))).environ(LD_LIBRARY_PATH="/opt/old")
    findings = told(world)
    assert [(each.code, each.culprit.path) for each in findings] == [
        ("SF101", f"/opt/old/{JIT}"), ("SF201", world.inside(NVJITLINK))]
    assert findings[0].loser is None
    assert not findings[0].repairable
    assert findings[1].repairable


def test_what_is_first_opened_in_use_counts_too(tmp_path: Path) -> None:
    world = stack(tmp_path).library(f"/opt/old/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH="/opt/old")
    world.opens_nothing()
    finding = only(world.opens(CUSPARSE, phase="first use", what="libtorch_cuda.so opens libcusparse.so.12"))
    assert (finding.code, finding.severity) == ("SF101", "error")


def test_what_an_import_gets_over_is_not_told(tmp_path: Path) -> None:
    """torch 2.6 tries again after it has loaded its own copies by their paths."""
    world = stack(tmp_path).library(f"/opt/old/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH="/opt/old")
    world.opens_nothing()
    world.opens(CUSPARSE, may_fail="the package then opens the libraries one by one and tries again")
    assert told(world) == []
    assert world.really()


# --- who put a folder there ---


@pytest.mark.parametrize(("module", "folder", "is_its"), [
    ("cuda/12.2", "/usr/local/cuda-12.2/lib64", True), ("cuda/12.2.1", "/usr/local/cuda-12.2/lib64", True),
    ("CUDA/12.2", "/apps/cuda/12.2.1/lib64", True), ("nvhpc/24.5", "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/x", True),
    ("cuda", "/apps/cuda/12.2.1/lib64", True), ("cuda/12.2", "/usr/local/cuda-112.2/lib64", False),
    ("cuda/12.2", "/usr/local/cuda-12.20/lib64", False), ("gcc/12.2", "/usr/local/cuda-12.2/lib64", False),
    ("cuda/11.8", "/usr/local/cuda-12.2/lib64", False), ("", "/usr/local/cuda-12.2/lib64", False),
])
def test_which_module_a_folder_is_of(module: str, folder: str, is_its: bool) -> None:
    assert bool(list(modules_of([LoadedModule(name=module, file=None)], folder))) is is_its


def test_an_activation_script_is_named(tmp_path: Path) -> None:
    world = stack(tmp_path, conda=True)
    script = f"{world.prefix}/etc/conda/activate.d/env_vars.sh"
    world.write(script, "OLD=/opt/old\nexport LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$OLD/lib/\n")
    world.library(f"/opt/old/lib/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH="/opt/old/lib")
    finding = only(world)
    # only lines that name loader, CUDA or Python variables are read: $OLD is not known
    assert not any(script in each for each in finding.evidence)
    world.write(script, "export CUDA_HOME=/opt/old\nexport LD_LIBRARY_PATH=$LD_LIBRARY_PATH:${CUDA_HOME}/lib/\n")
    finding = only(world)
    assert f"{script}, line 2: export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:${{CUDA_HOME}}/lib/" in finding.evidence
    assert finding.cure[0].startswith(f"change line 2 of {script}")


def test_variables_of_the_conda_environment_and_of_kernels_are_named(tmp_path: Path) -> None:
    world = stack(tmp_path, conda=True).library(f"/opt/old/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH="/opt/old")
    world.write(f"{world.prefix}/conda-meta/state", json.dumps({"env_vars": {"LD_LIBRARY_PATH": "/opt/old"}}))
    kernel = f"{world.prefix}/share/jupyter/kernels/train/kernel.json"
    world.write(kernel, json.dumps({"argv": ["python"], "display_name": "train", "language": "python",
                                    "env": {"LD_LIBRARY_PATH": "/opt/old:/more"}}))
    finding = only(world)
    assert "conda sets it when the environment is activated: /opt/old" in finding.evidence
    assert any(kernel in each for each in finding.evidence)
    assert finding.cure[0] == f"conda env config vars unset LD_LIBRARY_PATH -p {world.prefix}"


# --- copies that lack nothing ---


def test_harmless_copies_of_a_folder_are_one_note(tmp_path: Path) -> None:
    world = stack(tmp_path).wheel("nvidia-nccl-cu12", "2.20.5", {"nvidia/nccl/lib/libnccl.so.2": lib()})
    world.wheel("torch", "2.3.1", {"torch/lib/libtorch_cuda.so": lib(
        needs=("libnccl.so.2",), runpath="$ORIGIN/../../nvidia/nccl/lib")})
    world.library(f"/opt/new/{JIT}", lib(offers=jit(*range(10)))).library("/opt/new/libnccl.so.2", lib())
    world.opens("torch/lib/libtorch_cuda.so").environ(LD_LIBRARY_PATH="/opt/new")
    findings = told(world)
    assert [(each.code, each.severity, each.culprit.path, each.culprit.variable) for each in findings] == [
        ("SF102", "note", "/opt/new", "LD_LIBRARY_PATH")]
    assert findings[0].summary in {f"{one}, {other} of /opt/new (LD_LIBRARY_PATH) win, and lack nothing"
                                   for one, other in ((JIT, "libnccl.so.2"), ("libnccl.so.2", JIT))}
    assert not findings[0].repairable
    assert world.really() == ""


def test_the_system_beside_the_environment_is_no_shadow(tmp_path: Path) -> None:
    """libraries that the environment does not have, and those that are no part of the GPU stack."""
    world = stack(tmp_path, conda=True).conda("libstdcxx", "14.2.0", {"lib/libstdc++.so.6": lib()})
    world.library("m/m.abi3.so", lib(needs=("libstdc++.so.6", "libgcc_s.so.1")))
    world.library(f"{SYSTEM}/libcufft.so.11", lib()).library("m/n.abi3.so", lib(needs=("libcufft.so.11",)))
    assert told(world.opens("m/m.abi3.so").opens("m/n.abi3.so")) == []


def test_an_element_that_leads_to_the_right_copy_is_no_shadow(tmp_path: Path) -> None:
    world = stack(tmp_path)
    assert told(world.environ(LD_LIBRARY_PATH=f"{world.site}/nvidia/nvjitlink/lib")) == []


def test_rpath_beats_the_path(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-nccl-cu12", "2.19.3", {
        "nvidia/nccl/lib/libnccl.so.2": lib(offers=("ncclCommRegister",))})
    world.wheel("torch", "2.2.0", {"torch/lib/libtorch_cuda.so": lib(
        needs=("libnccl.so.2",), wants=("ncclCommRegister",), rpath="$ORIGIN/../../nvidia/nccl/lib")})
    world.library("/opt/nccl/libnccl.so.2", lib()).environ(LD_LIBRARY_PATH="/opt/nccl")
    assert told(world.opens("torch/lib/libtorch_cuda.so")) == []
    assert world.really() == ""


@pytest.mark.parametrize("first", ["conda", "wheel"])
def test_an_older_cudnn_is_a_warning(tmp_path: Path, first: str) -> None:
    """The whole conda lib folder lies before the wheel's; cuDNN compares versions when it runs."""
    world = World(tmp_path, conda=True)
    world.wheel("nvidia-cudnn-cu11", "8.6.0.163", {"nvidia/cudnn/lib/libcudnn.so.8": lib()})
    world.conda("cudnn", "8.1.0.77", {"lib/libcudnn.so.8.1.0": lib(soname="libcudnn.so.8")})
    world.link(f"{world.prefix}/lib/libcudnn.so.8", "libcudnn.so.8.1.0")
    folders = [f"{world.prefix}/lib", f"{world.site}/nvidia/cudnn/lib"]
    world.environ(LD_LIBRARY_PATH=":".join(folders if first == "conda" else folders[::-1]))
    framework = "tensorflow/libtensorflow_cc.so.2"      # its RUNPATH keeps the RPATH of conda's Python out
    world.library(framework, lib(runpath="$ORIGIN")).opens(framework, project="tensorflow")
    findings = told(world.opens("libcudnn.so.8", project="tensorflow", phase="first use", caller=framework))
    if first == "wheel":
        assert findings == []
        return
    assert [(each.code, each.severity, each.error, each.level) for each in findings] == [
        ("SF101", "warning", None, "cudnn")]
    assert findings[0].winner == f"{world.prefix}/lib/libcudnn.so.8"
    assert findings[0].loser == f"{world.site}/nvidia/cudnn/lib/libcudnn.so.8"
    assert "8.1.0" in findings[0].summary
    assert "8.6.0.163" in findings[0].summary
    script = f"{world.prefix}/etc/conda/activate.d/env_vars.sh"
    world.write(script, "export LD_LIBRARY_PATH=$CONDA_PREFIX/lib/:" + folders[1] + "\n")
    assert told(world) == []                    # SF1101 tells it, with the line that does it


def test_a_newer_cudnn_is_harmless(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {"nvidia/cudnn/lib/libcudnn.so.9": lib()})
    world.wheel("torch", "2.4.0", {"torch/lib/libtorch.so": lib(
        needs=("libcudnn.so.9",), runpath="$ORIGIN/../../nvidia/cudnn/lib")})
    world.library("/opt/cudnn/libcudnn.so.9.5.1", lib(soname="libcudnn.so.9"))
    world.link("/opt/cudnn/libcudnn.so.9", "libcudnn.so.9.5.1").environ(LD_LIBRARY_PATH="/opt/cudnn")
    assert [each.code for each in told(world.opens("torch/lib/libtorch.so"))] == ["SF102"]


def test_parts_of_several_versions_are_left_to_the_check_of_mixes(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        "nvidia/cudnn/lib/libcudnn.so.9": lib(runpath="$ORIGIN"), "nvidia/cudnn/lib/libcudnn_ops.so.9": lib()})
    world.library("/opt/cudnn/libcudnn_ops.so.9", lib()).environ(LD_LIBRARY_PATH="/opt/cudnn")
    world.opens("nvidia/cudnn/lib/libcudnn.so.9").opens("libcudnn_ops.so.9", caller="nvidia/cudnn/lib/libcudnn.so.9")
    assert told(world) == []


def test_who_needs_it_is_told_by_its_tidy_path(tmp_path: Path) -> None:
    """The loader's own lines keep the `..` of torch's RPATH."""
    world = stack(tmp_path).opens_nothing().library(f"/opt/old/{JIT}", lib(**old()))
    world.library("torch/lib/libtorch_cuda.so", lib(
        needs=("libcusparse.so.12",), rpath="$ORIGIN/../../nvidia/cusparse/lib"))
    finding = only(world.opens("torch/lib/libtorch_cuda.so", project="torch").environ(LD_LIBRARY_PATH="/opt/old"))
    assert finding.requester is not None
    assert finding.requester.path == world.inside(CUSPARSE)
    assert f"{world.site}/torch/lib/../../{CUSPARSE}" in (finding.error or "")
    assert any("/torch/lib/../../" in each for each in finding.evidence)


@pytest.mark.parametrize("element", ["", "old", "./old/../old"])
def test_what_a_relative_element_gives_is_told_by_its_whole_path(tmp_path: Path, element: str) -> None:
    folder = "/old" if element else "/"
    world = stack(tmp_path).library(f"{folder.rstrip('/')}/{JIT}", lib(**old())).environ(LD_LIBRARY_PATH=f"{element}:")
    finding = next(each for each in told(world) if each.code == "SF101")
    assert finding.culprit.path == finding.winner == f"{folder.rstrip('/')}/{JIT}"
    assert finding.summary.startswith(f"{JIT} of {folder} (LD_LIBRARY_PATH) wins")


def test_a_whole_newer_toolkit_on_the_path_is_one_note(tmp_path: Path) -> None:
    world = install_torch(World(tmp_path), "2.3.1")
    world.toolkit("/usr/local/cuda-12.6", "12.6.2")
    for path in sorted(world.host(f"{world.site}/nvidia").glob("*/lib/*.so.*")):
        if "cudnn" not in path.name:
            world.write(f"/usr/local/cuda-12.6/lib64/{path.name}", path.read_bytes())
    found = diagnose(world.environ(LD_LIBRARY_PATH="/usr/local/cuda-12.6/lib64").view(load_libraries())).findings
    assert [(each.code, each.severity, each.culprit.path) for each in found] == [
        ("SF102", "note", "/usr/local/cuda-12.6/lib64")]
    assert {JIT, "libnvrtc-builtins.so.12.1"} <= {each.partition(",")[0] for each in found[0].evidence}


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "LD_PRELOAD"])
def test_a_foreign_copy_of_a_library_of_the_system(tmp_path: Path, variable: str) -> None:
    """An old zlib on the path: no version and no family tells whose inflateInit2_ is."""
    world = World(tmp_path).library(f"{SYSTEM}/libz.so.1", lib(offers=("inflateInit2_", "crc32")))
    world.library("/opt/vendor/libz.so.1", lib(offers=("crc32",)))
    world.wheel("mine", "1.0", {"mine/_m.abi3.so": lib(needs=("libz.so.1",), wants=("crc32", "inflateInit2_"))})
    assert told(world.opens("mine/_m.abi3.so", project="mine")) == []
    folder = "/opt/vendor" if variable == "LD_LIBRARY_PATH" else "/opt/vendor/libz.so.1"
    finding, = diagnose(world.environ(**{variable: folder}).view()).findings
    assert (finding.code, finding.severity, finding.winner, finding.loser) == (
        "SF101", "error", "/opt/vendor/libz.so.1", f"{SYSTEM}/libz.so.1")
    assert (finding.culprit.variable, finding.symbols) == (variable, ("inflateInit2_",))
    assert finding.cure == (f"unset {variable}",)       # the system's folder is nothing to put first
    assert not finding.repairable
    assert finding.error == world.really().splitlines()[0]
