"""What fails when imports are simulated, with its roots; beside what this machine's own loader says of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.abi.names import is_standard_symbol, is_torch_library, is_torch_symbol
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.faults import find_faults, own_copies, serious
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_symbols import family_of_symbol
from stackfix.diagnose.faults_text import capital
from stackfix.diagnose.records import MissingLibrary, MissingSymbol, MissingVersion
from stackfix.matrix.libraries import load_libraries
from tests.diagnose_world import LIBRARIES, World, lib

JIT = "libnvJitLink.so.12"
JIT_NAMES = ("__nvJitLinkCreate", "__nvJitLinkAddData", "__nvJitLinkComplete", "__nvJitLinkDestroy")
CUSPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
NVJITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"


def jit(*minors: str) -> tuple[str, ...]:
    return tuple(f"{name}_12_{minor}@{JIT}" for minor in minors for name in JIT_NAMES)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path).wheel("nvidia-nvjitlink-cu12", "12.1.105", {NVJITLINK: lib(offers=jit("0", "1"))}).wheel(
        "nvidia-cusparse-cu12", "12.1.0.106",
        {CUSPARSE: lib(needs=(JIT,), wants=jit("1"), runpath="$ORIGIN/../../nvjitlink/lib")})


def only(world: World) -> Fault:
    """The one fault, which the real loader reports in the same words."""
    faults = find_faults(world.view())
    assert len(faults) == 1, faults
    assert world.really().splitlines()[0] == faults[0].failure.message()
    return faults[0]


def test_what_loads_has_no_fault(world: World) -> None:
    world.opens(CUSPARSE)
    assert find_faults(world.view()) == ()
    assert world.really() == ""


def test_all_symbols_of_one_library_are_one_fault(world: World) -> None:
    world.library("/cuda/lib64/libnvJitLink.so.12", lib(offers=jit("0"))).environ(LD_LIBRARY_PATH="/cuda/lib64")
    fault = only(world.opens(CUSPARSE))
    assert (fault.category, fault.name, fault.severity) == ("symbol", JIT, "error")
    assert fault.symbols == tuple(f"{name}_12_1" for name in JIT_NAMES)
    assert fault.provider is not None
    assert fault.provider.path == "/cuda/lib64/libnvJitLink.so.12"
    assert fault.requester is not None
    assert fault.requester.path == world.inside(CUSPARSE)
    assert fault.family is not None
    assert fault.family.name == "nvJitLink"


def test_a_library_that_two_need_is_one_fault_with_both(world: World) -> None:
    world.library("/cuda/lib64/libnvJitLink.so.12", lib(offers=jit("0"))).environ(LD_LIBRARY_PATH="/cuda/lib64")
    world.library("other/libother.so", lib(needs=(JIT,), wants=(*jit("1")[:1], f"__nvJitLinkLast_12_1@{JIT}")))
    faults = find_faults(world.opens(CUSPARSE).opens("other/libother.so").view())
    assert len(faults) == 1
    assert [each.path for each in faults[0].requesters] == [world.inside(CUSPARSE), world.inside("other/libother.so")]
    assert faults[0].symbols[-1] == "__nvJitLinkLast_12_1"
    assert len(faults[0].symbols) == len(JIT_NAMES) + 1


def test_symbols_of_a_missing_library_are_no_faults_of_their_own(world: World) -> None:
    world.remove(NVJITLINK)
    fault = only(world.opens(CUSPARSE))
    assert (fault.category, fault.name) == ("missing", JIT)
    assert fault.symbols == tuple(f"{name}_12_1" for name in JIT_NAMES)
    assert isinstance(fault.failure, MissingLibrary)


def test_the_same_missing_library_is_one_fault_for_all_that_need_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("a", "b", "c"):
        world.library(f"many/{name}.cpython-311-x86_64-linux-gnu.so", lib(needs=("libavutil.so.58",)))
        world.opens(f"many/{name}.cpython-311-x86_64-linux-gnu.so", project="many", phase="module")
    fault = only(world)
    assert (fault.category, fault.severity) == ("missing", "warning")
    assert [each.path.rpartition("/")[2][0] for each in fault.requesters] == ["a", "b", "c"]


def test_an_unversioned_symbol_is_of_the_family_that_the_requester_needs(tmp_path: Path) -> None:
    world = World(tmp_path).library("nvidia/nccl/lib/libnccl.so.2", lib(offers=("ncclSend",)))
    world.library("torch/lib/libtorch_cuda.so", lib(needs=("libnccl.so.2",), rpath="$ORIGIN/../../nvidia/nccl/lib",
                                                    wants=("ncclSend", "ncclCommRegister", "ncclCommDeregister")))
    fault = only(world.opens("torch/lib/libtorch_cuda.so"))
    assert (fault.category, fault.name) == ("symbol", "libnccl.so.2")
    assert fault.symbols == ("ncclCommRegister", "ncclCommDeregister")
    assert fault.provider is not None


def test_a_family_is_known_where_only_another_library_needs_it(tmp_path: Path) -> None:
    world = World(tmp_path).library("lib/libnccl.so.2", lib(offers=("ncclSend",)))
    world.library("lib/libtorch_cuda.so", lib(needs=("libnccl.so.2",), rpath="$ORIGIN"))
    world.library("ext/libext.so", lib(needs=("libtorch_cuda.so",), rpath="$ORIGIN/../lib", wants=("ncclCommSplit",)))
    fault = only(world.opens("ext/libext.so"))
    assert (fault.category, fault.name, fault.symbols) == ("symbol", "libnccl.so.2", ("ncclCommSplit",))


def test_a_version_node_and_its_symbols_are_one_fault(tmp_path: Path) -> None:
    world = World(tmp_path).library("/old/libcublas.so.12", lib(offers=("cublasCreate@libcublas.so.11",)))
    world.library("solver/libcusolver.so.11", lib(needs=("libcublas.so.12",), wants=(
        "cublasCreate@libcublas.so.12x@libcublas.so.12", "cublasDestroy@libcublas.so.12x@libcublas.so.12")))
    fault = only(world.environ(LD_LIBRARY_PATH="/old").opens("solver/libcusolver.so.11"))
    assert isinstance(fault.failure, MissingVersion)
    assert (fault.category, fault.name, fault.versions) == ("version", "libcublas.so.12", ("libcublas.so.12x",))
    assert fault.symbols == ("cublasCreate", "cublasDestroy")
    assert not fault.is_system


def test_a_system_version_is_told_apart(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/m.abi3.so", lib(
        needs=("libstdc++.so.6",), wants=("_ZSt4cout@GLIBCXX_99.1@libstdc++.so.6", "f@CXXABI_99@libstdc++.so.6")))
    faults = find_faults(world.opens("m/m.abi3.so", phase="module").view())
    assert [(each.category, each.versions, each.is_system) for each in faults] == [
        ("version", ("GLIBCXX_99.1", "CXXABI_99"), True)]


def test_torch_symbols_are_theirs_who_know_torch(tmp_path: Path) -> None:
    world = World(tmp_path).library("torch/lib/libc10.so", lib(offers=("_ZN3c105ErrorE",)))
    world.library("ext/_C.abi3.so", lib(
        needs=("libc10.so",), rpath="$ORIGIN/../torch/lib",
        wants=("_ZN3c105ErrorE", "_ZN3c104cuda9SetDeviceEi", "_ZN2at4_ops3add4callE", "PyNothing_Known")))
    faults = find_faults(world.opens("ext/_C.abi3.so", phase="module").view())
    assert [(each.category, each.symbols) for each in faults] == [
        ("torch-symbol", ("_ZN3c104cuda9SetDeviceEi", "_ZN2at4_ops3add4callE")),
        ("symbol-unknown", ("PyNothing_Known",))]


def test_torch_symbols_are_missing_with_the_library_of_torch(tmp_path: Path) -> None:
    world = World(tmp_path).library("ext/_C.abi3.so", lib(needs=("libc10_cuda.so",),
                                                          wants=("_ZN3c104cuda9SetDeviceEi",)))
    fault = only(world.opens("ext/_C.abi3.so", phase="module"))
    assert (fault.category, fault.name, fault.symbols) == ("missing", "libc10_cuda.so", ("_ZN3c104cuda9SetDeviceEi",))
    assert fault.severity == "error"


def test_parts_of_one_library_from_two_places_are_mixed(tmp_path: Path) -> None:
    version = "libcudnn_cnn_infer.so.8"
    world = World(tmp_path).library(f"torch/lib/{version}", lib(offers=(f"layerNorm@{version}",)))
    world.library("/usr/local/cuda/lib64/libcudnn_cnn_train.so.8",
                  lib(needs=(version,), wants=(f"isAmpere@{version}",)))
    world.opens(f"torch/lib/{version}").opens("/usr/local/cuda/lib64/libcudnn_cnn_train.so.8", phase="first use")
    fault = only(world)
    assert (fault.category, fault.name, fault.symbols) == ("mixed", version, ("isAmpere",))


def test_what_cannot_be_loaded_is_one_fault_with_its_symbols(world: World) -> None:
    world.library("/cuda/lib64/libnvJitLink.so.12", lib(garbage=True)).environ(LD_LIBRARY_PATH="/cuda/lib64")
    fault = only(world.opens(CUSPARSE))
    assert (fault.category, fault.name) == ("bad", JIT)
    assert len(fault.symbols) == len(JIT_NAMES)


def test_the_worst_sighting_counts(tmp_path: Path) -> None:
    world = World(tmp_path).library("m/a.abi3.so", lib(needs=("libgone.so.1",))).opens(
        "m/a.abi3.so", may_fail="it is tried in another way")
    faults = find_faults(world.view())
    assert [each.severity for each in faults] == ["note"]
    assert list(serious(faults)) == []
    faults = find_faults(world.library("m/b.abi3.so", lib(needs=("libgone.so.1",))).opens("m/b.abi3.so").view())
    assert [(each.severity, each.opening.what) for each in faults] == [("error", "m/b.abi3.so")]
    assert list(serious(faults)) == list(faults)


def test_copies_of_the_environment_are_found_by_name(world: World) -> None:
    view = world.view()
    assert own_copies(view, JIT) == (world.inside(NVJITLINK),)
    assert own_copies(view, "libnone.so") == ()


def test_faults_are_worked_out_once(world: World) -> None:
    view = world.remove(NVJITLINK).opens(CUSPARSE).view()
    assert find_faults(view) is find_faults(view)
    assert not isinstance(find_faults(view)[0].failure, MissingSymbol)


@pytest.mark.parametrize(("name", "torch"), [
    ("_ZN3c104cuda9SetDeviceEi", True), ("_ZN2at6Tensor3addEv", True), ("_ZNK2at10TensorBase4sizeEv", True),
    ("_ZN3c10lsERSoRKNS_6DeviceE", True), ("_ZN4c10d12ProcessGroup4initEv", True), ("aoti_torch_empty_strided", True),
    ("_ZTIN3c105ErrorE", True), ("THPVariableClass", True), ("_ZNSs2atEm", False), ("_ZNKSt6vectorIiE2atEm", False),
    ("_ZN13c10something3fooEv", False), ("_ZN2at6native12_GLOBAL__N_1_3fooEv", False), ("cudaMalloc", False),
    ("_ZN12__cxxabi2at3fooEv", False),
])
def test_torch_symbols_are_known_by_their_namespaces(name: str, torch: bool) -> None:
    assert is_torch_symbol(name) is torch


@pytest.mark.parametrize(("name", "standard"), [
    ("_ZNSt7__cxx1112basic_stringIcE", True), ("_ZSt4cout", True), ("_ZdlPvm", True), ("__cxa_call_terminate", True),
    ("_ZNKSs4sizeEv", True), ("_ZTVN10__cxxabiv117__class_type_infoE", True), ("_ZNSt6vectorIN2at6TensorEE", False),
    ("PyLong_Type", False), ("_Z3foov", False),
])
def test_symbols_of_the_standard_library(name: str, standard: bool) -> None:
    assert is_standard_symbol(name) is standard


@pytest.mark.parametrize(("name", "family"), [
    ("cudaMallocAsync", "CUDA runtime"), ("cuCtxCreate_v2", "CUDA driver"), ("cudnnCreate", "cuDNN"),
    ("cusparseLtInit", "cuSPARSELt"), ("cusparseCreate", "cuSPARSE"), ("customers", None), ("ncclSend", "NCCL"),
])
def test_the_longest_prefix_decides(name: str, family: str | None) -> None:
    found = family_of_symbol(name, LIBRARIES.families)
    assert (found.name if found else None) == family


@pytest.mark.parametrize(("soname", "torch"), [
    ("libtorch_cuda.so", True), ("libc10.so", True), ("libtorch_cuda_cu.so", True), ("libtorchaudio.so", False),
    ("libc10.so.1", False),
])
def test_libraries_of_torch(soname: str, torch: bool) -> None:
    assert is_torch_library(soname) is torch


@pytest.mark.parametrize(("sentence", "capitalised"), [
    ("it offers these functions up to _12_2", "It offers these functions up to _12_2"),
    ("which version has them, nothing tells", "Which version has them, nothing tells"),
    ("libcusparse.so.12 uses __nvJitLinkAddData_12_1", "libcusparse.so.12 uses __nvJitLinkAddData_12_1"),
    ("torch 2.2.0 requires nvidia-nccl-cu12==2.19.3", "torch 2.2.0 requires nvidia-nccl-cu12==2.19.3"),
    ("nvidia-nccl-cu12 is old", "nvidia-nccl-cu12 is old"), ("ncclSend came with 2.7", "ncclSend came with 2.7"),
    ("cuSPARSE of CUDA 12.1", "cuSPARSE of CUDA 12.1"), ("/opt/cuda was first", "/opt/cuda was first"),
])
def test_names_are_not_capitalised(sentence: str, capitalised: str) -> None:
    assert capital(sentence) == capitalised


def test_without_an_interpreter_nobody_knows_whose_a_symbol_is(tmp_path: Path) -> None:
    """libc, libdl, and what a stand-alone Python has linked into it, are in the process once there is one."""
    world = World(tmp_path).wheel("a", "1.0", {"_a.abi3.so": lib(
        needs=("libc.so.6",), wants=("dlsym", "inflate"))})
    assert [each.category for each in find_faults(world.view())] == ["symbol-unknown"]
    world.remove("/usr/bin/python3.11")
    view = world.view()
    diagnosis = diagnose(view)
    assert not any(each.code.startswith("SF50") for each in diagnosis.findings)
    assert find_faults(view) == ()
    said = [each.reason for each in diagnosis.undecided if each.subject == "imports"]
    assert len(said) == 1
    assert "2 symbols (dlsym, …) that _a.abi3.so needs may be among them" in said[0]


def test_endless_numbers_end_nothing(tmp_path: Path) -> None:
    """In versions, sonames and mangled names; int() refuses more than some thousand digits."""
    nines = "9" * 6000
    world = World(tmp_path).wheel("torch", "2.3.1", {"torch/lib/libtorch_cpu.so": lib(
        needs=(f"libcudart.so.{nines}", f"libcudnn.so.{nines}"), wants=(f"_ZN3c10{nines}xE", f"_ZN3c10B{nines}xE"))})
    world.wheel("nvidia-nccl-cu12", "1", {"nvidia/nccl/lib/libnccl.so.2": lib(soname=f"libnccl.so.{nines}")})
    world.wheel("ext", "1", {"ext/_C.abi3.so": lib(needs=("libtorch_cpu.so",), wants=(f"_ZN3c10{nines}xE",),
                                                   runpath="$ORIGIN/../torch/lib")})
    for name, version in (("torch", "2.3.1"), ("nvidia_nccl_cu12", "1")):
        world.write(f"{world.site}/{name}-{version}.dist-info/METADATA",
                    f"Metadata-Version: 2.1\nName: {name}\nVersion: {nines}.{nines}+cu{nines}\n")
    assert diagnose(world.opens("torch/lib/libtorch_cpu.so").opens("ext/_C.abi3.so", project="ext").view()).findings
    assert diagnose(world.opens_nothing().view(load_libraries())).findings
