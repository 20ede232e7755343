"""Reports on libraries that torch and its extensions need in another version or do not find: built and judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.cli import inspecting
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.library_records import Libraries
from tests.case_worlds import (
    C10_OPTIONAL,
    CHECK_OLD,
    STATE,
    STD_OPTIONAL,
    TAG,
    bare,
    build_of,
    install_nvidia,
    install_torch,
    is_clean,
    judge,
    libraries_of,
    linked,
    minor_of,
)
from tests.cli_world import Say
from tests.diagnose_world import World, lib
from tests.loader_oracle.graph import Library


def library_of(name: str, version: str, major: int = 12) -> Library:
    """The main library of one wheel."""
    return next(iter(libraries_of(name, major, version)))[1]


def really(world: World, *more: str) -> str:
    """What this machine's loader says to torch's own files, and to others behind them."""
    world.opens_nothing()
    for each in ("torch/lib/libtorch_global_deps.so", f"torch/_C.{TAG}", *more):
        world.opens(each)
    return world.really()


# --- vllm-project/vllm#4195: NCCL 2.18 under torch 2.2, which needs functions of 2.19 ---

NCCL, REGISTER = "nvidia/nccl/lib/libnccl.so.2", "libtorch_cuda.so: undefined symbol: ncclCommRegister"
FUNCTIONS = ["ncclCommRegister", "ncclCommDeregister"]
ELSEWHERE = "/opt/nccl-2.18/lib"


def with_old_nccl(folder: Path, torch: str = "2.2.0", *, version: str = "2.18.1", nccl: str | None = None) -> World:
    """torch, and an older NCCL that no installer knows."""
    world = World(folder)
    install_torch(world, torch) if nccl is None else install_torch(world, torch, nccl=nccl)
    return world.library(f"{ELSEWHERE}/libnccl.so.2", library_of("nccl", version))


@pytest.mark.parametrize(("torch", "nccl", "pin"), [("2.2.0", "2.18.1", "2.19.3"), ("2.2.2", "2.18.3", "2.19.3"),
                                                    ("2.3.1", "2.16.5", "2.20.5"), ("2.5.1", "2.18.1", "2.21.5")])
def test_an_older_nccl_wheel_in_place_of_torchs_pin(torch: str, nccl: str, pin: str, tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), torch)
    assert is_clean(say, world)
    judged = judge(say, install_nvidia(world, "nvidia-nccl-cu12", nccl))
    assert (judged.status, judged.codes) == (1, ["SF201"])
    finding = judged.only("SF201")
    assert (finding["kind"], finding["severity"]) == ("library-too-old", "error")
    assert finding["culprit"] == {"path": world.inside(NCCL), "package": f"nvidia-nccl-cu12 {nccl}", "variable": None}
    assert finding["requester"] == {"path": world.inside("torch/lib/libtorch_cuda.so"), "package": f"torch {torch}"}
    assert finding["symbols"] == FUNCTIONS
    assert bare(finding["error"]) == REGISTER
    assert f"requires nvidia-nccl-cu12=={pin}" in finding["why"]
    assert f" -m pip install --no-deps 'nvidia-nccl-cu12=={pin}'" in finding["cure"][0]
    assert REGISTER in bare(really(world))


def test_a_preloaded_nccl(tmp_path: Path, say: Say) -> None:
    world = with_old_nccl(tmp_path)
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_PRELOAD=f"{ELSEWHERE}/libnccl.so.2"))
    assert (judged.status, judged.codes) == (1, ["SF101"])
    finding = judged.only("SF101")
    assert finding["culprit"] == {"path": f"{ELSEWHERE}/libnccl.so.2", "package": None, "variable": "LD_PRELOAD"}
    assert (finding["winner"], finding["loser"]) == (f"{ELSEWHERE}/libnccl.so.2", world.inside(NCCL))
    assert finding["symbols"] == FUNCTIONS
    assert bare(finding["error"]) == REGISTER
    assert finding["cure"] == ["unset LD_PRELOAD"]          # a path would come too late
    assert REGISTER in bare(really(world))


def test_nccl_on_the_path_is_not_to_blame_while_the_wheel_is_there(tmp_path: Path, say: Say) -> None:
    """torch's RPATH to nvidia/nccl/lib comes first."""
    world = with_old_nccl(tmp_path).environ(LD_LIBRARY_PATH=ELSEWHERE)
    assert is_clean(say, world)
    assert REGISTER not in bare(really(world))


@pytest.mark.parametrize("installed", [True, False])
def test_nccl_on_the_path_where_the_wheel_is_gone(installed: bool, tmp_path: Path, say: Say) -> None:
    world = with_old_nccl(tmp_path, nccl=None if installed else "")
    if installed:
        world.remove(NCCL)                                  # its dist-info is still there
    judged = judge(say, world.environ(LD_LIBRARY_PATH=ELSEWHERE))
    assert judged.status == 1
    finding = judged.only("SF403")
    assert (finding["kind"], finding["severity"]) == ("foreign-library", "error")
    assert (finding["culprit"]["path"], finding["culprit"]["variable"]) == (f"{ELSEWHERE}/libnccl.so.2",
                                                                          "LD_LIBRARY_PATH")
    assert finding["culprit"]["package"].startswith("nvidia-nccl-cu12")
    assert (finding["symbols"], bare(finding["error"])) == (FUNCTIONS, REGISTER)
    assert "install" in finding["cure"][0]
    assert "nvidia-nccl-cu12==2.19.3" in finding["cure"][0]
    assert REGISTER in bare(really(world))


# --- pytorch/pytorch#157381: CUPTI of the toolkit 12.4 under torch 2.8 ---

CUPTI = "nvidia/cuda_cupti/lib/libcupti.so.12"
DRIVER_API = "libtorch_cpu.so: undefined symbol: cuptiActivityEnableDriverApi, version libcupti.so.12"
BOTH = ["cuptiActivityEnableDriverApi", "cuptiActivityEnableRuntimeApi"]


def with_toolkit(folder: Path, cupti: str, *, rpath: str | None = None, wheel: str = "12.8.90") -> World:
    """torch 2.8.0 and a toolkit with the CUPTI of its release; `rpath`: of torch's libraries, in place of their own."""
    world = install_torch(World(folder), "2.8.0", rpath=rpath, cuda_cupti=wheel)
    release = ".".join(cupti.split(".")[:2])
    world.toolkit(f"/usr/local/cuda-{release}", f"{release}.1")
    return world.library(f"/usr/local/cuda-{release}/extras/CUPTI/lib64/libcupti.so.12",
                         library_of("cuda-cupti", cupti))


@pytest.mark.parametrize(("cupti", "fails"), [("12.4.127", True), ("12.1.105", True), ("12.5.82", False)])
def test_a_preloaded_cupti(cupti: str, fails: bool, tmp_path: Path, say: Say) -> None:
    world = with_toolkit(tmp_path, cupti)
    path = f"/usr/local/cuda-{'.'.join(cupti.split('.')[:2])}/extras/CUPTI/lib64"
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=path))           # torch's RPATH comes first
    assert DRIVER_API not in bare(really(world))
    world.variables.clear()
    judged = judge(say, world.environ(LD_PRELOAD=f"{path}/libcupti.so.12"))
    assert judged.status == int(fails)
    assert (DRIVER_API in bare(really(world))) == fails
    if fails:
        finding = judged.only("SF101")
        assert finding["culprit"] == {"path": f"{path}/libcupti.so.12", "package": None, "variable": "LD_PRELOAD"}
        assert finding["requester"] == {"path": world.inside("torch/lib/libtorch_cpu.so"), "package": "torch 2.8.0"}
        assert (finding["symbols"], bare(finding["error"])) == (BOTH, DRIVER_API)
        assert finding["loser"] == world.inside(CUPTI)
        assert finding["cure"] == ["unset LD_PRELOAD"]


def test_the_toolkits_cupti_where_the_wheel_is_not_there(tmp_path: Path, say: Say) -> None:
    path = "/usr/local/cuda-12.4/extras/CUPTI/lib64"
    world = with_toolkit(tmp_path, "12.4.127", wheel="").environ(LD_LIBRARY_PATH=path)
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF403")
    assert (finding["culprit"]["path"], finding["culprit"]["variable"]) == (f"{path}/libcupti.so.12",
                                                                          "LD_LIBRARY_PATH")
    assert (finding["symbols"], bare(finding["error"])) == (BOTH, DRIVER_API)
    assert "nvidia-cuda-cupti-cu12==12.8.90" in finding["cure"][0]
    assert DRIVER_API in bare(really(world))


def test_a_wheel_of_cupti_older_than_torchs_pin(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.8.0", cuda_cupti="12.4.127")
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF201")
    assert finding["culprit"]["package"] == "nvidia-cuda-cupti-cu12 12.4.127"
    assert (finding["symbols"], bare(finding["error"])) == (BOTH, DRIVER_API)
    assert " -m pip install --no-deps 'nvidia-cuda-cupti-cu12==12.8.90'" in finding["cure"][0]


def test_the_release_candidate_had_no_rpath_to_the_wheel(tmp_path: Path, say: Say) -> None:
    """Its search began with nvidia/cudnn/lib, and ended in the toolkit."""
    path = "/usr/local/cuda-12.4/extras/CUPTI/lib64"
    folders = ("cudnn", "cuda_nvrtc", "cuda_runtime", "cublas", "cufft", "curand", "cusolver", "cusparse", "cusparselt",
               "nccl", "nvtx", "nvjitlink", "cufile")
    rpath = ":".join((*(f"$ORIGIN/../../nvidia/{each}/lib" for each in folders), "$ORIGIN"))
    world = with_toolkit(tmp_path, "12.4.127", rpath=rpath).environ(LD_LIBRARY_PATH=path)
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF101")
    assert finding["culprit"] == {"path": f"{path}/libcupti.so.12", "package": None, "variable": "LD_LIBRARY_PATH"}
    assert finding["loser"] == world.inside(CUPTI)
    assert (finding["symbols"], bare(finding["error"])) == (BOTH, DRIVER_API)
    assert finding["cure"][0] == "unset LD_LIBRARY_PATH"
    assert any("nvidia/cuda_cupti/lib${LD_LIBRARY_PATH" in each for each in finding["cure"])
    assert DRIVER_API in bare(really(world))


# --- vllm-project/vllm#1718: vllm for CUDA 12 beside a torch for CUDA 11 ---

OPS = ("attention_ops", "cache_ops", "cuda_utils", "pos_encoding_ops", "layernorm_ops", "activation_ops",
       "quantization_ops")
NO_CUDART = "libcudart.so.12: cannot open shared object file: No such file or directory"


def install_vllm(world: World, version: str, cudart: str, *requires: str) -> World:
    """Its modules are linked against CUDA's runtime themselves; they find torch's libraries once torch is imported."""
    return world.wheel("vllm", version, linked({f"vllm/{name}.{TAG}": lib(
        needs=("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libcudart.so." + cudart),
        wants=(STATE, CHECK_OLD, f"cudaMalloc@libcudart.so.{cudart}")) for name in OPS}), requires=requires)


def install_cu118(world: World, version: str) -> World:
    """torch from the cu118 index, which carries its CUDA libraries itself."""
    rpath, cudart = "$ORIGIN", "libcudart-d0da41ae.so.11.0"
    optional = C10_OPTIONAL if minor_of(version) < (2, 2) else STD_OPTIONAL
    own = {
        "libc10.so": lib(offers=(STATE, CHECK_OLD)),
        "libc10_cuda.so": lib(needs=("libc10.so", cudart), offers=("_ZN3c104cuda9SetDeviceEi",)),
        "libtorch_cpu.so": lib(needs=("libc10.so", cudart), offers=(optional,)),
        "libtorch_cuda.so": lib(needs=("libc10_cuda.so", cudart, "libcublas.so.11", "libcudnn.so.8",
                                       "libtorch_cpu.so")),
        "libtorch.so": lib(needs=("libtorch_cpu.so", "libtorch_cuda.so")),
        "libtorch_cuda_linalg.so": lib(needs=("libtorch_cuda.so",)),
        "libtorch_python.so": lib(needs=("libtorch.so",)),
        "libtorch_global_deps.so": lib(needs=(cudart,)),
        cudart: lib(offers=("cudaMalloc@libcudart.so.11.0",)), "libcublas.so.11": lib(needs=("libcublasLt.so.11",)),
        "libcublasLt.so.11": lib(), "libnvrtc-672ee683.so.11.2": lib(), "libnvrtc.so.11.2": lib(),
        **{name: replace(library, runpath=None) for name, library in libraries_of("cudnn", 11, "8.7.0.84")},
    }
    files = {f"torch/lib/{name}": replace(library, rpath=rpath) for name, library in own.items()}
    files[f"torch/_C.{TAG}"] = lib(needs=("libtorch_python.so",), rpath="$ORIGIN/lib")
    plain = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2")
    world.wheel("torch", f"{version}+cu118", linked(files), requires=plain)
    for name in plain:
        world.wheel(name, "4.12.2")
    return world


@pytest.mark.parametrize("torch", ["2.1.0", "2.0.1", "2.1.2"])
def test_vllm_for_cuda_12_beside_a_torch_for_cuda_11(torch: str, tmp_path: Path, say: Say) -> None:
    world = install_cu118(World(tmp_path), torch)
    assert is_clean(say, world)
    judged = judge(say, install_vllm(world, "0.2.2", "12", "torch>=2.1.0"))
    assert judged.status == 1
    finding = judged.only("SF504", "SF601")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("cuda-major-mismatch", "error", "extensions")
    assert finding["culprit"]["package"] == "vllm 0.2.2"
    assert Path(finding["culprit"]["path"]).name in {f"{each}.{TAG}" for each in OPS}
    assert bare(finding["error"]) == NO_CUDART
    assert finding["symbols"] == []
    assert sum(f"vllm/{each}." in " ".join(finding["evidence"]) for each in OPS) >= 3
    assert "CUDA 12" in finding["summary"]
    assert not any("ln -s" in each for each in finding["cure"])
    torch_12 = "2.1.2" if torch == "2.0.1" else torch       # the nearest minor that vllm 0.2.2 takes
    assert any(f"stackfix lock --torch {torch_12}" in each and "--with vllm==0.2.2" in each for each in finding["cure"])
    # 0.2.1 is for torch 2.0; the wheel of 0.2.0 is for CUDA 11 and has the symbols of torch 2.1 as well
    fitting = "0.2.1.post1'" if torch == "2.0.1" else "0.2.0'  # its symbols are those of torch 2.1"
    assert [each for each in finding["cure"] if " install " in each] == [
        f"{world.prefix}/bin/python -m pip install --no-deps 'vllm=={fitting}"]
    assert NO_CUDART in really(world, f"vllm/{OPS[0]}.{TAG}")


def test_both_rows_of_that_vllm_are_whole(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path / "cu121"), "2.1.2")
    world.wheel("xformers", "0.0.23.post1", linked({"xformers/_C.so": lib(needs=("libc10.so",), wants=(STATE,))}),
                requires=("torch==2.1.2",))
    assert is_clean(say, install_vllm(world, "0.2.2", "12", "torch>=2.1.0", "xformers>=0.0.22.post7"))
    world = install_nvidia(install_cu118(World(tmp_path / "cu118"), "2.0.1"), "nvidia-cuda-runtime-cu11", "11.8.89")
    library = {f"vllm/{OPS[0]}.{TAG}": lib(needs=("libc10.so", "libcudart.so.11.0"), wants=(STATE,),
                                           runpath="$ORIGIN/../nvidia/cuda_runtime/lib")}
    assert is_clean(say, world.wheel("vllm", "0.2.1.post1", linked(library), requires=("torch==2.0.1",)))


def test_vllm_022_resolved_afresh_meets_cuda_13(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.12.1")
    judged = judge(say, install_vllm(world, "0.2.2", "12", "torch>=2.1.0"))
    assert judged.status == 1
    finding = judged.only("SF504", "SF602")
    assert (finding["culprit"]["package"], bare(finding["error"])) == ("vllm 0.2.2", NO_CUDART)
    assert "13" in finding["summary"] + finding["why"]


# --- pytorch/pytorch#144433: torch in lib64, the wheels of NVIDIA in lib ---

WIDE, NARROW = (f"/usr/local/{each}/python3.11/site-packages" for each in ("lib64", "lib"))
CUSPARSELT = f"{NARROW}/cusparselt/lib/libcusparseLt.so.0"
NO_CUSPARSELT = "libcusparseLt.so.0: cannot open shared object file: No such file or directory"


def split(folder: Path, torch: str = "2.6.0") -> World:
    """A system's own Python, whose platform wheels lie in lib64 and pure ones in lib."""
    world = World(folder, prefix="/usr/local")
    world.write("/usr/local/lib64/python3.11/os.py", "raise SystemExit('an inspected file was imported')\n")
    world.remove("/usr/local/pyvenv.cfg")
    return install_torch(world, torch, site=WIDE, nvidia_site=NARROW)


def before_the_release() -> Libraries:
    """What torch opened in the candidate: its list had no cuSPARSELt yet."""
    known = load_libraries()
    return replace(known, imports=tuple(replace(each, steps=tuple(
        step for step in each.steps if each.project != "torch" or "cusparseLt" not in step.file))
        for each in known.imports))


def test_the_released_torch_26_finds_its_libraries_in_both_folders(tmp_path: Path, say: Say) -> None:
    assert is_clean(say, split(tmp_path))


@pytest.mark.parametrize("torch", ["2.5.1", "2.8.0"])
def test_other_releases_find_them_too(torch: str, tmp_path: Path, say: Say) -> None:
    assert is_clean(say, split(tmp_path, torch))


def test_the_candidate_does_not_find_cusparselt(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "load_libraries", before_the_release)
    world = split(tmp_path)
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF402")
    assert (finding["kind"], finding["severity"]) == ("unreachable-library", "error")
    assert finding["culprit"] == {"path": CUSPARSELT, "package": "nvidia-cusparselt-cu12 0.6.2", "variable": None}
    assert finding["requester"]["path"].endswith("torch/lib/libtorch_cuda.so")
    assert finding["error"] == NO_CUSPARSELT
    assert f"relative to {WIDE}" in finding["why"]
    assert NARROW in finding["why"]
    assert "cusparselt/lib" in finding["cure"][0]
    assert any("virtual environment" in each for each in finding["cure"])
    # the folders of NVIDIA's own name alone leave it missing
    folders = ":".join(f"{NARROW}/nvidia/{each.name}/lib" for each in world.host(f"{NARROW}/nvidia").iterdir())
    assert judge(say, world.environ(LD_LIBRARY_PATH=folders)).only("SF402")["error"] == NO_CUSPARSELT
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=f"{folders}:{NARROW}/cusparselt/lib"))


def test_one_folder_for_both_is_whole(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "load_libraries", before_the_release)
    assert build_of("2.6.0").cuda == "12.4"
    assert is_clean(say, install_torch(World(tmp_path), "2.6.0"))
