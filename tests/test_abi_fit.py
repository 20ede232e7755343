"""Whether a compiled package fits an environment: each axis with what fits, what does not, and what nothing tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.facts import abi_facts
from stackfix.abi.fit import fit, verdict_of
from stackfix.abi.fit_libraries import lost_for_some
from stackfix.abi.fit_minors import spans
from stackfix.abi.host import CANNOT_TELL, DOES_NOT_FIT, FITS, Axis, Host, HostTorch
from stackfix.abi.judged import ReadWheels
from stackfix.abi.records import (
    AbiFacts,
    Asking,
    Books,
    Bounds,
    Compiled,
    CompiledFile,
    LibraryUse,
    Provision,
    Since,
)
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs
from tests.abi_small import compiled, write_book

SET, OLD_FAIL = "_ZN3c104cuda9SetDeviceEa", "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
LATE = "_ZNK3c105Error4whatEv"
CPU_ONLY = "_ZN2at4_ops3add4callERKNS_6TensorES4_RKN3c106ScalarE"
CUBLAS, CUBLAS_WHEEL = "libcublas.so.12", "nvidia-cublas-cu12"


class CublasBook:
    """cublasNew is in cuBLAS since 12.9; 12.7 was not read."""

    def packages(self, soname: str) -> tuple[str, ...]:
        return (CUBLAS_WHEEL,) if soname == CUBLAS else ()

    def versions(self, package: str) -> tuple[str, ...]:
        return ("12.1.3.1", "12.9.0.13") if package == CUBLAS_WHEEL else ()

    def since(self, soname: str, name: str) -> tuple[Since, ...]:
        return ()

    def bounds(self, soname: str, names: Collection[str]) -> tuple[Bounds, ...]:
        return tuple(Bounds(package=each, soname=soname, versions=("12.9.0.13",), floor="12.9.0.13",
                            not_enough="12.1.3.1", ceiling=None, gone_in=None, low=("cublasNew",), high=(), unknown=())
                     for each in self.packages(soname))

    def provides(self, package: str, version: str, soname: str, names: Collection[str]) -> Provision:
        new = tuple(name for name in names if name == "cublasNew")
        return Provision(package=package, version=version, soname=soname, missing=new if version == "12.1.3.1" else (),
                         unsure=new if version == "12.7.0" else (), older=None, newer=None)

    def exported(self, package: str, version: str, soname: str) -> Collection[str] | None:
        return None

    @property
    def sonames(self) -> tuple[str, ...]:
        raise AssertionError

    def asking(self, soname: str, name: str) -> tuple[Asking, ...]:
        raise AssertionError(soname, name)

    def consumer_versions(self, consumer: str) -> tuple[str, ...]:
        return ()

    def uses(self, consumer: str, version: str) -> tuple[LibraryUse, ...]:
        return ()


class Exports:
    """What lies in an environment: names by soname; torch's under "torch", the C++ library's under "standard"."""

    def __init__(self, sonames: Collection[str] = ("libc10.so",), **names: Collection[str]) -> None:
        self.sonames, self.names = sonames, names
        self.lost = dict[str, set[str]]()       # libraries that lie in these folders alone

    def torch_has(self, soname: str) -> bool | None:
        return soname in self.sonames if "torch" in self.names else None

    def torch_lacks(self, names: Collection[str]) -> Collection[str] | None:
        return self._lacks("torch", names)

    def library_lacks(self, soname: str, names: Collection[str]) -> Collection[str] | None:
        return self._lacks(soname.partition(".")[0], names)

    def finds(self, soname: str, folders: Collection[str]) -> bool:
        return soname not in self.lost or bool(self.lost[soname] & {*folders})

    def standard_lacks(self, names: Collection[str]) -> Collection[str] | None:
        return self._lacks("standard", names)

    def _lacks(self, who: str, names: Collection[str]) -> Collection[str] | None:
        return [each for each in names if each not in self.names[who]] if who in self.names else None


HOST = Host(
    prefix="/venv", torch=HostTorch(version="2.3.1+cu121", installed=True, string_abi="old", cuda="12.1", folders=()),
    cudnn="8.9.2.26", nvidia=((CUBLAS_WHEEL, "12.1.3.1"), ("nvidia-cuda-runtime-cu12", "12.1.105")), python="3.11",
    python_abi="cp311", glibc="2.36", libstdcxx="/lib/libstdc++.so.6", standard=("CXXABI_1.3.13", "GLIBCXX_3.4.30"),
    machine="x86_64", capabilities=())


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    folder: Path = write_book(tmp_path_factory.mktemp("book"), [
        (SET, "2.3-2.6", ("libc10_cuda.so",)), (OLD_FAIL, "2.3-", ("libc10.so",)), (LATE, "2.4-", ("libc10.so",)),
        (CPU_ONLY, "2.3-", ("libtorch_cpu.so",))])
    return Books(torch=open_torch_book(folder), nvidia=CublasBook(), judged=ReadWheels(()))


def facts(books: Books, *files: CompiledFile, tags: tuple[str, ...] = (), **more: Any) -> AbiFacts:
    found = abi_facts(Compiled(name="ext", version="1.0", origin="wheel", source="ext.whl", tags=tags, requires=(),
                               file_name=None, files=files, unreadable=()), books)
    return replace(found, **more)


def runs_on(archs: GpuArchs, capability: str) -> str:
    return {"8.0": "native", "9.0": "jit", "10.0": "no"}.get(capability, "cannot-tell")


def axis(name: str, books: Books, found: AbiFacts, host: Host = HOST, offers: Exports | None = None) -> Axis:
    [one] = [each for each in fit(found, host, offers or Exports(), books, runs_on) if each.name == name]
    return one


# --- torch ---


def test_what_torch_really_exports_decides_whatever_the_almanac_says(books: Books) -> None:
    """A build of our own that has a name of a later release."""
    found = facts(books, compiled(SET, LATE))
    had = axis("torch", books, found, offers=Exports(torch={SET, LATE}))
    assert (had.verdict, had.has, had.missing) == (FITS, "2.3.1+cu121", ())
    lacked = axis("torch", books, found, offers=Exports(torch={SET}))
    assert (lacked.verdict, [each.name for each in lacked.missing]) == (DOES_NOT_FIT, [LATE])
    assert lacked.missing[0].demangled == "c10::Error::what() const"
    assert lacked.reason == "torch lacks 1 of 2 symbols"


def test_where_its_libraries_cannot_be_read_the_almanac_decides(books: Books) -> None:
    lacked = axis("torch", books, facts(books, compiled(SET, LATE)))
    assert (lacked.verdict, [each.name for each in lacked.missing]) == (DOES_NOT_FIT, [LATE])
    assert "2.3.1" in lacked.reason
    assert axis("torch", books, facts(books, compiled(SET))).verdict == FITS


@pytest.mark.parametrize(("version", "string", "verdict", "text"), [
    ("2.99.0", "old", CANNOT_TELL, "no release as new"), ("1.5.0", "old", CANNOT_TELL, "begins with"),
    ("2.3.9", "old", CANNOT_TELL, "has not read this release"), ("none", "old", CANNOT_TELL, "is no release of torch"),
    ("2.3.1+mine", None, CANNOT_TELL, "std::string"), ("2.7.1", "new", DOES_NOT_FIT, "torch 2.7.1 lacks"),
])
def test_what_the_almanac_does_not_know_is_said(version: str, string: str | None, verdict: str, text: str,
                                                books: Books) -> None:
    torch = HostTorch(version=version, installed=True, string_abi=string, cuda="12.1", folders=())
    found = axis("torch", books, facts(books, compiled(SET, OLD_FAIL)), replace(HOST, torch=torch))
    assert (found.verdict, text in found.reason) == (verdict, True), found


def test_a_library_of_torch_that_is_not_there_does_not_fit(books: Books) -> None:
    found = facts(books, compiled(SET, needed=("libtorch_cuda_cu.so", "libc10.so")))
    lost = axis("torch", books, found, offers=Exports(torch={SET}))
    assert (lost.verdict, "libtorch_cuda_cu.so" in lost.reason) == (DOES_NOT_FIT, True)


def test_a_file_that_is_bound_before_another_is_told_first(books: Books) -> None:
    """The loader relocates a library before what needs it, so its missing symbol is the first that anybody reads."""
    first = compiled(SET, path="ext/_C.so", needed=("libhelp.so", "libc10.so"))
    helper = compiled(LATE, path="ext/libhelp.so", soname="libhelp.so")
    lost = axis("torch", books, facts(books, first, helper), offers=Exports(torch=set()))
    assert [(each.name, each.file) for each in lost.missing] == [(LATE, "ext/libhelp.so"), (SET, "ext/_C.so")]


@pytest.mark.parametrize(("names", "has", "verdict"), [
    ((OLD_FAIL,), "old", FITS), ((OLD_FAIL,), "new", DOES_NOT_FIT), ((OLD_FAIL,), None, CANNOT_TELL),
    ((NEW_FAIL,), "new", FITS), ((OLD_FAIL, NEW_FAIL), "new", DOES_NOT_FIT),
])
def test_string_abi(names: tuple[str, ...], has: str | None, verdict: str, books: Books) -> None:
    torch = HostTorch(version="2.3.1", installed=True, string_abi=has, cuda="12.1", folders=())
    assert axis("C++ ABI", books, facts(books, compiled(*names)), replace(HOST, torch=torch)).verdict == verdict


def test_a_name_without_a_string_says_nothing_of_it(books: Books) -> None:
    assert "C++ ABI" not in [each.name for each in fit(facts(books, compiled(SET)), HOST, Exports(), books, runs_on)]


# --- CUDA ---


@pytest.mark.parametrize(("needed", "cuda", "verdict"), [
    ("libcudart.so.12", "12.1", FITS), ("libcudart.so.12", "12", FITS), ("libcudart.so.11.0", "12.1", DOES_NOT_FIT),
    ("libcudart.so.12", "cpu", DOES_NOT_FIT), ("libcudart.so.12", None, CANNOT_TELL),
])
def test_cuda_is_that_of_torch(needed: str, cuda: str | None, verdict: str, books: Books) -> None:
    torch = HostTorch(version="2.3.1", installed=True, string_abi="old", cuda=cuda, folders=())
    found = facts(books, compiled(SET, needed=(needed, "libc10.so")))
    assert axis("CUDA", books, found, replace(HOST, torch=torch)).verdict == verdict


def test_libraries_that_a_package_brings_along_are_nobodys_to_have(books: Books) -> None:
    own = compiled(path="ext.libs/libcudart-e409450e.so.11.0", soname="libcudart-e409450e.so.11.0", needed=())
    found = facts(books, compiled(SET, needed=("libcudart-e409450e.so.11.0", "libc10.so")), own)
    assert found.cuda == (11,)
    assert axis("CUDA", books, found).verdict == FITS


@pytest.mark.parametrize(("needed", "verdict"), [("libcudart.so.12", FITS), ("libcudart.so.13", CANNOT_TELL)])
def test_without_torch_cuda_is_that_of_the_wheels(needed: str, verdict: str, books: Books) -> None:
    assert axis("CUDA", books, facts(books, compiled(needed=(needed,)))).verdict == verdict


@pytest.mark.parametrize(("has", "verdict"), [("8.9.2.26", FITS), ("9.1.0.70", DOES_NOT_FIT), (None, CANNOT_TELL)])
def test_cudnn(has: str | None, verdict: str, books: Books) -> None:
    found = facts(books, compiled(needed=("libcudnn.so.8",)))
    assert axis("cuDNN", books, found, replace(HOST, cudnn=has)).verdict == verdict


def calling(*names: str) -> CompiledFile:
    return compiled(needed=(CUBLAS,), versioned=dict.fromkeys(names, (CUBLAS, CUBLAS)))


def test_the_functions_of_a_library_are_those_that_it_really_exports(books: Books) -> None:
    found = facts(books, calling("cublasCreate", "cublasNew"))
    lost = axis(CUBLAS, books, found, offers=Exports(libcublas={"cublasCreate"}))
    assert (lost.verdict, [each.name for each in lost.missing]) == (DOES_NOT_FIT, ["cublasNew"])
    assert "from 12.9.0.13 on" in lost.needs
    assert axis(CUBLAS, books, found, offers=Exports(libcublas={"cublasCreate", "cublasNew"})).verdict == FITS


@pytest.mark.parametrize(("version", "verdict"), [
    ("12.1.3.1", DOES_NOT_FIT), ("12.9.0.13", FITS), ("12.7.0", CANNOT_TELL), (None, CANNOT_TELL)])
def test_a_library_that_cannot_be_read_is_judged_by_its_version(version: str | None, verdict: str,
                                                                books: Books) -> None:
    host = replace(HOST, nvidia=((CUBLAS_WHEEL, version),) if version else ())
    assert axis(CUBLAS, books, facts(books, calling("cublasNew")), host).verdict == verdict


def test_the_drivers_libraries_are_no_part_of_an_environment(books: Books) -> None:
    found = facts(books, compiled(needed=("libcuda.so.1",), versioned={"cuInit": ("libcuda.so.1", "libcuda.so.1")}))
    assert [each.name for each in fit(found, HOST, Exports(), books, runs_on)] == ["machine"]


def test_what_another_project_should_have_is_not_held_against_torch(books: Books) -> None:
    """The range, the fit and the diagnosis count the same names."""
    helper = "_ZN6helper5twiceERKN2at6TensorE"
    found = facts(books, compiled(SET, helper, needed=("libc10.so", "libhelper.so", "libc.so.6")))
    torch = axis("torch", books, found, offers=Exports(torch={SET}))
    assert (torch.verdict, torch.reason, torch.missing) == (FITS, "torch has all that it asks for (1 symbol)", ())
    others = axis("other projects", books, found, offers=Exports(torch={SET}))
    assert (others.verdict, others.needs) == (CANNOT_TELL, "1 symbol")
    assert others.reason == "libhelper.so should have helper::twice(at::Tensor const&), and is not read"
    assert axis("other projects", books, found, offers=Exports()).verdict == CANNOT_TELL
    own = fit(found, HOST, Exports(torch={SET, helper}), books, runs_on)     # that torch has it, by chance or by patch
    assert "other projects" not in [each.name for each in own]


# --- the rest ---


@pytest.mark.parametrize(("python", "floor", "verdict"), [
    (("cp311",), None, FITS), (("cp310",), None, DOES_NOT_FIT), (("cp310", "cp311"), None, FITS),
    (("abi3",), "3.9", FITS), (("abi3",), "3.12", DOES_NOT_FIT), (("abi3",), None, FITS),
    (("pp310",), None, DOES_NOT_FIT), (("abi3t",), None, DOES_NOT_FIT), (("cp311t",), None, DOES_NOT_FIT),
])
def test_python(python: tuple[str, ...], floor: str | None, verdict: str, books: Books) -> None:
    found = facts(books, compiled(path="_C.cpython-39-x86_64-linux-gnu.so"), python=python, python_floor=floor)
    assert axis("Python", books, found).verdict == verdict
    assert axis("Python", books, found, replace(HOST, python_abi=None)).verdict == CANNOT_TELL


def test_a_tag_alone_does_not_say_that_another_python_finds_nothing(books: Books) -> None:
    """A file without a Python in its name is found by all of them."""
    asks = compiled("PyLong_FromLong", path="ext/_C.so")
    told = axis("Python", books, facts(books, asks, tags=("cp38-cp38-linux_x86_64",)))
    assert (told.verdict, told.needs) == (CANNOT_TELL, "cp38")
    ctypes = facts(books, compiled(path="libtransformer_engine.so"), tags=("cp38-cp38-linux_x86_64",))
    assert "Python" not in [each.name for each in fit(ctypes, HOST, Exports(), books, runs_on)]


@pytest.mark.parametrize(("tag", "origin", "verdicts"), [
    ("cp310-cp310-any", "wheel", [DOES_NOT_FIT]), ("py3-none-any", "wheel", []), ("cp311-cp311-any", "wheel", []),
    ("cp310-cp310-any", "installed", []),       # it is there already
])
def test_installers_go_by_the_name_of_a_wheel(tag: str, origin: str, verdicts: list[str], books: Books) -> None:
    found = facts(books, compiled(path="ext/libext.so"), tags=(tag,))
    named = replace(found, subject=replace(found.subject, origin=origin, file_name=f"ext-1.0-{tag}.whl"))
    assert [each.verdict for each in fit(named, HOST, Exports(), books, runs_on) if each.name == "Python"] == verdicts


@pytest.mark.parametrize(("name", "change", "host", "verdict"), [
    ("glibc", {"glibc": "2.36"}, {}, FITS), ("glibc", {"glibc": "2.9"}, {}, FITS),
    ("glibc", {"glibc": "2.37"}, {}, DOES_NOT_FIT), ("glibc", {"glibc": "2.27"}, {"glibc": None}, CANNOT_TELL),
    ("machine", {"machine": ("x86_64",)}, {}, FITS), ("machine", {"machine": ("aarch64",)}, {}, DOES_NOT_FIT),
    ("machine", {"machine": ("x86_64",)}, {"machine": None}, CANNOT_TELL),
    ("libstdc++", {"libstdcxx": ("GLIBCXX_3.4.9", "CXXABI_1.3.5")}, {}, FITS),
    ("libstdc++", {"libstdcxx": ("GLIBCXX_3.4.32",)}, {}, DOES_NOT_FIT),
    ("libstdc++", {"libstdcxx": ("GLIBCXX_3.4.21",)}, {"libstdcxx": None}, CANNOT_TELL),
])
def test_the_system_below(name: str, change: Mapping[str, Any], host: Mapping[str, Any], verdict: str,
                          books: Books) -> None:
    assert axis(name, books, facts(books, compiled(), **change), replace(HOST, **host)).verdict == verdict


def test_a_name_of_the_cxx_library_that_neither_it_nor_torch_has(books: Books) -> None:
    name = "_ZSt21ios_base_library_initv"
    found = facts(books, compiled(name))
    assert found.standard == (name,)
    lost = axis("libstdc++", books, found, offers=Exports(standard=set()))
    assert (lost.verdict, [each.demangled for each in lost.missing]) == (DOES_NOT_FIT, ["std::ios_base_library_init()"])
    assert axis("libstdc++", books, found, offers=Exports(standard={name})).verdict == FITS


def test_libraries_that_are_nowhere_are_named(books: Books) -> None:
    """FFmpeg's, of which torchcodec has a module for each release."""
    file = compiled(path="ext/lib/x.so", needed=("libavutil.so.56", "libhelp.so", "libc.so.6", "libtorch.so"))
    file = replace(file, elf=replace(file.elf, runpath="/opt/help:$ORIGIN/../help"))
    offers = Exports()
    offers.lost = {"libavutil.so.56": set(), "libhelp.so": {"$ORIGIN/ext/lib/../help"}, "libtorch.so": set()}
    needs = axis("needs", books, facts(books, file), offers=offers)
    assert (needs.verdict, needs.needs) == (CANNOT_TELL, "libavutil.so.56")
    other = compiled(path="ext/y.so")
    found = facts(books, file, other)
    assert "needs" not in [each.name for each in fit(found, HOST, offers, books, runs_on)]      # one of two modules
    assert [(path, text.partition(",")[0]) for path, text in lost_for_some(found, offers)] == [
        ("ext/lib/x.so", "needs libavutil.so.56")]
    assert list(lost_for_some(facts(books, file), offers)) == list(lost_for_some(found, None)) == []
    offers.lost["libhelp.so"] = {"/opt/help"}
    assert axis("needs", books, facts(books, file), offers=offers).needs == "libavutil.so.56"


def test_a_package_for_two_cudnns_may_have_two_parts(books: Books) -> None:
    found = facts(books, compiled(needed=("libcudnn.so.8", "libcudnn.so.9")))
    assert axis("cuDNN", books, found).verdict == CANNOT_TELL


@pytest.mark.parametrize(("capabilities", "verdict"), [
    (("8.0",), FITS), (("9.0",), FITS), (("10.0",), DOES_NOT_FIT), (("8.0", "10.0"), DOES_NOT_FIT),
    (("11.0",), CANNOT_TELL)])
def test_gpu(capabilities: tuple[str, ...], verdict: str, books: Books) -> None:
    archs = GpuArchs(path="x", cubins=("sm_80",), ptx=(), others=(), empty=0,
                     sets=(CodeSet(archs=("sm_80",), fatbins=1),))
    found = facts(books, compiled(archs=archs))
    assert axis("GPU", books, found, replace(HOST, capabilities=capabilities)).verdict == verdict
    assert "GPU" not in [each.name for each in fit(found, HOST, Exports(), books, runs_on)]


def test_only_a_release_of_torch_judges_torch_alone(books: Books) -> None:
    host = replace(HOST, prefix=None, torch=HostTorch(version="2.3.1", installed=False, string_abi="old", cuda="12",
                                                      folders=()))
    file = compiled(SET, OLD_FAIL, needed=("libcudart.so.12", "libc10.so"))
    found = facts(books, file, python=("cp39",), glibc="9.9")
    axes = fit(found, host, None, books, runs_on)
    assert [(each.name, each.verdict) for each in axes] == [("torch", FITS), ("C++ ABI", FITS), ("CUDA", FITS)]


def test_one_axis_decides_and_what_nothing_tells_is_no_fault() -> None:
    one, other, open_ = (Axis(name="x", verdict=each, needs="", has=None, reason="")
                         for each in (FITS, DOES_NOT_FIT, CANNOT_TELL))
    assert verdict_of((one, open_, other)) == DOES_NOT_FIT
    assert verdict_of((one, open_)) == CANNOT_TELL
    assert verdict_of((one, one)) == FITS


def test_minors_are_told_as_spans() -> None:
    assert spans(("1.13", "2.0", "2.1", "2.9", "2.10", "2.12")) == "1.13 to 2.1, 2.9 to 2.10, 2.12"
    assert spans(()) == ""
