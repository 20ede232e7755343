"""The book of torch that is in the wheel: whole, and as other readers of the same releases have seen them."""

from __future__ import annotations

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.can_load import can_load
from stackfix.abi.records import TorchBook
from stackfix.abi.torch_range import torch_range
from stackfix.matrix.load import load_matrix
from tests.abi_small import compiled

OLD_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@pytest.fixture(scope="module")
def book() -> TorchBook:
    return open_torch_book()


def test_each_minor_since_1_13_is_there(book: TorchBook) -> None:
    minors = [each.minor for each in book.releases]
    assert minors[:4] == ["1.13", "2.0", "2.1", "2.2"]
    assert minors[1:] == [f"2.{number}" for number in range(len(minors) - 1)]
    assert len(minors) > 16


def test_the_string_abi_of_the_wheels_is_that_of_the_matrix(book: TorchBook) -> None:
    """Which read TorchConfig.cmake of the same wheels, not their symbols."""
    stated = {each.version: "new" if each.cxx11_abi else "old" for each in load_matrix().torch
              if each.index == "default" and each.platform == "linux-64" and each.cxx11_abi is not None}
    compared = {each.version: each.string_abi for each in book.releases if each.version in stated}
    assert len(compared) > 15
    assert compared == {version: stated[version] for version in compared}


@pytest.mark.parametrize(("name", "first", "last"), [
    ("_ZN3c104cuda9SetDeviceEi", "2.1", "2.2"),
    ("_ZN3c104cuda9SetDeviceEa", "2.3", "2.7"),
    ("_ZN3c104cuda9SetDeviceEab", "2.8", None),
    ("_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib", "2.0", "2.9"),
    ("_ZNK3c105Error4whatEv", "2.4", None),
    ("torch_new_stable_ivalue", "2.13", None),
    ("torch_exception_get_what", "2.13", None),
    ("_ZN3c106detail14torchCheckFailEPKcS2_jS2_", "1.13", None),
    (OLD_FAIL, "1.13", None),
    (NEW_FAIL, "1.13", None),
])
def test_names_that_date_a_build(book: TorchBook, name: str, first: str, last: str | None) -> None:
    minors = book.minors(name)
    every = [each.minor for each in book.releases]
    assert minors
    assert (minors[0], minors[-1]) == (first, last or every[-1])
    assert list(minors) == every[every.index(minors[0]):every.index(minors[-1]) + 1]


@pytest.mark.parametrize("name", [
    "_ZN3c104cuda9SetDeviceEx", "_ZNSs4_Rep10_M_disposeERKSaIcE", "PyObject_Call", "cblas_sgemm",
    "aoti_torch_none_such",
])
def test_names_that_are_not_in_it(book: TorchBook, name: str) -> None:
    assert book.minors(name) == book.libraries(name) == ()


def test_libraries(book: TorchBook) -> None:
    assert book.libraries("_ZN3c104cuda9SetDeviceEa") == ("libc10_cuda.so",)
    assert "libtorch_python.so" in book.libraries("_Z16THPVariable_WrapN2at10TensorBaseE")


def test_an_old_extension_is_not_for_a_new_torch(book: TorchBook) -> None:
    files = [compiled(OLD_FAIL, "_ZN3c104cuda9SetDeviceEa")]
    answer = torch_range(files, book)
    assert answer is not None
    assert (answer.minors, answer.string_abi) == (("2.3", "2.4", "2.5", "2.6", "2.7"), "old")
    assert answer.index_minors == ("2.3", "2.4", "2.5", "2.6")
    assert can_load(files, book, "2.6.0").verdict == "can load"
    assert can_load(files, book, "2.7.1").other_string == (OLD_FAIL,)
    assert can_load(files, book, "2.7.1", string_abi="old").verdict == "can load"
    assert can_load(files, book, "99.0.0").why == "newer"


def test_a_patch_that_is_otherwise_than_the_newest(book: TorchBook) -> None:
    """2.4.1 made a const method another one."""
    only_first = [compiled("_ZNK2at7Context20blasPreferredBackendEv", "_ZN3c104cuda9SetDeviceEa")]
    answer = torch_range(only_first, book)
    assert answer is not None
    assert (answer.minors, answer.patches, answer.unknown) == ((), ("2.4.0",), ())
    assert can_load(only_first, book, "2.4.0").verdict == "can load"
    assert can_load(only_first, book, "2.4.1").verdict == "cannot load"
