"""What sonames, symbol versions, tags and module names tell of a compiled package."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from stackfix.abi.calls import calls_of
from stackfix.abi.facts import abi_facts
from stackfix.abi.facts_gpu import merge_archs
from stackfix.abi.facts_libraries import cuda_majors, cudnn_majors, glibc_floor, needed_of, newest_standard, original
from stackfix.abi.facts_python import installers_refuse, module_abi, python_abis, python_floor
from stackfix.abi.judged import ReadWheels
from stackfix.abi.records import (
    AbiFacts,
    Asking,
    BookRelease,
    Books,
    Bounds,
    Compiled,
    CompiledFile,
    LibraryUse,
    PatchException,
    Provision,
    Since,
)
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs, UnreadableFatbin
from stackfix.inspect.plain import from_json, to_json
from stackfix.inspect.records import NeededVersion
from tests.abi_small import compiled

SET = "_ZN3c104cuda9SetDeviceEa"
GONE = PatchException(version="2.3.0", key="_ZN2at4goneEv", exported=True)


class SmallTorchBook:
    """One name, one release."""

    releases = (BookRelease(minor="2.3", version="2.3.1", file="f", sha256="0" * 64, string_abi="old", patches=()),)

    def minors(self, name: str) -> tuple[str, ...]:
        return ("2.3",) if name == SET else ()

    def libraries(self, name: str) -> tuple[str, ...]:
        return ("libc10_cuda.so",) if name == SET else ()

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return tuple(each for each in (GONE,) if each.version == version)


class SmallNvidiaBook:
    """One function that cuBLAS has since 12.9."""

    def packages(self, soname: str) -> tuple[str, ...]:
        return ("nvidia-cublas-cu12",) if soname == "libcublas.so.12" else ()

    def versions(self, package: str) -> tuple[str, ...]:
        return ("12.8.5.5", "12.9.0.13") if package else ()

    def since(self, soname: str, name: str) -> tuple[Since, ...]:
        return tuple(Since(package=each, soname=soname, name=name, first="12.9.0.13", last=None,
                           absent_before="12.8.5.5", absent_after=None) for each in self.packages(soname))

    def bounds(self, soname: str, names: Collection[str]) -> tuple[Bounds, ...]:
        return tuple(Bounds(package=each, soname=soname, versions=("12.9.0.13",), floor="12.9.0.13",
                            not_enough="12.8.5.5", ceiling=None, gone_in=None, low=tuple(sorted(names)), high=(),
                            unknown=()) for each in self.packages(soname))

    def provides(self, package: str, version: str, soname: str, names: Collection[str]) -> Provision:
        return Provision(package=package, version=version, soname=soname, missing=(), unsure=tuple(names), older=None,
                         newer=None)

    def exported(self, package: str, version: str, soname: str) -> Collection[str] | None:
        return {("nvidia-cublas-cu12", "12.8.5.5", "libcublas.so.12"): frozenset[str]()}.get((package, version, soname))

    @property
    def sonames(self) -> tuple[str, ...]:
        raise AssertionError

    def asking(self, soname: str, name: str) -> tuple[Asking, ...]:
        raise AssertionError(soname, name)

    def consumer_versions(self, consumer: str) -> tuple[str, ...]:
        return {"torch": ("2.3.1",)}.get(consumer, ())

    def uses(self, consumer: str, version: str) -> tuple[LibraryUse, ...]:
        return {("torch", "2.3.1"): ()}.get((consumer, version), ())


BOOKS = Books(torch=SmallTorchBook(), nvidia=SmallNvidiaBook(), judged=ReadWheels(()))


def facts_of(*files: CompiledFile, tags: tuple[str, ...] = ()) -> AbiFacts:
    return abi_facts(Compiled(name="ext", version="1.0", origin="wheel", source="ext.whl", tags=tags, requires=(),
                              file_name=None, files=files, unreadable=()), BOOKS)


# --- CUDA and cuDNN -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sonames", "majors"), [
    (("libcudart.so.12",), (12,)),
    (("libcudart.so.11.0",), (11,)),
    (("libcudart.so.13", "libcublas.so.13", "libcusparse.so.12"), (13,)),
    (("libcusparse.so.12", "libcurand.so.10", "libcufile.so.0", "libcusparseLt.so.0", "libnccl.so.2"), ()),
    (("libcusolver.so.11",), ()),               # CUDA 11 and 12
    (("libcusolver.so.12",), (13,)),
    (("libcufft.so.10",), ()),                  # CUDA 10 and 11
    (("libcufft.so.11",), (12,)),
    (("libcufft.so.12",), (13,)),
    (("libcusparse.so.11",), (11,)),
    (("libnvrtc.so.11.2", "libcudart.so.12"), (11, 12)),    # a fault, and shown as one
    (("libnvToolsExt.so.1", "libcuda.so.1", "libc10_cuda.so", "libcudart_static.so.3"), ()),
    (("libnppicc.so.12", "libnvJitLink.so.12", "libcupti.so.12"), (12,)),
    ((), ()),
])
def test_cuda_majors(sonames: tuple[str, ...], majors: tuple[int, ...]) -> None:
    assert cuda_majors(sonames) == majors


@pytest.mark.parametrize(("soname", "before"), [
    ("libcudart-e409450e.so.11.0", "libcudart.so.11.0"),
    ("libnvrtc-builtins-2dc4bf68.so.11.8", "libnvrtc-builtins.so.11.8"),
    ("libnvrtc-builtins.so.11.8", "libnvrtc-builtins.so.11.8"),
    ("libpng16-e409450e.so.16", "libpng16.so.16"),
    ("libcudart.782fcab0.so.11.0", "libcudart.so.11.0"),
    ("libnvjpeg.9b083ad7.so.11", "libnvjpeg.so.11"),
    ("libcudart.so.12", "libcudart.so.12"),
    ("libx-notahash.so", "libx-notahash.so"),
])
def test_copies_go_under_their_original_name(soname: str, before: str) -> None:
    assert original(soname) == before


def test_needed_of_all_files() -> None:
    files = [compiled(needed=("libcudart-e409450e.so.11.0", "libc.so.6")).elf,
             compiled(needed=("libcudart.so.11.0", "libm.so.6")).elf]
    assert needed_of(files) == ("libcudart.so.11.0", "libc.so.6", "libm.so.6")
    assert cuda_majors(needed_of(files)) == (11,)


@pytest.mark.parametrize(("sonames", "majors"), [
    (("libcudnn.so.9",), (9,)),
    (("libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8"), (8,)),
    (("libcudnn_graph.so.9", "libcudnn.so.8"), (8, 9)),
    (("libcudnn_frontend.so", "libcudart.so.12"), ()),
])
def test_cudnn_majors(sonames: tuple[str, ...], majors: tuple[int, ...]) -> None:
    assert cudnn_majors(sonames) == majors


# --- glibc and libstdc++ ------------------------------------------------------------------------------------------


def test_versions_are_compared_as_numbers() -> None:
    elf = [compiled(versions=[("libc.so.6", "GLIBC_2.9"), ("libc.so.6", "GLIBC_2.27"),
                              ("libm.so.6", "GLIBC_2.2.5")]).elf,
           compiled(versions=[("libstdc++.so.6", "GLIBCXX_3.4.9"), ("libstdc++.so.6", "GLIBCXX_3.4.29"),
                              ("libstdc++.so.6", "CXXABI_1.3.13"), ("libstdc++.so.6", "CXXABI_1.3.8"),
                              ("libstdc++.so.6", "CXXABI_TM_1"), ("libgcc_s.so.1", "GCC_12.0.0")]).elf]
    assert glibc_floor(elf) == "2.27"
    assert newest_standard(elf) == ("GLIBCXX_3.4.29", "CXXABI_1.3.13")


def test_packed_relocations_need_glibc_236() -> None:
    for newest, floor in (("GLIBC_2.14", "2.36"), ("GLIBC_2.38", "2.38")):
        elf = compiled(versions=[("libc.so.6", newest), ("libc.so.6", "GLIBC_ABI_DT_RELR")]).elf
        assert glibc_floor([elf]) == floor


def test_what_is_no_number_or_only_warns_is_no_floor() -> None:
    elf = compiled(versions=[("libc.so.6", "GLIBC_PRIVATE"), ("libc.so.6", "GLIBC_2.99 with hash 0x1"),
                             ("libc.so.6", "GLIBC_2." + "9" * 5000)]).elf
    assert glibc_floor([elf]) is None
    weak = NeededVersion(file="libc.so.6", version="GLIBC_2.99", weak=True)
    assert glibc_floor([replace(elf, needed_versions=(weak,))]) is None
    assert newest_standard([elf]) == ()


# --- Python -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "abi"), [
    ("a/_C.cpython-311-x86_64-linux-gnu.so", "cp311"),
    ("_C.cpython-313t-x86_64-linux-gnu.so", "cp313t"),
    ("_C.cpython-311.so", "cp311"),
    ("_C.abi3.so", "abi3"),
    ("_C.abi3t.so", "abi3t"),
    ("_C.pypy310-pp73-x86_64-linux-gnu.so", "pp310"),
    ("_C.so", None),
    ("lib/libcpython-311.so", None),
    ("libx.so.1", None),
])
def test_module_names(path: str, abi: str | None) -> None:
    assert module_abi(path) == abi


@pytest.mark.parametrize(("tags", "paths", "abis", "floor"), [
    (("cp311-cp311-linux_x86_64",), ("_C.cpython-311-x86_64-linux-gnu.so",), ("cp311",), None),
    (("cp39-abi3-manylinux_2_28_x86_64",), ("_C.so",), ("abi3",), "3.9"),
    (("cp38.cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64",), ("_C.so",), ("abi3",), "3.8"),
    (("cp313-cp313t-manylinux_2_28_x86_64",), ("_C.so",), ("cp313t",), None),
    (("py3-none-manylinux_2_28_x86_64",), ("libx.so",), (), None),
    (("cp310-cp310-linux_x86_64",), ("_C.cpython-311-x86_64-linux-gnu.so", "lib.so"), ("cp311",), None),
    (("cp27-cp27mu-linux_x86_64",), ("_C.so",), ("cp27",), None), (("cp37-cp37m-any",), ("_C.so",), ("cp37",), None),
    (("pp310-pypy310_pp73-linux_x86_64",), ("_C.so",), ("pp310",), None),
    (("nonsense", "a-b", "cp3-abi3-any"), ("_C.so",), ("abi3",), None),
    ((), ("a.cpython-310-x86_64-linux-gnu.so", "b.cpython-312-x86_64-linux-gnu.so"), ("cp310", "cp312"), None),
])
def test_python_abis(tags: tuple[str, ...], paths: tuple[str, ...], abis: tuple[str, ...], floor: str | None) -> None:
    """Modules go before tags."""
    files = [compiled("PyLong_FromLong", path=each) for each in paths]
    assert python_abis(tags, files) == abis
    assert python_floor(tags) == floor


@pytest.mark.parametrize(("names", "abis"), [
    ((), ()), (("Python_is_no_name", "cublasLtPy", "_Pystacheless"), ()), (("_Py_NoneStruct",), ("cp38",)),
    (("PyErr_SetString",), ("cp38",)),
])
def test_a_tag_tells_nothing_of_a_library_that_asks_nothing_of_python(names: tuple[str, ...],
                                                                      abis: tuple[str, ...]) -> None:
    """transformer-engine's library says cp38 in WHEEL, and is opened by ctypes from every Python."""
    assert python_abis(("cp38-cp38-linux_x86_64",), [compiled(*names, path="libtransformer_engine.so")]) == abis


@pytest.mark.parametrize(("tags", "python", "abi", "refused"), [
    (("py3-none-any",), "3.11", "cp311", False), (("cp310-cp310-any",), "3.11", "cp311", True),
    (("cp39-abi3-any",), "3.11", "cp311", False), (("cp312-abi3-any",), "3.11", "cp311", True),
    (("cp310-cp310-any", "cp311-cp311-any"), "3.11", "cp311", False), (("cp313-cp313-any",), "3.13", "cp313t", True),
    (("cp39-abi3-any",), "3.13", "cp313t", True), (("cp37-cp37m-any",), "3.7", "cp37", False),
    (("cp39-abi3-any",), "3.10", "pp310", True), (("pp310-pypy310_pp73-any",), "3.10", "pp310", False),
    ((), "3.11", "cp311", False), (("nonsense",), "3.11", "cp311", False),
])
def test_which_python_a_file_name_is_for(tags: tuple[str, ...], python: str, abi: str, *, refused: bool) -> None:
    assert installers_refuse(tags, python, abi) is refused


# --- GPU code -----------------------------------------------------------------------------------------------------


def archs(*sets: tuple[tuple[str, ...], int], empty: int = 0) -> GpuArchs:
    every = sorted({arch for each, _ in sets for arch in each})
    return GpuArchs(path="f", empty=empty, cubins=tuple(each for each in every if each.startswith("sm_")),
                    ptx=tuple(each for each in every if each.startswith("compute_")),
                    others=tuple(each for each in every if each.startswith("lto_")),
                    sets=tuple(CodeSet(archs=each, fatbins=count) for each, count in sets))


def test_gpu_code_of_all_files() -> None:
    one = archs((("sm_80", "sm_90"), 5), (("sm_90a",), 2), empty=1)
    other = archs((("sm_80", "sm_90"), 3), (("sm_100f", "compute_120", "lto_90"), 9))
    merged = merge_archs("ext", [one, other])
    assert merged is not None
    assert merged.cubins == ("sm_80", "sm_90", "sm_90a", "sm_100f")
    assert (merged.ptx, merged.others, merged.empty, merged.fatbins) == (("compute_120",), ("lto_90",), 1, 19)
    assert merged.sets == (CodeSet(archs=("sm_100f", "compute_120", "lto_90"), fatbins=9),
                           CodeSet(archs=("sm_80", "sm_90"), fatbins=8), CodeSet(archs=("sm_90a",), fatbins=2))
    assert merge_archs("ext", []) is None


# --- calls --------------------------------------------------------------------------------------------------------


def test_calls_are_those_of_versioned_names_and_of_known_prefixes() -> None:
    file = compiled(
        "ncclAllReduce", "pncclGetVersion", "cusparseLtInit", "cuMemAlloc_v2", "cupy_thing", "ncclsomething",
        "nvmlInit", needed=("libnccl.so.2", "libcusparseLt.so.0", "libcuda.so.1", "libcudart-e409450e.so.11.0"),
        weak=("ncclMemFree",),
        versioned={"cudaMalloc": ("libcudart.so.11.0", "libcudart-e409450e.so.11.0"),
                   "cublasSetEnvironmentMode": ("libcublas.so.12", "libcublas.so.12"),
                   "memcpy": ("GLIBC_2.14", "libc.so.6")})
    assert calls_of([file]) == (
        ("libcublas.so.12", "cublasSetEnvironmentMode"), ("libcuda.so.1", "cuMemAlloc_v2"),
        ("libcudart.so.11.0", "cudaMalloc"), ("libcusparseLt.so.0", "cusparseLtInit"),
        ("libnccl.so.2", "ncclAllReduce"), ("libnccl.so.2", "pncclGetVersion"))


def test_without_the_library_a_prefix_tells_nothing() -> None:
    assert calls_of([compiled("ncclAllReduce", "cuMemAlloc_v2", needed=("libtorch_cuda.so",))]) == ()


def test_a_library_that_the_almanac_does_not_have_is_no_library_without_a_function() -> None:
    found = facts_of(compiled(needed=("libcufft.so.11", "libcublas.so.12"), versioned={
        "cufftPlan1d": ("libcufft.so.11", "libcufft.so.11"), "cublasCreate": ("libcublas.so.12", "libcublas.so.12")}))
    assert {each.name: each.since is None for each in found.calls} == {"cufftPlan1d": True, "cublasCreate": False}


# --- together -----------------------------------------------------------------------------------------------------


def test_all_facts_of_a_package() -> None:
    found = facts_of(
        compiled(SET, "_ZNSs4_Rep10_M_disposeERKSaIcE", path="ext/_C.cpython-311-x86_64-linux-gnu.so",
                 needed=("libc10_cuda.so", "libcublas.so.12", "libcudnn.so.9"),
                 versioned={"cublasSetEnvironmentMode": ("libcublas.so.12", "libcublas.so.12")},
                 versions=[("libc.so.6", "GLIBC_2.28")], archs=archs((("sm_90a",), 1))),
        compiled(path="ext/libhelp.so", needed=("libc.so.6",), archs=UnreadableFatbin(path="f", reason="damaged")),
        tags=("cp311-cp311-linux_x86_64",))
    assert found.torch is not None
    assert (found.torch.minors, found.cuda, found.cudnn, found.python) == (("2.3",), (12,), (9,), ("cp311",))
    assert (found.machine, found.glibc, found.libstdcxx) == (("x86_64",), "2.28", ())
    assert found.gpu is not None
    assert found.gpu.cubins == ("sm_90a",)
    assert [(each.name, each.since[0].first) for each in found.calls if each.since] == [
        ("cublasSetEnvironmentMode", "12.9.0.13")]
    assert [(each.package, each.floor) for each in found.library_bounds] == [("nvidia-cublas-cu12", "12.9.0.13")]
    assert found.standard == ("_ZNSs4_Rep10_M_disposeERKSaIcE",)
    assert from_json(to_json(found), AbiFacts) == found


def test_nothing_that_tells_is_nothing() -> None:
    found = facts_of(compiled("PyObject_Call", needed=("libc.so.6",)))
    assert (found.torch, found.cuda, found.cudnn, found.python, found.glibc) == (None, (), (), (), None)
    assert (found.gpu, found.calls, found.library_bounds, found.standard) == (None, (), (), ())


def test_a_package_without_compiled_files() -> None:
    found = facts_of()
    assert (found.torch, found.machine, found.gpu) == (None, (), None)
