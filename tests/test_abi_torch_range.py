"""Which torch releases files can load with, each kind of false alarm, and the verdict on one release."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.can_load import can_load
from stackfix.abi.flavour import TAGGED
from stackfix.abi.records import CompiledFile, TorchBook, TorchRange
from stackfix.abi.torch_range import torch_range
from stackfix.errors import BadInput
from stackfix.inspect.plain import from_json, to_json
from tests.abi_small import RELEASES, compiled, write_book

SET_I = "_ZN3c104cuda9SetDeviceEi"
SET_A = "_ZN3c104cuda9SetDeviceEa"
ERROR = "_ZN3c105ErrorD1Ev"
EMPTY = "_ZN2at5emptyEv"
MOVED = "_ZN3c104warnEv"                    # in libc10 first, in libtorch_cpu later
OLD_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
SHIM, LATE_SHIM = "aoti_torch_empty_strided", "torch_new_stable_ivalue"
PREFERRED, PREFERRED_CONST = "_ZN2at7Context9preferredEv", "_ZNK2at7Context9preferredEv"
KERNEL = "_ZN2at6native6kernelEv"
GROUP = "_ZN4c10d12ProcessGroup4sizeEv"
UNKNOWN = "_ZN2at7nightlyEv"
ALL = ("2.3", "2.4", "2.5", "2.6", "2.7")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> TorchBook:
    rows = (
        (SET_I, "2.3-2.4", ("libc10_cuda.so",)), (SET_A, "2.5-", ("libc10_cuda.so",)), (ERROR, "2.3-", ("libc10.so",)),
        (EMPTY, "2.4-2.6", ("libtorch_cpu.so",)), (MOVED, "2.3-2.4", ("libc10.so",)),
        (MOVED, "2.5-", ("libtorch_cpu.so",)), (OLD_FAIL, "2.3-", ("libc10.so",)),
        (SHIM, "2.3-", ("libtorch_cpu.so",)), (LATE_SHIM, "2.6-", ("libtorch_cpu.so",)),
        (PREFERRED, "2.4-", ("libtorch_cpu.so",)), (KERNEL, "2.3-", ("libtorch_cuda.so",)),
        (GROUP, "2.5", ("libtorch_cpu.so",)),
    )
    patches = (("2.4.0", "+", PREFERRED_CONST, "libtorch_cpu.so"), ("2.4.0", "-", PREFERRED, "libtorch_cpu.so"))
    return open_torch_book(write_book(tmp_path_factory.mktemp("book"), rows, patches=patches))


def found(book: TorchBook, *files: CompiledFile) -> TorchRange:
    """The range, which must be there."""
    answer = torch_range(files, book)
    assert answer is not None
    return answer


# --- the rule -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "minors"), [
    ((SET_I,), ("2.3", "2.4")),
    ((SET_A,), ("2.5", "2.6", "2.7")),
    ((SET_I, EMPTY), ("2.4",)),
    ((SET_A, EMPTY, ERROR), ("2.5", "2.6")),
    ((ERROR,), ALL),
    ((GROUP,), ("2.5",)),       # c10d is a namespace of its own
    ((SET_I, SET_A), ()),       # files for two torches in one package
])
def test_minors_that_export_all(book: TorchBook, names: tuple[str, ...], minors: tuple[str, ...]) -> None:
    answer = found(book, compiled(*names))
    assert (answer.minors, answer.known, answer.asked) == (minors, minors, len(names))


def test_a_package_is_as_good_as_its_files_together(book: TorchBook) -> None:
    answer = found(book, compiled(EMPTY, path="a.so"), compiled(SET_I, EMPTY, path="b.so"))
    assert (answer.minors, answer.asked) == (("2.4",), 2)
    assert [(each.name, each.file, each.minors) for each in answer.ceiling] == [(SET_I, "b.so", ("2.3", "2.4"))]
    assert [(each.name, each.file) for each in answer.floor] == [(EMPTY, "a.so")]


def test_reasons_name_what_the_neighbours_lack(book: TorchBook) -> None:
    answer = found(book, compiled(ERROR, SET_A, EMPTY))
    assert [each.name for each in answer.floor] == [SET_A]
    assert [each.name for each in answer.ceiling] == [EMPTY]
    assert answer.floor[0].demangled == "c10::cuda::SetDevice(signed char)"
    whole = found(book, compiled(ERROR))
    assert whole.floor == whole.ceiling == ()


def test_where_nothing_fits_the_reasons_contradict_each_other(book: TorchBook) -> None:
    answer = found(book, compiled(SET_I, GROUP, ERROR))
    assert answer.minors == ()
    assert [each.name for each in answer.floor] == [GROUP]
    assert [each.name for each in answer.ceiling] == [SET_I]


def test_a_name_that_no_release_has_is_told_apart(book: TorchBook) -> None:
    answer = found(book, compiled(SET_A, UNKNOWN))
    assert (answer.minors, answer.index_minors, answer.known) == ((), (), ("2.5", "2.6", "2.7"))
    assert [(each.name, each.minors) for each in answer.unknown] == [(UNKNOWN, ())]
    assert [each.name for each in answer.floor] == [SET_A]


# --- false alarms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [
    "_ZNSs4_Rep10_M_disposeERKSaIcE",                   # 1. libstdc++, which torch exports too
    "_ZdlPvm", "__cxa_throw_bad_array_new_length", "_ZSt24__throw_out_of_range_fmtPKcz",
    "_ZN2at71_GLOBAL__N__5a1c0d2e_10_Kernels_cu_9d1f2c3a4runEv",        # 2. a hash of the file or the build
    "_ZN2at54__device_stub__Z6kernelPfEv",
    "_ZNKSs2atEm",                                      # 3. std::string::at is not torch's `at`
    "_ZNSt6vectorIiSaIiEE2atEm",
    "cblas_sgemm", "mkl_blas_sgemm", "Sleef_expf8_u10",  # 4. third-party names
    "PyObject_Call", "cudaLaunchKernel",                # 8. without a version they are nobody's, or Python's
])
def test_what_is_not_torchs_does_not_count(book: TorchBook, noise: str) -> None:
    answer = found(book, compiled(SET_I, noise))
    assert (answer.asked, answer.minors, answer.unknown) == (1, ("2.3", "2.4"), ())


def test_a_name_that_moved_between_libraries_is_there_all_along(book: TorchBook) -> None:
    assert found(book, compiled(MOVED)).minors == ALL


def test_weak_names_may_stay_away(book: TorchBook) -> None:
    weak = "_ZTHN3c104impl26raw_local_dispatch_key_setE"
    assert found(book, compiled(SET_I, weak=(weak, UNKNOWN))).unknown == ()


def test_versioned_names_are_of_other_libraries(book: TorchBook) -> None:
    answer = found(book, compiled(SET_I, versioned={UNKNOWN: ("LIB_1", "libother.so.1")}))
    assert (answer.asked, answer.unknown) == (1, ())


# --- std::string --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "flavour", "index"), [
    ((ERROR,), None, ALL),
    ((OLD_FAIL,), "old", ("2.3", "2.4", "2.5", "2.6")),
    ((NEW_FAIL,), "new", ("2.7",)),
    ((OLD_FAIL, NEW_FAIL), "both", ()),
])
def test_the_string_abi_is_an_axis_of_its_own(book: TorchBook, names: tuple[str, ...], flavour: str | None,
                                              index: tuple[str, ...]) -> None:
    answer = found(book, compiled(*names))
    assert (answer.minors, answer.string_abi, answer.index_minors) == (ALL, flavour, index)


def test_a_function_that_returns_a_string_has_another_name_in_a_wheel_with_the_new_one(tmp_path: Path) -> None:
    late, returns = "_ZN3c104lateEv", "_ZNK3c106Device3strEv"
    book = open_torch_book(write_book(tmp_path, [
        (returns, "2.3-", ("libc10.so",)), (returns + TAGGED, "2.7-", ("libc10.so",)),
        (late, "2.6-", ("libc10.so",)), (late + TAGGED, "2.8", ("libc10.so",))], releases=(
            *RELEASES, ("2.8", "2.8.0", "new", ()))))
    old = found(book, compiled(returns))
    assert (old.minors, old.string_abi, old.index_minors) == ((*ALL, "2.8"), "old", ("2.3", "2.4", "2.5", "2.6"))
    new = found(book, compiled("_ZNK3c106Device3strB5cxx11Ev"))
    assert (new.minors, new.string_abi, new.index_minors) == ((*ALL, "2.8"), "new", ("2.7", "2.8"))
    assert can_load([compiled(returns)], book, "2.7.1").other_string == (returns,)
    assert can_load([compiled(returns)], book, "2.6.0").verdict == "can load"
    # in 2.7 it returned something else: the name without the tag is there whatever the string
    changed = found(book, compiled(late))
    assert (changed.minors, changed.string_abi, changed.index_minors) == (("2.6", "2.7", "2.8"), None, ("2.6", "2.7"))
    assert can_load([compiled(late)], book, "2.7.1").verdict == "can load"
    assert can_load([compiled(late)], book, "2.8.0").verdict == "cannot load"


# --- the rest of the record ---------------------------------------------------------------------------------------


def test_nothing_asked_and_nothing_linked_is_no_extension_of_torch(book: TorchBook) -> None:
    assert torch_range([compiled("PyObject_Call", needed=("libc.so.6",))], book) is None
    assert torch_range([], book) is None


def test_a_file_that_is_linked_and_asks_nothing_loads_with_each(book: TorchBook) -> None:
    answer = found(book, compiled("PyObject_Call", needed=("libtorch.so", "libc.so.6")))
    assert (answer.asked, answer.minors, answer.stable) == (0, ALL, False)


def test_torchs_own_libraries_are_not_linked_against_another_torch(book: TorchBook) -> None:
    own = (compiled(path="torch/lib/libtorch_cpu.so", needed=("libc10.so",), soname="libtorch_cpu.so"),
           compiled(path="torch/lib/libc10.so", needed=("libc.so.6",), soname="libc10.so"))
    assert torch_range(own, book) is None


def test_the_stable_abi_has_a_floor_only(book: TorchBook) -> None:
    answer = found(book, compiled(SHIM, LATE_SHIM))
    assert (answer.minors, answer.stable) == (("2.6", "2.7"), True)
    assert not found(book, compiled(SHIM, ERROR)).stable


def test_names_that_only_a_cuda_build_has(book: TorchBook) -> None:
    assert found(book, compiled(KERNEL)).cuda_torch
    assert found(book, compiled(SET_I)).cuda_torch
    assert not found(book, compiled(ERROR, EMPTY)).cuda_torch


def test_patches_that_lack_a_name_and_patches_that_alone_have_it(book: TorchBook) -> None:
    lacking = found(book, compiled(PREFERRED))
    assert (lacking.minors, lacking.patches) == (("2.4", "2.5", "2.6", "2.7"), ())
    assert [(each.version, each.key, each.exported) for each in lacking.exceptions] == [("2.4.0", PREFERRED, False)]
    alone = found(book, compiled(PREFERRED_CONST, SET_I))
    assert (alone.minors, alone.patches, alone.unknown) == ((), ("2.4.0",), ())
    assert ([each.name for each in alone.floor], alone.ceiling) == ([PREFERRED_CONST], ())      # that name decides
    assert (alone.loads("2.4.0"), alone.loads("2.4.1"), alone.index_patches) == (True, False, ("2.4.0",))
    assert (lacking.loads("2.4.0"), lacking.loads("2.4.1"), lacking.loads("2.3.1")) == (False, True, False)
    strings = found(book, compiled(PREFERRED_CONST, NEW_FAIL))
    assert (strings.patches, strings.index_patches) == (("2.4.0",), ())
    neither = found(book, compiled(PREFERRED_CONST, SET_A))
    assert (neither.minors, neither.patches, neither.unknown) == ((), (), ())


def test_records_survive_json(book: TorchBook) -> None:
    answer = found(book, compiled(PREFERRED, OLD_FAIL, UNKNOWN))
    assert from_json(to_json(answer), TorchRange) == answer


def test_a_file_that_asks_for_very_many_names_is_judged_all_the_same(book: TorchBook) -> None:
    names = [f"_ZN2at8f{place:07d}Ev" for place in range(20_000)]
    answer = found(book, compiled(*names, SET_A))
    assert (len(answer.unknown), answer.known) == (20_000, ("2.5", "2.6", "2.7"))
    assert [each.demangled for each in answer.unknown[:1]] == ["at::f0000000()"]
    assert answer.unknown[-1].demangled is None
    assert len(can_load([compiled(*names)], book, "2.5.1").missing) == 20_000


# --- one release --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "release", "verdict", "missing"), [
    ((SET_I, ERROR), "2.3.1", "can load", ()),
    ((SET_I, ERROR), "2.3.0", "can load", ()),
    ((SET_I, ERROR), "2.3", "can load", ()),            # PEP 440: 2.3.0
    ((ERROR, SET_I), "2.5.1", "cannot load", (SET_I,)),
    ((SET_A, EMPTY, ERROR), "2.3.1", "cannot load", (SET_A, EMPTY)),
    ((EMPTY, SET_A, ERROR), "2.3.1", "cannot load", (EMPTY, SET_A)),    # as the file has them
    ((PREFERRED,), "2.4.1", "can load", ()),
    ((PREFERRED,), "2.4.0", "cannot load", (PREFERRED,)),
    ((PREFERRED_CONST,), "2.4.0", "can load", ()),
    ((PREFERRED_CONST,), "2.4.1", "cannot load", (PREFERRED_CONST,)),
    ((UNKNOWN,), "2.7.1", "cannot load", (UNKNOWN,)),
    ((OLD_FAIL,), "2.6.0", "can load", ()),
    ((OLD_FAIL,), "2.7.1", "cannot load", (OLD_FAIL,)),
    ((NEW_FAIL,), "2.6.0", "cannot load", (NEW_FAIL,)),
    ((KERNEL,), "2.6.0+cpu", "cannot load", (KERNEL,)),
    ((KERNEL,), "2.6.0+cu126", "can load", ()),
    ((), "2.9.9", "can load", ()),
])
def test_the_verdict_on_a_release(book: TorchBook, names: tuple[str, ...], release: str, verdict: str,
                                  missing: tuple[str, ...]) -> None:
    answer = can_load([compiled(*names)], book, release)
    assert (answer.verdict, tuple(each.name for each in answer.missing), answer.why) == (verdict, missing, None)


@pytest.mark.parametrize(("names", "release", "read", "why", "missing"), [
    ((SET_I,), "2.8.0", "2.7.1", "newer", (SET_I,)),
    ((SET_A,), "3.0.0", "2.7.1", "newer", ()),
    ((SET_I,), "2.1.2", "2.3.1", "older", ()),
    ((SET_I,), "2.4.2", "2.4.1", "unread", ()),
    ((SET_I,), "2.4.0a0", "2.4.1", "unread", ()),
    ((OLD_FAIL,), "2.6.0+cu126", "2.6.0", "string-abi", ()),
])
def test_what_cannot_be_told(book: TorchBook, names: tuple[str, ...], release: str, read: str, why: str,
                             missing: tuple[str, ...]) -> None:
    answer = can_load([compiled(*names)], book, release)
    assert (answer.verdict, answer.read, answer.why) == ("cannot tell", read, why)
    assert tuple(each.name for each in answer.missing) == missing


def test_the_string_of_another_build_is_given(book: TorchBook) -> None:
    files = [compiled(NEW_FAIL, ERROR)]
    assert can_load(files, book, "2.6.0", string_abi="new").verdict == "can load"
    assert can_load(files, book, "2.6.0+cu126", string_abi="new").verdict == "can load"
    refused = can_load(files, book, "2.6.0+cu124", string_abi="old")
    assert (refused.verdict, refused.other_string) == ("cannot load", (NEW_FAIL,))


def test_no_build_has_both_strings(book: TorchBook) -> None:
    for release in ("2.6.0", "2.6.0+cu126", "3.1.0"):
        assert can_load([compiled(NEW_FAIL, OLD_FAIL)], book, release).verdict == "cannot load"


def test_another_string_decides_also_for_a_release_that_was_not_read(book: TorchBook) -> None:
    answer = can_load([compiled(OLD_FAIL)], book, "2.9.0", string_abi="new")
    assert (answer.verdict, answer.other_string) == ("cannot load", (OLD_FAIL,))


def test_a_missing_name_decides_whatever_the_string(book: TorchBook) -> None:
    answer = can_load([compiled(OLD_FAIL, SET_I)], book, "2.6.0+cu126")
    assert (answer.verdict, [each.name for each in answer.missing]) == ("cannot load", [SET_I])


def test_files_for_another_machine_are_not_judged_by_these_wheels(book: TorchBook) -> None:
    answer = can_load([compiled(SET_I, machine="aarch64")], book, "2.5.1")
    assert (answer.verdict, answer.why, [each.name for each in answer.missing]) == ("cannot tell", "machine", [SET_I])
    assert can_load([compiled(machine="aarch64")], book, "2.5.1").verdict == "can load"


def test_a_cpu_build_lacks_what_cuda_builds_have(book: TorchBook) -> None:
    answer = can_load([compiled(ERROR, KERNEL)], book, "2.5.1", cuda=False)
    assert (answer.verdict, answer.only_cuda) == ("cannot load", (KERNEL,))


@pytest.mark.parametrize("release", ["", "two", "2", "2.3.1 ", "2.3.1; rm", "2..3", "9" * 5000])
def test_what_is_no_release(book: TorchBook, release: str) -> None:
    with pytest.raises(BadInput, match="is no release of torch"):
        can_load([compiled(SET_I)], book, release)


def test_a_verdict_agrees_with_the_range(book: TorchBook) -> None:
    for names in ((SET_I,), (SET_A, EMPTY), (OLD_FAIL, GROUP), (NEW_FAIL, ERROR), (UNKNOWN,), (PREFERRED, SHIM)):
        answer = found(book, compiled(*names))
        loads = {each.minor for each in book.releases
                 if can_load([compiled(*names)], book, each.version).verdict == "can load"}
        assert loads == set(answer.index_minors)
