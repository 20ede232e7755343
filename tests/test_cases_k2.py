"""Public reports on cuDNN: parts that are not reached, and parts of different copies in one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.case_worlds import TAG, bare, install_nvidia, install_torch, is_clean, judge, libraries_of, linked
from tests.cli_world import Say
from tests.diagnose_world import SYSTEM, World, lib

CUDNN = "nvidia/cudnn/lib"
NOT_FOUND = "cannot open shared object file: No such file or directory"

# --- SYSTRAN/faster-whisper#297: the folder of cuDNN 8 is on PATH, and the loader does not look there ---

USER = "/home/me/.local/lib/python3.11/site-packages"
OPS_INFER = "libcudnn_ops_infer.so.8"


def faster_whisper(folder: Path, project: str, version: str, site: str | None) -> World:
    """CTranslate2 3.24 brings the front of cuDNN under a name of its own; the parts are opened by bare name."""
    world = World(folder, conda=True)
    front, main = "libcudnn-74a4c495.so.8.8.0", "libctranslate2-bc9ce5e5.so.3.24.0"
    world.wheel("ctranslate2", "3.24.0", linked({
        f"ctranslate2.libs/{front}": lib(offers=("cudnnGetVersion",), runpath="$ORIGIN"),
        f"ctranslate2.libs/{main}": lib(needs=(front,), wants=("cudnnGetVersion",), runpath="$ORIGIN"),
        f"ctranslate2/_ext.{TAG}": lib(needs=(main,), runpath="$ORIGIN/../ctranslate2.libs"),
    }), site=site)
    world.wheel("faster-whisper", "0.6.0", {"faster_whisper/__init__.py": ""}, site=site,
                requires=("ctranslate2<4,>=3.10",))
    install_nvidia(world, "nvidia-cublas-cu11", "11.11.3.6", site=site)
    if project.endswith("-cu12"):
        install_nvidia(world, "nvidia-cublas-cu12", "12.1.3.1", site=site)
    return install_nvidia(world, project, version, site=site).environ(HOME="/home/me")


@pytest.mark.parametrize(("project", "version", "site"), [
    ("nvidia-cudnn-cu11", "8.9.4.25", USER), ("nvidia-cudnn-cu11", "8.5.0.96", None),
    ("nvidia-cudnn-cu12", "8.9.2.26", None),
])
def test_parts_of_cudnn_8_are_opened_by_bare_name(project: str, version: str, site: str | None, tmp_path: Path,
                                                  say: Say) -> None:
    world = faster_whisper(tmp_path, project, version, site)
    place = site or world.site
    world.environ(PATH=f"{place}/{CUDNN}:/usr/bin")
    judged = judge(say, world)
    finding = next(each for each in judged.serious if each["level"] == "cudnn")
    assert {each["code"] for each in judged.serious} == {"SF402"}
    assert (finding["kind"], finding["severity"]) == ("unreachable-library", "warning")     # wanted on a GPU only
    assert judged.status == 0
    assert judge(say, world, "--fail-on", "warning").status == 1
    assert finding["culprit"] == {"path": f"{place}/{CUDNN}/{OPS_INFER}", "package": f"{project} {version}",
                                  "variable": None}
    assert finding["requester"]["package"] == "ctranslate2 3.24.0"
    assert finding["error"] == f"{OPS_INFER}: {NOT_FOUND}"
    assert "PATH is not searched" in finding["why"]
    assert "os.environ" in finding["why"]
    # one preloaded part does not make the others found: all of them are named
    for part in ("ops_infer", "cnn_infer", "adv_infer", "ops_train", "cnn_train", "adv_train"):
        assert any(f"libcudnn_{part}.so.8: installed, not reached" in each for each in finding["evidence"])
    cures = [each["cure"][0] for each in judged.serious]
    assert any(f"export LD_LIBRARY_PATH={place}/{CUDNN}" in each for each in cures)
    assert all("before Python starts" in each for each in cures)
    # cuBLAS too, where the one that is there is of the major that CTranslate2 3 opens
    assert any(f"{place}/nvidia/cublas/lib" in each for each in cures)
    world.environ(LD_LIBRARY_PATH=f"{place}/{CUDNN}:{place}/nvidia/cublas/lib")
    assert is_clean(say, world)


def test_beside_torch_they_are_not_reached_either(tmp_path: Path, say: Say) -> None:
    """An import of torch maps the front of its cuDNN; the parts come when torch itself uses them."""
    world = faster_whisper(tmp_path, "nvidia-cudnn-cu12", "8.9.2.26", None)
    judged = judge(say, install_torch(world, "2.3.1"))
    finding = next(each for each in judged.serious if each["level"] == "cudnn")
    assert (finding["code"], finding["severity"]) == ("SF402", "warning")
    assert not any("import torch first" in each for each in finding["cure"])


# --- pytorch/pytorch#185512: a part that the wheel does not have comes from the system's cuDNN ---

TENSOR_IR = "libcudnn_engines_tensor_ir.so.9"


def system_part(world: World, version: str, name: str = TENSOR_IR, folder: str = SYSTEM) -> World:
    """A part of a cuDNN that the system's packages brought."""
    full = f"{name.partition('.so')[0]}.so.{version}"
    world.library(f"{folder}/{full}", lib(soname=name, needs=("libc.so.6",))).link(f"{folder}/{name}", full)
    return world.cached(f"{folder}/{name}", conf="x86_64-linux-gnu.conf")


@pytest.mark.parametrize("version", ["9.21.1", "9.22.0"])
def test_a_part_of_the_systems_cudnn_fills_in(version: str, tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.12.1")
    assert is_clean(say, world)                     # the part is optional, and absent
    judged = judge(say, system_part(world, version))
    assert (judged.status, judged.codes) == (1, ["SF302"])
    finding = judged.only("SF302")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("mixed-origin", "error", "cudnn")
    assert finding["culprit"] == {"path": f"{SYSTEM}/{TENSOR_IR}", "package": None, "variable": None}
    assert finding["requester"] == {"path": world.inside(f"{CUDNN}/libcudnn_graph.so.9"),
                                    "package": "nvidia-cudnn-cu13 9.20.0.48"}
    assert finding["error"] == "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
    assert (finding["winner"], finding["repairable"]) == (f"{SYSTEM}/{TENSOR_IR}", False)
    assert version in finding["summary"]
    assert any(f"{TENSOR_IR}: {SYSTEM}/{TENSOR_IR}" in each and version in each for each in finding["evidence"])
    for part in ("_graph", "_ops", "_cnn", "_adv"):         # origin and version of each part
        assert any(f"libcudnn{part}.so.9: {world.site}" in each and "9.20.0.48" in each
                   for each in finding["evidence"])
    assert "remove the system's cuDNN" in finding["cure"][0]
    assert any("9.20.0.48" in each for each in finding["cure"])
    assert not any("ld.so.conf" in each or "cp " in each for each in finding["cure"])   # the system's own folder stays


def test_the_same_version_system_wide_is_no_harm(tmp_path: Path, say: Say) -> None:
    assert is_clean(say, system_part(install_torch(World(tmp_path), "2.12.1"), "9.20.0"))


def test_another_part_from_a_folder_of_the_configuration(tmp_path: Path, say: Say) -> None:
    """cuDNN 9.1 of torch 2.4, and a part that is missing in the wheel: the same kind."""
    folder = "/opt/cudnn-9.5/lib"
    world = system_part(install_torch(World(tmp_path), "2.4.1"), "9.5.0", "libcudnn_heuristic.so.9", folder)
    assert is_clean(say, world)                             # the wheel's own RUNPATH comes first
    world.environ(LD_LIBRARY_PATH=folder)
    judged = judge(say, world)
    assert judged.status == 1
    finding = judged.only("SF302")
    assert finding["culprit"] == {"path": f"{folder}/libcudnn_heuristic.so.9", "package": None,
                                  "variable": "LD_LIBRARY_PATH"}
    assert finding["cure"][0] == "unset LD_LIBRARY_PATH"
    world.variables.clear()
    assert is_clean(say, world)


# --- microsoft/onnxruntime#25609: the provider has no RPATH, and its libraries lie in wheels ---

PROVIDER = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
NEEDED = ("libcublasLt.so.12", "libcublas.so.12", "libcurand.so.10", "libcufft.so.11", "libcudart.so.12",
          "libcudnn.so.9", "libnvrtc.so.12")
WHEELS = {"nvidia-cublas-cu12": "12.8.4.1", "nvidia-curand-cu12": "10.3.9.90", "nvidia-cufft-cu12": "11.3.3.83",
          "nvidia-cuda-runtime-cu12": "12.8.90", "nvidia-cudnn-cu12": "9.10.2.21",
          "nvidia-cuda-nvrtc-cu12": "12.8.93", "nvidia-nvjitlink-cu12": "12.8.93"}
FOLDERS = ("cublas", "curand", "cufft", "cuda_runtime", "cudnn", "cuda_nvrtc")
ONLY_CUDNN = ("nvidia-cudnn-cu12", "nvidia-cublas-cu12", "nvidia-cuda-nvrtc-cu12")


def onnxruntime(folder: Path, wheels: Mapping[str, str] = WHEELS, version: str = "1.22.0") -> World:
    world = World(folder)
    world.wheel("onnxruntime-gpu", version, linked({
        f"onnxruntime/capi/onnxruntime_pybind11_state.{TAG}": lib(),
        "onnxruntime/capi/libonnxruntime_providers_shared.so": lib(), PROVIDER: lib(needs=NEEDED)}))
    for name, release in wheels.items():
        install_nvidia(world, name, release)
    return world


@pytest.mark.parametrize("version", ["1.22.0", "1.20.1"])
def test_libraries_in_wheels_that_the_provider_does_not_reach(version: str, tmp_path: Path, say: Say) -> None:
    world = onnxruntime(tmp_path, version=version)
    judged = judge(say, world)
    assert (judged.status, judged.codes) == (1, ["SF402"])
    finding = judged.only("SF402")
    assert (finding["kind"], finding["severity"]) == ("unreachable-library", "error")
    assert finding["culprit"]["path"] == world.inside("nvidia/cublas/lib/libcublasLt.so.12")
    assert finding["requester"] == {"path": world.inside(PROVIDER), "package": f"onnxruntime-gpu {version}"}
    assert finding["error"] == f"libcublasLt.so.12: {NOT_FOUND}"        # the first in the order of DT_NEEDED
    assert "neither RPATH nor RUNPATH" in finding["why"]
    for name in NEEDED:
        assert any(f"{name}: installed, not reached" in each for each in finding["evidence"])
    for each in FOLDERS:
        assert world.inside(f"nvidia/{each}/lib") in finding["cure"][0]
    assert any("preload_dlls()" in each for each in finding["cure"]) == (version == "1.22.0")   # 1.21 brought it
    world.opens_nothing().opens(PROVIDER)
    assert world.really().startswith(finding["error"])
    world.environ(LD_LIBRARY_PATH=":".join(world.inside(f"nvidia/{each}/lib") for each in FOLDERS))
    assert is_clean(say, world)
    assert world.really() == ""


def test_only_cudnn_is_out_of_reach(tmp_path: Path, say: Say) -> None:
    """The report's own line: a toolkit gives all that comes before libcudnn.so.9."""
    world = onnxruntime(tmp_path, {name: WHEELS[name] for name in ("nvidia-cudnn-cu12", "nvidia-cublas-cu12")})
    world.toolkit("/usr/local/cuda-12.8", "12.8.1")
    paths = [f"/usr/local/cuda-12.8/lib64/{name}" for name in (*NEEDED, "libnvrtc-builtins.so.12.8") if "cudnn" not in
             name]
    for path in paths:
        world.library(path, lib(needs=("libc.so.6",)))
    judged = judge(say, world.cached(*paths))
    assert judged.status == 1
    finding = judged.only("SF402")
    assert finding["error"] == f"libcudnn.so.9: {NOT_FOUND}"
    assert finding["culprit"] == {"path": world.inside(f"{CUDNN}/libcudnn.so.9"),
                                  "package": "nvidia-cudnn-cu12 9.10.2.21", "variable": None}
    assert any("libcublasLt.so.12: reached: /usr/local/cuda-12.8" in each for each in finding["evidence"])
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=world.inside(CUDNN)))


def test_the_cudnn_wheel_alone_brings_too_little(tmp_path: Path, say: Say) -> None:
    world = onnxruntime(tmp_path, {name: WHEELS[name] for name in ONLY_CUDNN})
    judged = judge(say, world)
    assert judged.status == 1
    missing = next(each for each in judged.serious if each["code"] == "SF401")
    assert set(judged.codes) == {"SF401", "SF402"}
    assert missing["requester"]["path"] == world.inside(PROVIDER)
    for project in ("nvidia-curand-cu12", "nvidia-cufft-cu12", "nvidia-cuda-runtime-cu12"):
        assert project in missing["cure"][0]
    assert "nvidia-cudnn" not in missing["cure"][0]


def test_beside_torch_the_provider_may_find_its_libraries(tmp_path: Path, say: Say) -> None:
    """Where torch is imported first it does: a warning."""
    judged = judge(say, install_torch(onnxruntime(tmp_path, {}), "2.8.0"))
    finding = judged.only("SF402")
    assert (judged.status, finding["severity"]) == (0, "warning")
    assert any("import torch first" in each for each in finding["cure"])


# --- tensorflow/tensorflow#60913: torch pins a cuDNN older than TensorFlow was compiled with ---

@pytest.mark.parametrize(("torch", "cudnn", "tensorflow", "extra"), [
    ("2.5.1", "9.1.0.70", "2.18.0", "9.3.0.75"), ("2.6.0", "9.1.0.70", "2.19.0", "9.3.0.75"),
    ("2.3.1", "8.9.2.26", "2.18.0", "9.3.0.75"),
])
def test_cudnn_older_than_tensorflow_was_compiled_with(torch: str, cudnn: str, tensorflow: str, extra: str,
                                                       tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), torch)
    judged = judge(say, install_tensorflow(world, tensorflow, extra))
    finding = judged.only("SF601")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("requirement-not-met", "warning", "cudnn")
    assert judge(say, world, "--fail-on", "warning").status == 1
    assert finding["culprit"]["package"] == f"nvidia-cudnn-cu12 {cudnn}"
    assert finding["requester"]["package"] == f"tensorflow {tensorflow}"
    short = [".".join(each.split(".")[:3]) for each in (cudnn, extra)]
    assert finding["error"] == f"Loaded runtime CuDNN library: {short[0]} but source was compiled with: {short[1]}."
    assert any(f"torch {torch} requires nvidia-cudnn-cu12=={cudnn}" in each for each in finding["evidence"])
    # torch 2.7 is the first with cuDNN 9.5 for CUDA 12
    assert finding["cure"][0].startswith(f"stackfix lock --torch 2.7.0 --cuda 12.6 --with tensorflow=={tensorflow}")
    assert any(f"pip will warn that torch {torch} requires" in each for each in finding["cure"])


def install_tensorflow(world: World, version: str, cudnn: str) -> World:
    lines = (f"nvidia-cudnn-cu12=={cudnn}; extra == 'and-cuda'", "nvidia-cublas-cu12==12.5.3.2; extra == 'and-cuda'")
    return world.wheel("tensorflow", version, linked({"tensorflow/python/_pywrap_tensorflow_internal.so": lib()}),
                       requires=lines)


@pytest.mark.parametrize("torch", ["2.7.1", "2.8.0"])
def test_a_torch_whose_cudnn_serves_both(torch: str, tmp_path: Path, say: Say) -> None:
    assert is_clean(say, install_tensorflow(install_torch(World(tmp_path), torch), "2.18.0", "9.3.0.75"))


# --- ultralytics/ultralytics#10203: half of cuDNN 8 comes from a module of the cluster ---

IS_AMPERE = "_ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi"
INFER, TRAIN = "libcudnn_cnn_infer.so.8", "libcudnn_cnn_train.so.8"
MODULE = "/usr/local/cuda/11.8.0/lib64"


def with_module(folder: Path, names: tuple[str, ...], torch: str = "2.3.1", version: str = "8.7.0",
                module: str = MODULE) -> World:
    """torch with its cuDNN 8.9.2, and parts of another cuDNN 8 in a module's folder."""
    world = install_torch(World(folder), torch)
    wants, offers = {TRAIN: (f"{IS_AMPERE}@{INFER}",)}, {INFER: (f"{IS_AMPERE}@{INFER}",)}
    for name, library in libraries_of("cudnn", 11, f"{version}.84"):
        if name in names:
            made = lib(needs=(*library.needed, "libc.so.6"), soname=name, wants=wants.get(name, ()),
                       offers=offers.get(name, ()))
            full = f"{name}.{version.partition('.')[2]}"
            world.library(f"{module}/{full}", made).link(f"{module}/{name}", full)
    return world


@pytest.mark.parametrize(("torch", "version", "module", "name"), [
    ("2.3.1", "8.7.0", MODULE, "cuda/11.8.0"), ("2.1.2", "8.6.0", "/apps/cudnn/8.6.0/lib", "cudnn/8.6.0"),
])
def test_training_mixes_two_cudnns(torch: str, version: str, module: str, name: str, tmp_path: Path,
                                   say: Say) -> None:
    world = with_module(tmp_path, (TRAIN,), torch, version, module)
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_LIBRARY_PATH=module, LOADEDMODULES=name))
    assert (judged.status, judged.codes) == (1, ["SF302"])
    finding = judged.only("SF302")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("mixed-origin", "error", "cudnn")
    assert finding["culprit"] == {"path": f"{module}/{TRAIN}", "package": None, "variable": "LD_LIBRARY_PATH"}
    assert finding["symbols"] == [IS_AMPERE]
    line = f"{TRAIN}: undefined symbol: {IS_AMPERE}, version {INFER}"
    assert bare(finding["error"]) == line
    assert any(version in each for each in finding["evidence"])
    assert any("8.9.2.26" in each for each in finding["evidence"])
    assert finding["cure"][:2] == [f"module unload {name}", "unset LD_LIBRARY_PATH"]
    world.opens_nothing()
    for path in (*(f"{CUDNN}/libcudnn_{each}.so.8" for each in ("ops_infer", "ops_train", "cnn_infer")),
                 f"{module}/{TRAIN}"):
        world.opens(path)
    assert line in bare(world.really())
    assert is_clean(say, world.environ(LD_LIBRARY_PATH=f"{world.inside(CUDNN)}:{module}"))


def test_all_parts_but_the_front_from_the_module(tmp_path: Path, say: Say) -> None:
    """No symbol is missing then; cuDNN itself compares the versions."""
    parts = tuple(name for name, _ in libraries_of("cudnn", 11, "8.7.0.84"))
    world = with_module(tmp_path, parts)
    assert is_clean(say, world)
    judged = judge(say, world.environ(LD_LIBRARY_PATH=MODULE))
    assert judged.status == 1
    finding = judged.only("SF302")
    assert finding["culprit"]["path"].startswith(f"{MODULE}/libcudnn_")
    assert (finding["severity"], finding["symbols"]) == ("error", [])
    assert finding["cure"][0] == "unset LD_LIBRARY_PATH"
