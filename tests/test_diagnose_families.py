"""Two majors of one library in a process, and parts of one library from different versions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stackfix.diagnose.families import find_two_families
from stackfix.diagnose.families_origin import find_mixed_origins
from stackfix.diagnose.families_parts import major_of, same_version, version_of
from stackfix.diagnose.finding_records import Finding
from stackfix.inspect.environment_records import Owner
from tests.diagnose_world import LIBRARIES, SYSTEM, World, family, lib

CUDNN = "nvidia/cudnn/lib"
CUDART12 = "nvidia/cuda_runtime/lib/libcudart.so.12"
TORCH = "torch/lib/libc10_cuda.so"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """torch for CUDA 12."""
    return World(tmp_path).wheel("nvidia-cuda-runtime-cu12", "12.1.105", {CUDART12: lib()}).wheel(
        "torch", "2.3.1", {TORCH: lib(needs=("libcudart.so.12",), rpath="$ORIGIN/../../nvidia/cuda_runtime/lib")},
        requires=('nvidia-cuda-runtime-cu12==12.1.105; platform_system == "Linux"',)).opens(TORCH, project="torch")


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


# --- two families ---


def add_cuda_11(world: World, **more: str) -> World:
    """An extension that brings the runtime of CUDA 11."""
    return world.wheel("nvidia-cuda-runtime-cu11", "11.8.89", {"cu11/lib/libcudart.so.11.0": lib()}).wheel(
        "xformers", "0.0.20", {"xformers/_C.so": lib(needs=("libcudart.so.11.0",), runpath="$ORIGIN/../cu11/lib")},
        ).opens("xformers/_C.so", project="xformers", **more)   # type: ignore[arg-type]


def test_one_family_is_no_finding(world: World) -> None:
    assert list(find_two_families(world.view())) == []


def test_two_majors_in_one_process(world: World) -> None:
    finding = only(list(find_two_families(add_cuda_11(world).view())))
    assert (finding.code, finding.severity, finding.level) == ("SF301", "error", "cuda")
    assert finding.culprit.path == world.inside("cu11/lib/libcudart.so.11.0")
    assert finding.culprit.package == "xformers 0.0.20"
    assert finding.requester is not None
    assert finding.requester.path == world.inside("xformers/_C.so")
    assert (finding.winner, finding.loser) == (world.inside(CUDART12), finding.culprit.path)
    assert "CUDA runtime 12 and 11" in finding.summary
    assert "torch 2.3.1" in finding.summary
    assert finding.repairable


def test_a_module_that_may_never_be_imported_is_a_warning(world: World) -> None:
    assert only(list(find_two_families(add_cuda_11(world, phase="module").view()))).severity == "warning"


def test_what_may_fail_is_a_note(world: World) -> None:
    assert only(list(find_two_families(add_cuda_11(world, may_fail="tried in vain").view()))).severity == "note"


def test_all_families_of_one_pair_are_one_finding(world: World) -> None:
    world.library("nvidia/cublas/lib/libcublas.so.12", lib()).library("cu11/lib/libcublas.so.11", lib())
    world.library("cu11/lib/libcudart.so.11.0", lib())
    world.wheel("both", "1", {
        "both/a.so": lib(needs=("libcublas.so.12",), runpath="$ORIGIN/../nvidia/cublas/lib"),
        "both/b.so": lib(needs=("libcudart.so.11.0", "libcublas.so.11"), runpath="$ORIGIN/../cu11/lib")})
    world.opens("both/a.so").opens("both/b.so")
    findings = list(find_two_families(world.view()))
    assert [each.culprit.package for each in findings] == ["both 1", "both 1"]     # beside torch, and beside itself
    assert sum(len(each.evidence) for each in findings) == 6


def test_a_library_whose_majors_agree_is_left_alone(world: World) -> None:
    libraries = dataclasses.replace(LIBRARIES, families=tuple(
        dataclasses.replace(each, one_per_process=False) for each in LIBRARIES.families))
    assert list(find_two_families(add_cuda_11(world).view(libraries))) == []


def test_a_bundled_copy_with_a_hash_in_its_name(world: World) -> None:
    world.wheel("old", "1", {
        "old.libs/libcudart-d0da41ae.so.11.0": lib(),
        "old/_C.so": lib(needs=("libcudart-d0da41ae.so.11.0",), runpath="$ORIGIN/../old.libs")}).opens("old/_C.so")
    assert only(list(find_two_families(world.view()))).culprit.package == "old 1"


def test_a_library_opened_by_name_is_its_callers(world: World) -> None:
    world.wheel("opener", "2", {"opener/libopener.so": lib(runpath="$ORIGIN"), "opener/libcudart.so.11.0": lib()})
    world.opens("opener/libopener.so").opens("libcudart.so.11.0", caller="opener/libopener.so", phase="first use")
    finding = only(list(find_two_families(world.view())))
    assert finding.culprit.package == "opener 2"
    assert finding.requester is not None
    assert finding.requester.path == world.inside("opener/libopener.so")


def test_a_file_that_nobody_owns_cannot_be_exchanged(world: World) -> None:
    world.library("/opt/cu11/libcudart.so.11.0", lib()).library("mine/ext.so", lib(
        needs=("libcudart.so.11.0",), runpath="/opt/cu11")).opens("mine/ext.so")
    finding = only(list(find_two_families(world.view())))
    assert not finding.repairable
    assert finding.requester is not None
    assert finding.requester.path == world.inside("mine/ext.so")


def test_majors_side_by_side_are_a_note(world: World) -> None:
    world.wheel("nvidia-cuda-runtime", "13.0.48", {"nvidia/cu13/lib/libcudart.so.13": lib()})
    finding = only(list(find_two_families(world.view())))
    assert (finding.severity, finding.repairable) == ("note", False)
    assert "CUDA runtime 12 and 13" in finding.summary
    assert any("required by torch 2.3.1" in each for each in finding.evidence)
    assert finding.cure == ("nothing that is installed requires nvidia-cuda-runtime 13.0.48: it may be removed",)


def test_parts_of_one_release_have_majors_of_their_own(world: World) -> None:
    libraries = dataclasses.replace(LIBRARIES, families=(family("cuFile", "cuda", "libcufile libcufile_rdma"),))
    world.wheel("nvidia-cufile-cu12", "1.11.1.6", {
        "cufile/libcufile.so.0": lib(needs=("libcufile_rdma.so.1",), runpath="$ORIGIN"),
        "cufile/libcufile_rdma.so.1": lib()}).opens("cufile/libcufile.so.0")
    assert list(find_two_families(world.view(libraries))) == []


def test_a_file_that_counts_otherwise_is_known_by_its_soname(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cuda-cupti", "13.0.48", {
        "nvidia/cu13/lib/libcupti.so.13": lib(), "nvidia/cu13/lib/libcupti.so.2025.3.0": lib(soname="libcupti.so.13")})
    assert list(find_two_families(world.view())) == []
    world.wheel("nvidia-cuda-cupti-cu12", "12.6.80", {"nvidia/cuda_cupti/lib/libcupti.so.12": lib()})
    assert "CUPTI 12 and 13" in only(list(find_two_families(world.view()))).summary


def test_a_copy_that_another_package_bundles_lies_beside_nothing(tmp_path: Path) -> None:
    """triton 3.7 has CUPTI 12 in its own folder, also beside a torch of CUDA 13."""
    world = World(tmp_path).wheel("nvidia-cuda-cupti", "13.0.85", {"nvidia/cu13/lib/libcupti.so.13": lib()})
    world.wheel("triton", "3.7.1", {"triton/backends/nvidia/lib/cupti/libcupti.so.12": lib()})
    assert list(find_two_families(world.view())) == []
    world.library("mine/lib/libcupti.so.12", lib())     # of nobody: it may be meant for all
    assert "CUPTI 12 and 13" in only(list(find_two_families(world.view()))).summary


# --- mixed origins ---



@pytest.fixture
def cudnn(tmp_path: Path) -> World:
    """A wheel of cuDNN whose main library opens the others by name; it ships no tensor_ir engine."""
    world = World(tmp_path).wheel("nvidia-cudnn-cu13", "9.20.0.48", {
        f"{CUDNN}/libcudnn.so.9": lib(runpath="$ORIGIN"), f"{CUDNN}/libcudnn_ops.so.9": lib(runpath="$ORIGIN")})
    world.opens(f"{CUDNN}/libcudnn.so.9", project="torch")
    return world.opens("libcudnn_ops.so.9", caller=f"{CUDNN}/libcudnn.so.9", phase="first use")


def open_tensor_ir(world: World) -> World:
    return world.opens("libcudnn_engines_tensor_ir.so.9", caller=f"{CUDNN}/libcudnn.so.9", phase="first use",
                       may_fail="optional: engines")


def system_tensor_ir(world: World, version: str = "9.10.2") -> World:
    """A system's cuDNN, as Debian packages install it."""
    name = "libcudnn_engines_tensor_ir.so.9"
    world.library(f"{SYSTEM}/{name}.{version[2:]}", lib(soname=name)).link(f"{SYSTEM}/{name}", f"{name}.{version[2:]}")
    return world.cached(f"{SYSTEM}/{name}")


def test_parts_of_one_folder_are_no_finding(cudnn: World) -> None:
    assert list(find_mixed_origins(open_tensor_ir(cudnn).view())) == []


def test_a_system_part_that_fills_in(cudnn: World) -> None:
    finding = only(list(find_mixed_origins(open_tensor_ir(system_tensor_ir(cudnn)).view())))
    assert (finding.code, finding.severity, finding.level) == ("SF302", "error", "cudnn")
    assert finding.culprit.path == f"{SYSTEM}/libcudnn_engines_tensor_ir.so.9"
    assert finding.error == "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
    assert finding.requester is not None
    assert finding.requester.path == cudnn.inside(f"{CUDNN}/libcudnn.so.9")
    assert finding.requester.package == "nvidia-cudnn-cu13 9.20.0.48"
    assert not finding.repairable
    assert any("remove the system's cuDNN" in each for each in finding.cure)
    assert any("libcudnn_ops.so.9: " in each and "nvidia-cudnn-cu13" in each for each in finding.evidence)


@pytest.mark.parametrize("element", ["", ".", "old", "./old/../old"])
def test_a_part_of_a_relative_element_is_told_by_its_whole_path(cudnn: World, element: str) -> None:
    name, folder = "libcudnn_engines_tensor_ir.so.9", "/old" if "old" in element else ""
    cudnn.library(f"{folder}/{name}.10.2", lib(soname=name)).link(f"{folder}/{name}", f"{name}.10.2")
    cudnn.environ(LD_LIBRARY_PATH=f"{element}:")
    finding = only(list(find_mixed_origins(open_tensor_ir(cudnn).view())))
    assert finding.culprit.path == finding.winner == f"{folder}/{name}"
    assert any(each.startswith(f"{name}: {folder}/{name} (") for each in finding.evidence)


def test_the_same_version_in_the_system_is_a_note(cudnn: World) -> None:
    finding = only(list(find_mixed_origins(open_tensor_ir(system_tensor_ir(cudnn, "9.20.0")).view())))
    assert (finding.severity, finding.error) == ("note", None)


def test_a_foreign_part_of_unknown_version_is_a_warning(cudnn: World) -> None:
    cudnn.library("/opt/x/libcudnn_engines_tensor_ir.so.9", lib()).environ(LD_LIBRARY_PATH="/opt/x")
    finding = only(list(find_mixed_origins(open_tensor_ir(cudnn).view())))
    assert finding.severity == "warning"
    assert finding.culprit.variable == "LD_LIBRARY_PATH"
    assert finding.repairable
    assert finding.cure[0] == "unset LD_LIBRARY_PATH"


def test_a_farm_of_links_is_no_mix(cudnn: World) -> None:
    farm = "/opt/farm/libcudnn_ops.so.9"
    cudnn.link(farm, cudnn.inside(f"{CUDNN}/libcudnn_ops.so.9")).environ(LD_LIBRARY_PATH="/opt/farm")
    assert list(find_mixed_origins(cudnn.view())) == []


def test_the_loser_is_the_file_that_the_foreign_one_hides(cudnn: World) -> None:
    own = f"{CUDNN}/libcudnn_ops.so.9"
    assert only(list(find_mixed_origins(open_tensor_ir(system_tensor_ir(cudnn)).view()))).loser == cudnn.inside(
        f"{CUDNN}/libcudnn.so.9")       # there is none: the wheel has no tensor_ir
    cudnn.library("/opt/x/libcudnn_ops.so.9", lib()).environ(LD_LIBRARY_PATH="/opt/x")
    found = {each.culprit.path: each.loser for each in find_mixed_origins(cudnn.view())}
    assert found["/opt/x/libcudnn_ops.so.9"] == cudnn.inside(own)


def test_a_whole_family_from_elsewhere_is_no_mix(tmp_path: Path) -> None:
    world = World(tmp_path).library("/opt/x/libcudnn.so.9", lib(runpath="$ORIGIN")).library("/opt/x/libcudnn_ops.so.9",
                                                                                         lib())
    world.opens("/opt/x/libcudnn.so.9").opens("libcudnn_ops.so.9", caller="/opt/x/libcudnn.so.9")
    assert list(find_mixed_origins(world.view())) == []


def test_half_of_cudnn_8_comes_from_a_module_of_the_cluster(tmp_path: Path) -> None:
    """The halves of cuDNN 8 share private symbols that change with every release."""
    private = "_ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi"
    infer, train = "libcudnn_cnn_infer.so.8", "libcudnn_cnn_train.so.8"
    module = "/usr/local/cuda/11.8.0/lib64"
    world = World(tmp_path).wheel("nvidia-cudnn-cu11", "8.9.2.26", {
        f"{CUDNN}/{infer}": lib(offers=(f"other@{infer}",)), f"{CUDNN}/libcudnn.so.8": lib(runpath="$ORIGIN")})
    full = f"{train.removesuffix('8')}8.6.0"
    world.library(f"{module}/{full}", lib(soname=train, needs=(infer,), wants=(f"{private}@{infer}",)))
    world.link(f"{module}/{train}", full).environ(LD_LIBRARY_PATH=module)
    world.opens(f"{CUDNN}/libcudnn.so.8").opens(infer, caller=f"{CUDNN}/libcudnn.so.8", phase="first use")
    world.opens(train, caller=f"{CUDNN}/libcudnn.so.8", phase="first use")
    finding = only(list(find_mixed_origins(world.view())))
    assert finding.severity == "error"
    assert finding.culprit.path == f"{module}/{train}"
    assert finding.symbols == (private,)
    assert finding.error is not None
    assert finding.error.endswith(f"undefined symbol: {private}, version {infer}")
    assert finding.cure[0] == "unset LD_LIBRARY_PATH"
    assert any("version 8.6.0" in each for each in finding.evidence)


def test_several_parts_of_cudnn_8_have_no_status_of_cudnn_9(tmp_path: Path) -> None:
    world, names = World(tmp_path), ("libcudnn_cnn_infer.so.8", "libcudnn_ops_infer.so.8")
    world.wheel("nvidia-cudnn-cu11", "8.9.2.26", {f"{CUDNN}/libcudnn.so.8": lib(runpath="$ORIGIN")})
    world.opens(f"{CUDNN}/libcudnn.so.8").environ(LD_LIBRARY_PATH="/opt/x")
    for name in names:
        world.library(f"/opt/x/{name[:-1]}8.6.0", lib(soname=name)).link(f"/opt/x/{name}", f"{name[:-1]}8.6.0")
        world.opens(name, caller=f"{CUDNN}/libcudnn.so.8", phase="first use")
    finding = only(list(find_mixed_origins(world.view())))
    assert (finding.severity, finding.error) == ("error", None)
    assert finding.summary.startswith(f"{names[0]}, {names[1]} come from ")


def test_parts_that_one_conda_package_spreads_are_no_mix(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    world.conda("libcublas", "12.1.0.26", {
        "lib/libcublas.so.12": lib(needs=("libcublasLt.so.12",), rpath="$ORIGIN/sub"),
        "lib/sub/libcublasLt.so.12": lib()})
    world.opens(f"{world.prefix}/lib/libcublas.so.12")
    assert list(find_mixed_origins(world.view())) == []


def test_bundled_copies_do_not_mix(tmp_path: Path) -> None:
    """Two wheels have their own libgomp under names with a hash, and the system has one too."""
    libraries = dataclasses.replace(LIBRARIES, families=(family("libgomp", "environment", "libgomp"),))
    world = World(tmp_path).library(f"{SYSTEM}/libgomp.so.1", lib())
    for name, version in (("torch", "1.2.3"), ("scikit-learn", "1.5.0")):
        world.wheel(name, version, {f"{name}.libs/libgomp-{version.replace('.', 'a') * 2}b.so.1": lib(),
                                    f"{name}/_C.so": lib(needs=(f"libgomp-{version.replace('.', 'a') * 2}b.so.1",
                                                                "libgomp.so.1"), runpath=f"$ORIGIN/../{name}.libs")})
        world.opens(f"{name}/_C.so", project=name)
    view = world.view(libraries)
    assert len(view.openings[-1].outcome.attempted.objects) > 6
    assert list(find_mixed_origins(view)) == []
    assert list(find_two_families(view)) == []


def test_who_bundles_a_library_does_not_tell_its_version() -> None:
    nccl = next(each for each in LIBRARIES.families if each.name == "NCCL")
    path, soname = "/x/torch/lib/libnccl.so.2", "libnccl.so.2"
    assert version_of(path, soname, Owner(manager="pip", name="torch", version="2.0.1"), nccl) is None
    assert version_of(path, soname, Owner(manager="pip", name="nvidia-nccl-cu11", version="2.14.3"), nccl) == "2.14.3"
    assert version_of(path, soname, Owner(manager="conda", name="nccl", version="2.14.3"), nccl) == "2.14.3"


# --- versions ---


@pytest.mark.parametrize(("real", "soname", "owned", "version"), [
    ("/x/libcudnn_ops.so.9.1.0", "libcudnn_ops.so.9", "9.9", "9.1.0"),
    ("/x/libcudart.so.11.0", "libcudart.so.11.0", "11.8.89", "11.8.89"),     # a soname is no version
    ("/x/libcudnn.so.9", "libcudnn.so.9", None, None),
    ("/x/libcudnn.so.9", "libcudnn.so.9", "9.1.0.70", "9.1.0.70"),
    ("/x/libcupti.so.2023.1.1", "libcupti.so.12", None, None),               # counted otherwise
    ("/x/libcupti.so.2023.1.1", "libcupti.so.12", "12.1.105", "12.1.105"),
    ("/x/libnvToolsExt.so.1", "libnvToolsExt.so.1", "12.1.105", None),
    ("/x/libtorch_cpu.so", "libtorch_cpu.so", "2.3.1", "2.3.1"),
    ("/x/libcublas.so.11.11.3.6", "libcublas.so.11", "11.8.0", "11.11.3.6"),    # conda's cudatoolkit holds many
])
def test_version_of_a_file(real: str, soname: str, owned: str | None, version: str | None) -> None:
    owner = Owner(manager="pip", name="x", version=owned) if owned else None
    assert version_of(real, soname, owner) == version


@pytest.mark.parametrize(("one", "other", "same"), [
    ("9.1.0", "9.1.0.70", True), ("9.1.0", "9.10.0.70", False), ("9.0.0", "9.0.0.312", True), ("9.0", "9.0.1", True),
    ("12.1.0.26", "12.1.3.1", False), (None, "9.1", None), ("x", "9.1", None),
])
def test_same_version_as_far_as_both_go(one: str | None, other: str | None, same: bool | None) -> None:
    assert same_version(one, other) is same


def test_majors() -> None:
    assert [major_of(name) for name in ("libcublas.so.12", "libcudart.so.11.0", "libc10.so")] == [12, 11, None]
