"""Names of torch by their beginning agree with the mapped book, and damaged files are one error."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from stackfix.abi.books import open_books
from stackfix.abi.torch_names import TorchNameList
from stackfix.errors import BadInput

BOOKS = open_books()
HEAD = b"key\tminors\tlibraries\n"


@pytest.mark.parametrize("beginning", [
    "_ZN3c104cuda9SetDeviceE", "_ZN2at4_ops15to_dtype_layout4callE", "aoti_torch_abi", "THPVariableC",
    "_ZNK2at10TensorBase",
])
def test_each_name_has_the_minors_of_the_book(beginning: str) -> None:
    assert BOOKS.names is not None
    found = BOOKS.names.starting(beginning)
    assert found
    assert all(name.startswith(beginning) for name, _ in found)
    assert [minors for _, minors in found] == [BOOKS.torch.minors(name) for name, _ in found]


def test_one_function_has_another_name_in_each_range_of_releases() -> None:
    assert BOOKS.names is not None
    found = dict(BOOKS.names.starting("_ZN3c104cuda9SetDeviceE"))
    assert [each[-1:] for each in map(str, found)] == ["a", "b", "i"]
    assert sorted(minor for minors in found.values() for minor in minors) == sorted(
        {minor for minors in found.values() for minor in minors})       # no release has two of them


@pytest.mark.parametrize("beginning", ["", "_Z", "_ZN2a", "\xe9" * 9, "_ZN2at\n_ZN3c10", "no such name"])
def test_what_tells_nothing_finds_nothing(beginning: str) -> None:
    assert BOOKS.names is not None
    assert BOOKS.names.starting(beginning) == ()


@pytest.mark.parametrize(("content", "reason"), [
    (b"not packed", "cannot be unpacked"),
    (lzma.compress(b"something else\n"), "is no list of names"),
    (lzma.compress(HEAD + b"_ZN2at3newEv\t9.9-\tlibtorch.so\n"), "is no version that was read"),
])
def test_a_damaged_file_is_one_error(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "full.tsv.xz").write_bytes(content)
    with pytest.raises(BadInput, match=reason):
        TorchNameList(tmp_path, ("2.3", "2.4")).starting("_ZN2at3newE")


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    (tmp_path / "full.tsv.xz").write_bytes(lzma.compress(HEAD + b"_ZN2at3newEv\t2.4\tlibtorch.so"))
    names = TorchNameList(tmp_path, ("2.3", "2.4"))
    assert names.starting("_ZN2at3newE") == (("_ZN2at3newEv", ("2.4",)),)


@pytest.mark.parametrize(("library", "first", "last"), [
    ("libc10.so", 0, None), ("libtorch_cpu.so", 0, None), ("libtorch_cuda_cu.so", 0, 1), ("libtorch_cuda_cpp.so", 0, 1),
    ("libc10_cuda.so", 0, None), ("libtorch_nvshmem.so", 10, None),
])
def test_which_minors_have_a_library(library: str, first: int, last: int | None) -> None:
    assert BOOKS.names is not None
    every = tuple(each.minor for each in BOOKS.torch.releases)
    assert BOOKS.names.having(library) == every[first:last]
    assert BOOKS.names.having(f"{library}x") == BOOKS.names.having("") == ()
