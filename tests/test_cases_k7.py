"""Public reports on files, links and scripts of an environment: overwritten, lost, in the wrong order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.case_worlds import STATE, TAG, bare, install_nvidia, install_torch, is_clean, judge, libraries_of, linked
from tests.cli_world import Say
from tests.diagnose_world import INTERPRETER, SYSTEM, World, lib
from tests.loader_oracle.graph import Library

# --- NVIDIA/cutlass#3259: two required wheels own one path ---

RUNTIME = "nvidia_cutlass_dsl/lib/libcute_dsl_runtime.so"
IR = f"nvidia_cutlass_dsl/python_packages/cutlass/_mlir/_mlir_libs/_cutlass_ir.{TAG}"
MAIN = "nvidia-cutlass-dsl"


def cutlass(folder: Path, *order: str, version: str = "4.5.1", cuda: str = "cu13") -> World:
    """Installers that work in parallel extract the two in any order."""
    world = World(folder)
    world.wheel(MAIN, version, {"nvidia_cutlass_dsl.pth": "nvidia_cutlass_dsl/python_packages\n"}, requires=(
        f"{MAIN}-libs-base=={version}", f'{MAIN}-libs-{cuda}=={version}; extra == "{cuda}"'))
    for each in order:
        names = tuple(f"cute_{each}_{number}" for number in range(3 if each == "base" else 30))
        world.wheel(f"{MAIN}-libs-{each}", version, linked({RUNTIME: lib(offers=names), IR: lib(offers=names)}),
                    requires=() if each == "base" else (f"{MAIN}-libs-base=={version}",))
    return world


@pytest.mark.parametrize(("version", "cuda"), [("4.5.1", "cu13"), ("4.4.0", "cu12")])
def test_the_base_libraries_extracted_last(version: str, cuda: str, tmp_path: Path, say: Say) -> None:
    world = cutlass(tmp_path, cuda, "base", version=version, cuda=cuda)
    judged = judge(say, world)
    assert (judged.status, judged.codes) == (1, ["SF701"])
    finding = judged.only("SF701")
    assert (finding["kind"], finding["severity"]) == ("overwritten-file", "error")
    assert finding["culprit"]["path"] in {world.inside(RUNTIME), world.inside(IR)}
    assert finding["culprit"]["package"] == f"{MAIN}-libs-base {version}"
    assert finding["requester"]["package"] == f"{MAIN}-libs-{cuda} {version}"
    assert finding["symbols"] == []
    for file in (RUNTIME, IR):
        assert any(file in each for each in finding["evidence"])
    assert any(f"--force-reinstall --no-deps {MAIN}-libs-{cuda}=={version}" in each for each in finding["cure"])
    # reinstalled last, its content lies on top
    assert is_clean(say, cutlass(tmp_path / "cured", "base", cuda, version=version, cuda=cuda))
    assert is_clean(say, cutlass(tmp_path / "alone", "base", version=version, cuda=cuda))


# --- pytorch/pytorch#157709: the soname link of the environment's libstdc++ is gone ---

GLIBCXX = "libstdc++.so.6"
OLD = ("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.19", "CXXABI_1.3.7")


def old_system(folder: Path, *, python: str = "rpath") -> World:
    """A conda environment on a system with a libstdc++ of 2014."""
    world = World(folder, conda=True)
    path = {python: "$ORIGIN/../lib"}
    world.library(f"{world.prefix}/bin/python", lib(needs=("libc.so.6",), **path), interpreter=INTERPRETER)
    return world.library(f"{SYSTEM}/{GLIBCXX}", lib(versions=OLD))


def needs(version: str, **more: str) -> Library:
    return lib(needs=(GLIBCXX,), wants=(f"a_function@{version}@{GLIBCXX}",), **more)


def with_own_libstdcxx(folder: Path, package: str, release: str, full: str, version: str) -> World:
    """The environment's own is newer; pip's torch needs one of its versions."""
    world = old_system(folder)
    library = lib(soname=GLIBCXX, offers=(f"a_function@{version}",), versions=(*OLD, version))
    world.conda(package, release, {f"lib/{full}": library})
    world.link(f"{world.prefix}/lib/{GLIBCXX}", full)
    return world.wheel("torch", "2.7.1", linked({
        "torch/lib/libtorch_global_deps.so": lib(), "torch/lib/libc10.so": lib(offers=(STATE,)),
        "torch/lib/libtorch_python.so": replace(needs(version, rpath="$ORIGIN"), needed=(GLIBCXX, "libc10.so")),
        f"torch/_C.{TAG}": lib(needs=("libtorch_python.so",), rpath="$ORIGIN/lib")}))


@pytest.mark.parametrize(("package", "release", "full", "version"), [
    ("libstdcxx", "15.1.0", "libstdc++.so.6.0.34", "GLIBCXX_3.4.30"),
    ("libstdcxx-ng", "11.4.0", "libstdc++.so.6.0.29", "GLIBCXX_3.4.26"),
])
def test_the_link_of_libstdcxx_is_gone(package: str, release: str, full: str, version: str, tmp_path: Path,
                                       say: Say) -> None:
    world = with_own_libstdcxx(tmp_path, package, release, full, version)
    assert is_clean(say, world)
    lost = f"{world.prefix}/lib/{GLIBCXX}"
    judged = judge(say, world.remove(lost))
    assert (judged.status, judged.codes) == (1, ["SF801"])
    finding = judged.only("SF801")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("broken-link", "error", "environment")
    assert finding["culprit"] == {"path": lost, "package": f"{package} {release}", "variable": None}
    assert (finding["winner"], finding["loser"]) == (f"{SYSTEM}/{GLIBCXX}", f"{world.prefix}/lib/{full}")
    assert finding["requester"] == {"path": world.inside("torch/lib/libtorch_python.so"), "package": "torch 2.7.1"}
    line = f"{GLIBCXX}: version `{version}' not found (required by libtorch_python.so)"
    assert bare(finding["error"]) == line
    assert finding["cure"][0] == f"ln -s {full} {lost}"                 # relative, as the package has it
    assert any(f"--force-reinstall {package}" in each for each in finding["cure"])
    world.link(lost, full)
    assert is_clean(say, world)


# --- tensorflow/docs#2251: an activation script with the general folder first ---

CUDNN = "nvidia/cudnn/lib"
RECIPE = 'CUDNN_PATH=$(dirname $(python -c "import nvidia.cudnn;print(nvidia.cudnn.__file__)"))\n'
GUIDE = RECIPE + "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$CONDA_PREFIX/lib/:$CUDNN_PATH/lib\n"
RIGHT = RECIPE + ("export OLD_LD_LIBRARY_PATH=$LD_LIBRARY_PATH\n"
                  "export LD_LIBRARY_PATH=$CUDNN_PATH/lib:$CONDA_PREFIX/lib/${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n")


def guided(folder: Path, script: str, conda: str = "8.1.0.77", pip: str = "8.6.0.163", stem: str = "env_vars") -> World:
    """cuDNN of conda and of pip in one environment, and the script of an installation guide."""
    world = World(folder, conda=True)
    world.conda("cudnn", conda, {f"lib/{name}": library for name, library in libraries_of("cudnn", 11, conda)})
    install_nvidia(world, "nvidia-cublas-cu11", "11.11.3.6")
    install_nvidia(world, "nvidia-cudnn-cu11", pip).write(world.inside("nvidia/cudnn/__init__.py"))
    world.wheel("tensorflow", "2.12.0", linked({"tensorflow/python/_pywrap_tensorflow_internal.so": lib(
        needs=("libcudnn.so.8",), runpath="$ORIGIN")}))
    for phase, text in (("activate", script), ("deactivate", "export LD_LIBRARY_PATH=$OLD_LD_LIBRARY_PATH\n")):
        world.write(f"{world.prefix}/etc/conda/{phase}.d/{stem}.sh", text)
    return world.environ(CONDA_PREFIX=world.prefix)


@pytest.mark.parametrize(("conda", "pip", "stem"), [("8.1.0.77", "8.6.0.163", "env_vars"),
                                                    ("8.2.1.32", "8.9.4.25", "cuda")])
def test_the_script_of_the_guide(conda: str, pip: str, stem: str, tmp_path: Path, say: Say) -> None:
    world = guided(tmp_path, GUIDE, conda, pip, stem)
    script, general = f"{world.prefix}/etc/conda/activate.d/{stem}.sh", f"{world.prefix}/lib"
    judged = judge(say, world.environ(LD_LIBRARY_PATH=f"{general}/:{world.inside(CUDNN)}"))
    assert (judged.status, judged.codes) == (0, ["SF1101"])
    finding = judged.only("SF1101")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("activation-order", "warning", "cudnn")
    assert judge(say, world, "--fail-on", "warning").status == 1
    assert finding["culprit"] == {"path": script, "package": f"cudnn {conda}", "variable": "LD_LIBRARY_PATH"}
    assert (finding["winner"], finding["loser"]) == (f"{general}/libcudnn.so.8",
                                                     world.inside(f"{CUDNN}/libcudnn.so.8"))
    assert any(conda in each and pip in each for each in finding["evidence"])
    assert finding["cure"][0].startswith(f"in {script}: put {world.inside(CUDNN)} before {general}")
    assert any(f"conda remove --prefix {world.prefix} --force cudnn" in each for each in finding["cure"])


def test_the_specific_folder_first(tmp_path: Path, say: Say) -> None:
    world = guided(tmp_path, RIGHT)
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=f"{world.inside(CUDNN)}:{world.prefix}/lib/"))


def test_one_copy_is_enough(tmp_path: Path, say: Say) -> None:
    world = guided(tmp_path, GUIDE)
    for path in [*world.host(f"{world.prefix}/lib").glob("libcudnn*"),
                 *world.host(f"{world.prefix}/conda-meta").glob("cudnn-*")]:
        path.unlink()
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=f"{world.prefix}/lib/:{world.inside(CUDNN)}"))


def test_the_same_order_without_a_script_is_told_once(tmp_path: Path, say: Say) -> None:
    """A shell's start-up file sets it: all parts of cuDNN are one finding."""
    world = guided(tmp_path, "export SOMETHING=1\n")
    judged = judge(say, world.environ(LD_LIBRARY_PATH=f"{world.prefix}/lib/:{world.inside(CUDNN)}"))
    assert [each for each in judged.codes if each != "SF1102"] == ["SF101"]
    finding = judged.only("SF101", "SF1102")
    assert (finding["severity"], finding["winner"]) == ("warning", f"{world.prefix}/lib/libcudnn.so.8")
    assert finding["loser"] == world.inside(f"{CUDNN}/libcudnn.so.8")
    assert finding["symbols"] == []


# --- hpcaitech/ColossalAI#2048: pip writes its torch over conda's ---

def conda_torch(folder: Path, version: str, build: str, *, metadata: bool) -> World:
    """torch as conda installs it; old builds have no metadata that pip would see."""
    world = World(folder, conda=True)
    site = world.site.removeprefix(f"{world.prefix}/")
    info = {f"{site}/torch-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"}
    world.conda("pytorch", version, {
        f"{site}/torch/__init__.py": "# conda's\n", f"{site}/torch/version.py": f"__version__ = '{version}' # conda\n",
        f"{site}/torch/lib/libc10.so": lib(offers=(STATE, "of_conda")),
        f"{site}/torch/lib/libtorch_cpu.so": lib(needs=("libc10.so",), offers=("of_conda_too",), rpath="$ORIGIN"),
        f"{site}/torch/lib/libtorch_global_deps.so": lib(),
        f"{site}/torch/_C.{TAG}": lib(needs=("libtorch_cpu.so",), rpath="$ORIGIN/lib"),
        f"{site}/torch/lib/libleft_by_conda.so": lib(), **(info if metadata else {}),
    }, build=build)
    return world


@pytest.mark.parametrize(("version", "build", "pip"), [
    ("1.13.1", "py3.11_cuda11.7_cudnn8.5.0_0", "2.1.2"), ("2.0.1", "py3.11_cpu_0", "2.3.1"),
])
def test_pip_writes_over_a_torch_of_conda(version: str, build: str, pip: str, tmp_path: Path, say: Say) -> None:
    world = conda_torch(tmp_path, version, build, metadata=False)
    assert is_clean(say, world)
    judged = judge(say, install_torch(world, pip))
    assert (judged.status, judged.codes) == (1, ["SF701"])
    finding = judged.only("SF701")
    assert (finding["kind"], finding["severity"]) == ("overwritten-file", "error")
    assert finding["culprit"]["package"] == f"pytorch {version}"
    assert finding["culprit"]["path"].startswith(world.inside("torch/"))
    assert finding["requester"]["package"] == f"torch {pip}"
    assert f"pytorch {version} (conda) and torch {pip}" in finding["summary"]
    assert finding["cure"][0].startswith("conda remove ")
    assert f"--force-reinstall --no-deps torch=={pip}" in finding["cure"][1]
    # one owner only
    assert is_clean(say, install_torch(World(tmp_path / "one", conda=True), pip))


def test_where_conda_left_its_metadata(tmp_path: Path, say: Say) -> None:
    """pip takes the metadata away with the torch that it replaces; conda's list of files stays."""
    world = conda_torch(tmp_path, "2.3.1", "py3.11_cpu_0", metadata=True)
    assert is_clean(say, world)
    judged = judge(say, install_torch(world, "2.4.0"))          # replaces the dist-info of the same project
    assert judged.status == 1
    finding = judged.only("SF703")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("two-installations", "error", "torch")
    assert "torch 2.4.0 and pytorch 2.3.1 (conda)" in finding["summary"]
    assert any("libleft_by_conda.so" in each for each in finding["evidence"])
    assert any(each.endswith("# keep conda's") for each in finding["cure"])


# --- pytorch/pytorch#115138: whichever import comes first maps its libstdc++ ---

MODULE = f"_youtokentome_cython.{TAG}"


def tokenizer(folder: Path, *requires: str, python: str = "runpath", version: str = "GLIBCXX_3.4.20") -> World:
    """torch from pip has no way to the environment's lib folder; what was compiled in the environment has."""
    world = old_system(folder, python=python)
    world.conda("libstdcxx-ng", "13.2.0", {f"lib/{GLIBCXX}": lib(
        offers=(f"a_function@{version}",), versions=(*OLD, version))})
    world.wheel("torch", "2.1.0+cu118", linked({
        "torch/lib/libtorch_global_deps.so": lib(), "torch/lib/libc10.so": lib(),
        "torch/lib/libtorch_python.so": lib(needs=("libc10.so", GLIBCXX), rpath="$ORIGIN"),
        f"torch/_C.{TAG}": lib(needs=("libtorch_python.so",), rpath="$ORIGIN/lib")}))
    world.wheel("click", "8.1.7")
    return world.wheel("youtokentome", "1.0.6", linked({MODULE: needs(version, rpath=f"{world.prefix}/lib")}),
                       requires=("Click", *requires))


@pytest.mark.parametrize("version", ["GLIBCXX_3.4.20", "GLIBCXX_3.4.26"])
@pytest.mark.parametrize("requires_torch", [False, True])
def test_torch_maps_the_systems_libstdcxx_first(requires_torch: bool, version: str, tmp_path: Path, say: Say) -> None:
    """Where the package does not require torch, the order is the program's: a warning."""
    world = tokenizer(tmp_path, *(("torch",) if requires_torch else ()), version=version)
    judged = judge(say, world)
    assert judged.codes == ["SF903"]
    finding = judged.only("SF903")
    assert judged.status == int(requires_torch)
    assert (finding["kind"], finding["level"]) == ("libstdcxx-too-old", "environment")
    assert finding["severity"] == ("error" if requires_torch else "warning")
    assert finding["culprit"] == {"path": f"{SYSTEM}/{GLIBCXX}", "package": None, "variable": None}
    assert (finding["winner"], finding["loser"]) == (f"{SYSTEM}/{GLIBCXX}", f"{world.prefix}/lib/{GLIBCXX}")
    assert finding["requester"] == {"path": world.inside(MODULE), "package": "youtokentome 1.0.6"}
    line = f"{GLIBCXX}: version `{version}' not found (required by {MODULE})"
    assert bare(finding["error"]) == line
    assert "the first copy serves the whole process" in finding["why"]
    assert "torch" in finding["why"]
    assert any(f"LD_LIBRARY_PATH={world.prefix}/lib/newer" in each for each in finding["cure"])
    assert not any("remove the system" in each for each in finding["cure"])
    # the narrow folder, as the cure says
    for name in (GLIBCXX, "libgcc_s.so.1"):
        world.link(f"{world.prefix}/lib/newer/{name}", f"../{name}")
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=f"{world.prefix}/lib/newer"))


def test_a_python_whose_rpath_serves_all_has_no_such_order(tmp_path: Path, say: Say) -> None:
    """The RPATH of the program counts for each library without RUNPATH: torch takes the environment's copy too."""
    assert is_clean(say, tokenizer(tmp_path, python="rpath"))
