"""Libraries that nothing has, that lie where nobody looks, or that a foreign copy stands in for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.library_versions import find_library_versions
from stackfix.diagnose.missing import find_missing
from stackfix.diagnose.missing_foreign import find_foreign
from stackfix.diagnose.missing_told import told_as_missing
from stackfix.diagnose.shadows import find_shadows
from stackfix.diagnose.shadows_harmless import find_harmless_shadows
from stackfix.inspect.machine_records import Undecided
from stackfix.matrix.libraries import load_libraries
from tests.case_worlds import install_torch
from tests.diagnose_machines import install_driver
from tests.diagnose_world import SYSTEM, World, lib

PIP = "/venv/bin/python -m pip install --no-deps"
CHECKS = (find_shadows, find_harmless_shadows, find_library_versions, find_missing, find_foreign)
CUDNN8 = ("libcudnn.so.8", "libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8")
CUPTI, NCCL = "nvidia/cuda_cupti/lib/libcupti.so.12", "nvidia/nccl/lib/libnccl.so.2"
TORCH_CPU, TORCH_CUDA = "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so"


def answers(world: World) -> Sequence[Finding | Undecided]:
    view = world.view()
    return [each for check in CHECKS for each in check(view)]


def only(world: World) -> Finding:
    """The one finding."""
    found = answers(world)
    assert len(found) == 1, found
    assert isinstance(found[0], Finding)
    return found[0]


def really(world: World) -> str:
    """The first thing that the real loader says."""
    return world.really().splitlines()[0]


def cudnn(world: World) -> World:
    return world.wheel("nvidia-cudnn-cu12", "8.9.2.26", {
        f"nvidia/cudnn/lib/{name}": lib(runpath="$ORIGIN") for name in CUDNN8})


# --- nowhere ---


def test_a_library_that_no_package_has_names_the_wheel(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.3.1+cu121", {TORCH_CPU: lib(
        needs=("libcupti.so.12",), rpath="$ORIGIN:$ORIGIN/../../nvidia/cuda_cupti/lib",
        wants=("cuptiSubscribe@libcupti.so.12",))},
        requires=("nvidia-cuda-cupti-cu12==12.1.105 ; platform_system == 'x'",))
    finding = only(world.opens(TORCH_CPU, project="torch", what="import torch"))
    assert (finding.code, finding.severity, finding.level) == ("SF401", "error", "cuda")
    assert finding.culprit.package == "nvidia-cuda-cupti-cu12"
    assert finding.cure[0] == f"{PIP} 'nvidia-cuda-cupti-cu12==12.1.105'"
    assert finding.error == really(world) == (
        "libcupti.so.12: cannot open shared object file: No such file or directory")
    assert finding.symbols == ()        # they are missing with the library
    assert f"tried: {world.site}/torch/lib/libcupti.so.12 via RPATH of libtorch_cpu.so" in finding.evidence
    assert f"tried: {SYSTEM}/libcupti.so.12 via default folder" in finding.evidence
    assert finding.repairable


def test_another_version_of_the_library_is_installed(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.3.1", {"torch/lib/libtorch_global_deps.so": lib(
        needs=("libcudnn.so.8",), rpath="$ORIGIN/../../nvidia/cudnn/lib")}, requires=("nvidia-cudnn-cu12==8.9.2.26",))
    world.wheel("nvidia-cudnn-cu12", "9.1.0.70", {"nvidia/cudnn/lib/libcudnn.so.9": lib()})
    finding = only(world.opens("torch/lib/libtorch_global_deps.so", project="torch"))
    assert (finding.code, finding.culprit.package, finding.level) == ("SF401", "nvidia-cudnn-cu12 9.1.0.70", "cudnn")
    assert finding.requester is not None
    assert finding.requester.path == world.inside("torch/lib/libtorch_global_deps.so")
    assert finding.error == really(world)
    assert finding.cure[0] == f"{PIP} 'nvidia-cudnn-cu12==8.9.2.26'"


def test_what_conda_installed_is_completed_by_conda(tmp_path: Path) -> None:
    """A wheel puts nothing where a library of conda looks."""
    world = World(tmp_path, conda=True).conda("libtorch", "2.3.1", {"lib/libtorch_cuda.so": lib(
        needs=("libcudnn.so.8", "libcublas.so.12"), rpath="$ORIGIN")})
    finding = only(world.opens(f"{world.prefix}/lib/libtorch_cuda.so"))
    assert finding.cure == (f"conda install --prefix {world.prefix} 'cudnn=8' 'libcublas=12'",)


def test_what_is_installed_already_is_installed_again(tmp_path: Path) -> None:
    """A RECORD without the library: to pip the requirement is satisfied."""
    world = World(tmp_path).wheel("torch", "2.3.1", {TORCH_CPU: lib(needs=("libnccl.so.2",))},
                                  requires=("nvidia-nccl-cu12==2.20.5",)).wheel("nvidia-nccl-cu12", "2.20.5")
    finding = only(world.opens(TORCH_CPU, project="torch"))
    assert "another version" not in finding.why
    assert finding.cure == ("/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.20.5",)


def test_a_copy_of_a_toolkit_is_mentioned(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/m.abi3.so", lib(needs=("libcudart.so.12",)))
    world.toolkit("/usr/local/cuda-12.4", "12.4.1").library("/usr/local/cuda-12.4/lib64/libcudart.so.12", lib())
    finding = only(world.opens("m/m.abi3.so", phase="module"))
    assert (finding.code, finding.severity, finding.culprit.package) == ("SF401", "error", "nvidia-cuda-runtime-cu12")
    assert any("the CUDA toolkit 12.4.1 in /usr/local/cuda-12.4" in each for each in finding.evidence)


def test_a_missing_library_of_the_system_is_a_warning(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("opencv-python", "4.10.0.84", {"cv2/cv2.abi3.so": lib(needs=("libGone.so.1",))})
    finding = only(world.opens("cv2/cv2.abi3.so", project="opencv-python", phase="module"))
    assert (finding.code, finding.severity, finding.level) == ("SF401", "warning", "extensions")
    assert finding.culprit.path == "libGone.so.1"
    assert "apt-file search libGone.so.1" in finding.cure[0]
    assert not finding.repairable
    assert finding.error == really(world)


def test_a_module_among_others_that_work_is_a_note(tmp_path: Path) -> None:
    """numba's pool of threads for oneTBB is there whether oneTBB is or not."""
    world = World(tmp_path).wheel("numba", "0.61", {
        "numba/a.abi3.so": lib(), "numba/b.abi3.so": lib(), "numba/tbbpool.abi3.so": lib(needs=("libGone.so.1",))})
    for name in ("a", "b", "tbbpool"):
        world.opens(f"numba/{name}.abi3.so", project="numba", phase="module")
    assert (only(world).code, only(world).severity) == ("SF401", "note")


def test_many_modules_that_miss_one_library_are_one_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("a", "b", "c"):
        world.library(f"m/{name}.abi3.so", lib(needs=("libGone.so.1",))).opens(f"m/{name}.abi3.so", phase="module")
    assert sum("needs libGone.so.1" in each for each in only(world).evidence) == 3


def test_a_part_that_was_deleted(tmp_path: Path) -> None:
    world = cudnn(World(tmp_path)).remove("nvidia/cudnn/lib/libcudnn_cnn_infer.so.8")
    main = "nvidia/cudnn/lib/libcudnn.so.8"
    world.opens(main, project="torch").opens("libcudnn_cnn_infer.so.8", caller=main, phase="first use",
                                             what="libcudnn.so.8 opens libcudnn_cnn_infer.so.8")
    finding = only(world)
    assert (finding.code, finding.severity) == ("SF401", "error")
    assert finding.culprit.path == world.inside("nvidia/cudnn/lib/libcudnn_cnn_infer.so.8")
    assert finding.culprit.package == "nvidia-cudnn-cu12 8.9.2.26"
    assert finding.requester is not None
    assert finding.requester.path == world.inside(main)
    again = f"{world.prefix}/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==8.9.2.26"
    assert finding.cure == (again,)
    assert {each.name for each in told_as_missing(world.view())} == {"nvidia-cudnn-cu12"}


def test_all_that_is_gone_of_a_package_is_one_finding(tmp_path: Path) -> None:
    world = cudnn(World(tmp_path)).wheel("torch", "2.3.1", {TORCH_CUDA: lib(
        needs=CUDNN8, rpath="$ORIGIN/../../nvidia/cudnn/lib")})
    for name in CUDNN8:
        world.remove(f"nvidia/cudnn/lib/{name}")
    finding = only(world.opens(TORCH_CUDA, project="torch"))
    assert (finding.code, finding.culprit.path) == ("SF401", world.inside("nvidia/cudnn/lib/libcudnn.so.8"))
    assert sum(each.startswith("gone: ") for each in finding.evidence) == 3
    assert finding.error == really(world)


def test_optional_parts_are_left_to_the_check_of_packages(tmp_path: Path) -> None:
    main = "nvidia/cudnn/lib/libcudnn.so.8"
    world = cudnn(World(tmp_path)).opens(main)
    for name in ("libcudnn_engines_tensor_ir.so.8", "libcudnn_cnn_infer.so.8"):
        world.opens(name, caller=main, phase="first use", may_fail="optional: an engine")
    assert answers(world) == []
    world.remove("nvidia/cudnn/lib/libcudnn_cnn_infer.so.8")
    assert answers(world) == []
    assert told_as_missing(world.view()) == frozenset()


def test_what_an_import_tries_otherwise_is_not_told(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/m.abi3.so", lib(needs=("libavutil.so.58",)))
    assert answers(world.opens("m/m.abi3.so", may_fail="only for FFmpeg 6")) == []


# --- the driver ---


def test_without_a_driver_its_libraries_are_undecided(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/m.abi3.so", lib(needs=("libcuda.so.1", "libnvidia-ml.so.1")))
    found = answers(world.opens("m/m.abi3.so", phase="module"))
    assert [type(each) for each in found] == [Undecided, Undecided]
    assert [each.subject for each in found if isinstance(each, Undecided)] == ["libcuda.so.1", "libnvidia-ml.so.1"]


def test_with_a_driver_its_missing_library_is_a_finding(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/m.abi3.so", lib(needs=("libnvidia-ml.so.1",)))
    install_driver(world, "550.54.15")
    world.write("/etc/ld.so.cache", b"").remove(f"{SYSTEM}/libnvidia-ml.so.1")
    finding = only(world.opens("m/m.abi3.so", phase="module"))
    assert (finding.code, finding.culprit.path, finding.level) == ("SF401", "libnvidia-ml.so.1", "driver")


# --- another CUDA, another torch: told with the extension ---


@pytest.mark.parametrize(("torch", "needs", "told"), [
    ("2.3.1+cu121", ("libc10.so", "libcudart.so.11.0"), False),     # built for CUDA 11
    ("2.3.1+cpu", ("libc10.so", "libcudart.so.12"), False),         # a CUDA extension beside a CPU torch
    ("2.3.1+cu121", ("libc10.so", "libtorch_cuda_cu.so"), False),   # of torch 1.13
    ("2.3.1+cu121", ("libc10.so", "libcudart.so.12"), True),
    ("2.3.1+cu121", ("libcudart.so.11.0",), True),                  # has nothing to do with torch
])
def test_what_an_extension_for_another_torch_misses(
        tmp_path: Path, torch: str, needs: tuple[str, ...], told: bool) -> None:
    world = World(tmp_path).wheel("torch", torch, {"torch/lib/libc10.so": lib()})
    world.wheel("ext", "1.0", {"ext/_C.abi3.so": lib(needs=needs, rpath="$ORIGIN/../torch/lib")})
    found = answers(world.opens("ext/_C.abi3.so", project="ext", phase="module"))
    assert [each.code for each in found if isinstance(each, Finding)] == (["SF401"] if told else [])


def test_without_torch_an_extension_of_torch_is_not_told_twice(tmp_path: Path) -> None:
    world = World(tmp_path).library("ext/_C.abi3.so", lib(needs=("libc10.so", "libcudart.so.12")))
    assert answers(world.opens("ext/_C.abi3.so", phase="module")) == []
    world.opens_nothing().opens("libcudart.so.12", project="mine")
    assert only(world).code == "SF401"


# --- installed, and not reached ---


def test_a_sublibrary_that_is_opened_by_its_bare_name(tmp_path: Path) -> None:
    """ctranslate2 has no RUNPATH to the wheel; that the folder is on PATH changes nothing."""
    module = "ctranslate2/_ext.abi3.so"
    world = cudnn(World(tmp_path)).wheel("ctranslate2", "3.24.0", {module: lib()})
    world.environ(PATH=f"/usr/bin:{world.site}/nvidia/cudnn/lib").opens(module, project="ctranslate2")
    world.opens("libcudnn_ops_infer.so.8", project="ctranslate2", phase="first use", caller=module)
    finding = only(world)
    assert (finding.code, finding.severity, finding.level) == ("SF402", "error", "cudnn")
    assert finding.culprit.path == finding.loser == world.inside("nvidia/cudnn/lib/libcudnn_ops_infer.so.8")
    assert finding.culprit.package == "nvidia-cudnn-cu12 8.9.2.26"
    assert finding.requester is not None
    assert finding.requester.package == "ctranslate2 3.24.0"
    assert "PATH is not searched for libraries" in finding.why
    assert "os.environ inside the process comes too late" in finding.why
    assert finding.cure[0] == (f"export LD_LIBRARY_PATH={world.site}/nvidia/cudnn/lib"
                               "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}  # before Python starts")
    assert finding.repairable
    assert answers(world.environ(LD_LIBRARY_PATH=f"{world.site}/nvidia/cudnn/lib")) == []


@pytest.mark.parametrize("torch", [False, True])
def test_what_is_wanted_on_a_gpu_only_and_is_installed(tmp_path: Path, torch: bool) -> None:
    copy = "ctranslate2.libs/libcudnn-a1b2c3d4.so.8"
    world = cudnn(World(tmp_path)).library(copy, lib(soname="libcudnn-a1b2c3d4.so.8"))
    world.library(TORCH_CUDA, lib(needs=("libcudnn_ops_infer.so.8",), rpath="$ORIGIN/../../nvidia/cudnn/lib"))
    world.opens(copy, project="ctranslate2").opens("libcudnn_ops_infer.so.8", caller=copy, project="ctranslate2",
                                                   phase="first use", may_fail="optional: wanted on a GPU only")
    finding = only(world.opens(TORCH_CUDA, project="torch") if torch else world)
    assert (finding.code, finding.severity) == ("SF402", "note" if torch else "warning")
    assert ("or import torch first: it loads them, and what is loaded is found by its name" in finding.cure) is torch


def test_an_optional_part_of_the_same_wheel_is_nothing(tmp_path: Path) -> None:
    """libcufile.so.0 has no RUNPATH and opens its part for storage over the network, which lies beside it."""
    main, part = "nvidia/cufile/lib/libcufile.so.0", "nvidia/cufile/lib/libcufile_rdma.so.1"
    files = {main: lib(needs=("libcudart.so.12",)), part: lib()}
    world = World(tmp_path).wheel("nvidia-cufile-cu12", "1.13.1.3", files)
    world.library("/usr/lib/libcudart.so.12", lib())
    world.opens(main, project="torch").opens("libcufile_rdma.so.1", caller=main, project="torch", phase="first use",
                                             may_fail="optional: storage over the network")
    assert answers(world) == []
    world.opens_nothing().opens(main, project="torch").opens("libcufile_rdma.so.1", caller=main, phase="first use")
    finding = only(world)
    assert finding.code == "SF402"              # were it needed
    assert "libcudart.so.12: loaded before: /usr/lib/libcudart.so.12" in finding.evidence


def provider(world: World) -> World:
    """onnxruntime-gpu with its CUDA provider, which has neither RPATH nor RUNPATH."""
    library = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    world.wheel("onnxruntime-gpu", "1.22.0", {library: lib(needs=(
        "libcublasLt.so.12", "libcublas.so.12", "libcurand.so.10", "libcufft.so.11", "libcudart.so.12",
        "libcudnn.so.9", "libnvrtc.so.12"))})
    for name, files in {"cublas": ("libcublas.so.12", "libcublasLt.so.12"), "cudnn": ("libcudnn.so.9",),
                        "cuda_nvrtc": ("libnvrtc.so.12",), "cuda_runtime": ("libcudart.so.12",)}.items():
        world.wheel(f"nvidia-{name.replace('_', '-')}-cu12", "12.8.1", {
            f"nvidia/{name}/lib/{each}": lib() for each in files})
    return world.opens(library, project="onnxruntime-gpu", phase="first use", what="onnxruntime opens its provider")


def test_every_library_of_a_provider_without_runpath(tmp_path: Path) -> None:
    world = provider(World(tmp_path))
    found = [each for each in answers(world) if isinstance(each, Finding)]
    by_code = {code: [each for each in found if each.code == code] for code in ("SF401", "SF402")}
    assert len(by_code["SF402"]) == 1
    one = by_code["SF402"][0]
    assert one.error == really(world) == (
        "libcublasLt.so.12: cannot open shared object file: No such file or directory")
    assert one.requester is not None
    assert one.requester.path == world.inside("onnxruntime/capi/libonnxruntime_providers_cuda.so")
    text = "\n".join(one.evidence)
    assert "libcudnn.so.9: installed, not reached" in text
    assert "libcurand.so.10: nowhere in the environment" in text
    assert "it has no RPATH and no RUNPATH" in text
    assert "or call onnxruntime.preload_dlls() before the first session" in one.cure
    folders = one.cure[0].partition("=")[2].partition("$")[0].split(":")
    assert {each.removeprefix(f"{world.site}/nvidia/") for each in folders} == {
        "cublas/lib", "cudnn/lib", "cuda_nvrtc/lib", "cuda_runtime/lib"}
    assert [each.culprit.package for each in by_code["SF401"]] == ["nvidia-curand-cu12"]
    assert by_code["SF401"][0].cure[0] == f"{PIP} 'nvidia-curand-cu12' 'nvidia-cufft-cu12'"


def test_what_torch_has_loaded_is_reached(tmp_path: Path) -> None:
    world = provider(World(tmp_path)).opens_nothing()
    world.wheel("torch", "2.8.0", {"torch/lib/libtorch_global_deps.so": lib(
        needs=("libcudnn.so.9", "libcudart.so.12"), rpath="$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/"
                                                           "cuda_runtime/lib")})
    world.library("mine/_m.abi3.so", lib(needs=("libcudnn.so.9",)))
    world.opens("torch/lib/libtorch_global_deps.so", project="torch").opens("mine/_m.abi3.so", phase="module")
    assert answers(world) == []
    assert world.really() == ""


def test_a_torch_in_another_package_folder(tmp_path: Path) -> None:
    """lib64 for platform wheels, lib for pure ones: the relative RPATH of torch leads to nothing."""
    world = World(tmp_path)
    other = "/opt/pure"
    world.wheel("torch", "2.6.0", {TORCH_CUDA: lib(
        needs=("libcusparseLt.so.0",), rpath="$ORIGIN/../../cusparselt/lib")},
        requires=("nvidia-cusparselt-cu12==0.6.2",))
    world.wheel("nvidia-cusparselt-cu12", "0.6.2", {"cusparselt/lib/libcusparseLt.so.0": lib()}, site=other)
    world.write(f"{world.site}/pure.pth", f"{other}\n")
    finding = only(world.opens(TORCH_CUDA, project="torch"))
    assert (finding.code, finding.culprit.path) == ("SF402", f"{other}/cusparselt/lib/libcusparseLt.so.0")
    assert "lies in another package folder, /opt/pure" in finding.why
    assert finding.error == really(world)
    assert finding.cure[0].startswith(f"export LD_LIBRARY_PATH={other}/cusparselt/lib")
    assert "or install all of it into a virtual environment, which has one package folder" in finding.cure
    assert finding.repairable           # a .pth file of the environment names it: a hook can, too


@pytest.mark.parametrize("folder", ["{prefix}/lib/cuda", "/opt/cuda/lib64"])
def test_what_only_activation_leads_to_is_not_nowhere(tmp_path: Path, folder: str) -> None:
    world = World(tmp_path, conda=True)
    folder = folder.format(prefix=world.prefix)
    script = f"{world.prefix}/etc/conda/activate.d/cuda.sh"
    world.write(script, f"# CUDA\nexport LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH\n")
    world.library(f"{folder}/libcufft.so.11", lib()).library("m/m.abi3.so", lib(needs=("libcufft.so.11",)))
    finding = only(world.opens("m/m.abi3.so", phase="module"))
    assert (finding.code, finding.severity) == ("SF402", "warning")
    assert finding.summary == "m.abi3.so finds libcufft.so.11 after activation only"
    assert finding.why.startswith(f"{script}, line 2, puts {folder} on LD_LIBRARY_PATH.")
    assert finding.cure[0] == f"conda activate {world.prefix}"
    assert finding.error == really(world)
    assert answers(world.environ(LD_LIBRARY_PATH=folder)) == []


# --- foreign copies in the place of missing ones ---


def test_an_older_toolkit_stands_in_for_a_wheel_that_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.8.0", {TORCH_CPU: lib(
        needs=("libcupti.so.12",), wants=("cuptiActivityEnableDriverApi@libcupti.so.12",),
        rpath="$ORIGIN/../../nvidia/cuda_cupti/lib")}, requires=("nvidia-cuda-cupti-cu12==12.8.90",))
    world.toolkit("/usr/local/cuda-12.4", "12.4.1")
    world.library("/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", lib(versions=("libcupti.so.12",)))
    world.environ(LD_LIBRARY_PATH="/usr/local/cuda-12.4/extras/CUPTI/lib64").opens(TORCH_CPU, project="torch")
    finding = only(world)
    assert (finding.code, finding.severity, finding.culprit.variable) == ("SF403", "error", "LD_LIBRARY_PATH")
    assert finding.culprit.path == "/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12"
    assert finding.culprit.package == "nvidia-cuda-cupti-cu12==12.8.90"
    assert finding.summary == ("libcupti.so.12 of /usr/local/cuda-12.4/extras/CUPTI/lib64 (LD_LIBRARY_PATH) stands in "
                               "for that of nvidia-cuda-cupti-cu12==12.8.90, and lacks the symbol "
                               "cuptiActivityEnableDriverApi that libtorch_cpu.so needs")
    assert finding.symbols == ("cuptiActivityEnableDriverApi",)
    assert finding.cure[0] == f"{PIP} 'nvidia-cuda-cupti-cu12==12.8.90'"
    assert finding.error == really(world)


@pytest.mark.parametrize("offers", [("ncclSend",), ("ncclSend", "ncclCommRegister")])
def test_a_recorded_file_is_gone_and_the_system_fills_in(tmp_path: Path, offers: tuple[str, ...]) -> None:
    world = World(tmp_path).wheel("nvidia-nccl-cu12", "2.19.3", {NCCL: lib()}).remove(NCCL)
    world.wheel("torch", "2.2.0", {TORCH_CUDA: lib(needs=("libnccl.so.2",), wants=("ncclSend", "ncclCommRegister"),
                                                   rpath="$ORIGIN/../../nvidia/nccl/lib")})
    world.library(f"{SYSTEM}/libnccl.so.2", lib(offers=offers)).opens(TORCH_CUDA, project="torch")
    finding = only(world)
    assert (finding.code, finding.severity) == ("SF403", "error" if len(offers) == 1 else "warning")
    assert (finding.culprit.path, finding.culprit.package) == (f"{SYSTEM}/libnccl.so.2", "nvidia-nccl-cu12 2.19.3")
    assert finding.symbols == (("ncclCommRegister",) if len(offers) == 1 else ())
    assert "--force-reinstall" in finding.cure[0]


def test_a_torch_without_wheels_is_meant_to_take_the_system(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("torch", "2.2.0", {TORCH_CUDA: lib(
        needs=("libnccl.so.2",), wants=("ncclSend", "ncclCommRegister"))})
    world.library(f"{SYSTEM}/libnccl.so.2", lib(offers=("ncclSend", "ncclCommRegister"))).opens(TORCH_CUDA)
    assert answers(world) == []
    world.library(f"{SYSTEM}/libnccl.so.2", lib(offers=("ncclSend",)))
    finding = only(world)
    assert (finding.code, finding.culprit.path, finding.culprit.package) == ("SF201", f"{SYSTEM}/libnccl.so.2", None)
    assert not finding.repairable


# --- left to other checks ---


def test_links_and_names_without_a_version_are_told_elsewhere(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cuda-nvrtc-cu12", "12.1.105", {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": lib()})
    world.wheel("zlib", "1", {"z/lib/libz.so.1.3": lib(soname="libz.so.1")})
    world.link(world.inside("z/lib/libbz2.so.1"), "libbz2.so.1.0.8")
    world.library("m/m.abi3.so", lib(needs=("libnvrtc.so", "libz.so.1", "libbz2.so.1"), rpath="$ORIGIN/../z/lib"))
    assert answers(world.opens("m/m.abi3.so", phase="module")) == []
    assert world.really()


def test_a_library_for_another_processor_is_told_elsewhere(tmp_path: Path) -> None:
    world = World(tmp_path).library("nvidia/nccl/lib/libnccl.so.2", lib(machine=183))
    world.library(TORCH_CUDA, lib(needs=("libnccl.so.2",), rpath="$ORIGIN/../../nvidia/nccl/lib"))
    assert answers(world.opens(TORCH_CUDA)) == []


# --- what a package's own code opens ---


@pytest.fixture
def torch(tmp_path: Path) -> World:
    return install_torch(World(tmp_path), "2.3.1")


def all_of(world: World) -> Sequence[Finding]:
    """All that is above a note."""
    return [each for each in diagnose(world.view(load_libraries())).findings if each.severity != "note"]


def test_torchs_own_module_is_gone(torch: World) -> None:
    """No loader ever speaks of a pattern, and no package of the system has it."""
    module, = torch.host(f"{torch.site}/torch").glob("_C.*.so")
    torch.remove(f"torch/{module.name}")
    finding, = all_of(torch)
    assert (finding.code, finding.severity, finding.error) == ("SF401", "error", None)
    assert finding.summary == f"{module.name} of torch 2.3.1 is gone, and import torch opens it"
    assert finding.cure == (f"{torch.prefix}/bin/python -m pip install --force-reinstall --no-deps torch==2.3.1",)


def test_a_library_that_torch_needs_and_opens_by_a_pattern_is_told_once(torch: World) -> None:
    torch.remove("nvidia/cuda_runtime/lib/libcudart.so.12")
    finding, = all_of(torch)
    assert (finding.code, finding.severity) == ("SF401", "error")
    assert finding.culprit.path == torch.inside("nvidia/cuda_runtime/lib/libcudart.so.12")
    assert "--force-reinstall --no-deps nvidia-cuda-runtime-cu12==12.1.105" in finding.cure[0]
    assert "*" not in finding.summary + (finding.error or "")


def test_a_folder_in_place_of_a_library(torch: World) -> None:
    path = torch.remove("nvidia/nvtx/lib/libnvToolsExt.so.1").inside("nvidia/nvtx/lib/libnvToolsExt.so.1")
    torch.host(path).mkdir()
    finding, = all_of(torch)
    assert (finding.code, finding.severity, finding.culprit.path) == ("SF702", "error", path)
    assert (finding.error or "").endswith("libnvToolsExt.so.1: cannot read file data: Is a directory")


def test_a_wheel_that_is_not_installed_is_told_by_who_needs_it(torch: World) -> None:
    for each in torch.host(torch.site).glob("nvidia_cuda_runtime_cu12-*/*"):
        each.unlink()
    torch.remove("nvidia/cuda_runtime/lib/libcudart.so.12")
    told = [each for each in all_of(torch) if each.code == "SF401"]
    assert len(told) == 1
    assert "*" not in told[0].summary
    assert told[0].cure == (f"{PIP} 'nvidia-cuda-runtime-cu12==12.1.105'",)
