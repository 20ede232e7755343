"""What ships of published wheels for loading: the file itself, damage, and what it says of the stacks that it knows."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.mangled import neutral
from stackfix.abi.records import BookRelease, PatchException
from stackfix.almanac.__main__ import main
from stackfix.almanac.manifest import read_manifest
from stackfix.errors import BadInput
from stackfix.inspect.records import ElfObject, SymbolNames
from stackfix.matrix.toml_files import matrix_directory
from stackfix.tables.loading_book import FILE, LoadingBook, open_loading_book
from stackfix.tables.loading_format import Sections, pack
from stackfix.tables.loading_torch import ReleaseNames, release_names

ABI = matrix_directory() / "abi"
JITLINK = "libnvJitLink.so.12"
ADDED = "__nvJitLinkAddData_12_1"
LARGEST = 3_000_000             # bytes of what this adds to the package


@cache
def book() -> LoadingBook:
    return open_loading_book(None, open_torch_book)


def wheels_of(name: str) -> Mapping[str, str]:
    """sha256 by version."""
    return {each.version: each.sha256 for each in book().shipped(name)}


def offered(sha256: str, path: str, *names: str) -> set[str]:
    return set(book().symbols(sha256, path).offered(SymbolNames(names)))


def test_the_file_is_small_and_of_its_manifest() -> None:
    rows = [(each.package, each.version, each.file, each.sha256) for each in read_manifest(ABI / "loading.toml")]
    assert list(book().wheels) == rows
    assert sum((ABI / name).stat().st_size for name in (FILE, "loading.toml")) < LARGEST


def test_the_check_of_what_ships(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["loading", "--check", "--store", str(tmp_path)]) == 0
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"with 0 of {len(book().wheels)} wheels" in err
    assert list(tmp_path.iterdir()) == []


def test_wheels_of_torch_are_those_of_its_book() -> None:
    known = {each.sha256 for each in read_manifest(ABI / "torch.toml")}
    assert {each.sha256 for each in book().shipped("torch")} <= known
    assert {"2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0"} <= set(wheels_of("torch"))


def test_every_library_of_every_wheel_can_be_read() -> None:
    for *_, sha256 in book().wheels:
        for library in book().tables(sha256).libraries:     # a wheel of headers has none
            if isinstance(library.elf, ElfObject):
                symbols = book().symbols(sha256, library.path)
                assert all(symbols.tells(each.name) for each in symbols.undefined())
                assert set(symbols.uses([each.name for each in symbols.undefined()])) == set(symbols.used)


@pytest.mark.parametrize(("version", "has"), [("12.0.140", False), ("12.1.105", True), ("12.4.127", True)])
def test_the_symbol_that_cusparse_wants_is_in_nvjitlink_since_12_1(version: str, has: bool) -> None:
    path = f"site/nvidia/nvjitlink/lib/{JITLINK}"
    sha256 = wheels_of("nvidia-nvjitlink-cu12")[version]
    assert offered(sha256, path, ADDED) == ({ADDED} if has else set())
    assert book().symbols(sha256, path).tells(ADDED)


def test_what_wheels_of_nvidia_want_of_one_another_is_in_those_of_their_stack() -> None:
    """Of torch 2.3.1 and what it pins: nothing is left over that bears the version of another wheel's library."""
    torch = book().tables(wheels_of("torch")["2.3.1"])
    pins = dict(re.findall(r"(nvidia-[a-z0-9-]+) ?\(?==([0-9.]+)", "\n".join(torch.project.requires)))
    pins |= {"nvidia-nvjitlink-cu12": "12.1.105"}
    stack = [torch, *(book().tables(wheels_of(name)[version]) for name, version in pins.items())]
    assert len(stack) == 13
    wanted, files = set[tuple[str, str]](), dict[str, tuple[str, str]]()
    for tables in stack:
        for library in tables.libraries:
            if isinstance(library.elf, ElfObject):
                files.setdefault(library.elf.soname or "", (tables.sha256, library.path))
                wanted |= {(each.file, each.name) for each in book().symbols(tables.sha256, library.path).undefined()
                           if each.file is not None}
    ours = {(file, name) for file, name in wanted if file in files}
    assert len({file for file, _ in ours}) > 5
    for file, name in ours:
        assert offered(*files[file], name) == {name}, (file, name)


def test_names_of_torch_are_answered_by_its_book() -> None:
    sha256 = wheels_of("torch")["2.3.1"]
    old, new = ("_ZN3c105ErrorC2ENS_14SourceLocationE" + string for string in
                ("Ss", "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"))
    assert offered(sha256, "site/torch/lib/libc10.so", old, new, "_ZN3c107nowhereEv") == {old}
    newest = wheels_of("torch")["2.8.0"]
    assert offered(newest, "site/torch/lib/libc10.so", old, new) == {new}
    assert offered(newest, "site/torch/lib/libtorch_python.so", new) == set()
    symbols = book().symbols(sha256, "site/torch/lib/libtorch_cpu.so")
    assert symbols.tells("_ZN2at7nowhereEv")
    assert not symbols.tells("_ZSt4moveIRiEOT_S1_")


def test_a_name_that_has_moved_is_in_one_library_alone() -> None:
    sha256 = wheels_of("torch")["2.3.1"]
    paths = [f"site/torch/lib/lib{name}.so" for name in ("c10", "c10_cuda", "torch_cpu", "torch_cuda", "torch_python")]
    moved = {path: book().symbols(sha256, path).lacks for path in paths}
    assert len(moved[paths[2]]) > 50
    for path, names in moved.items():
        assert offered(sha256, path, *names) == set()
        elsewhere = set[str]().union(*(offered(sha256, other, *names) for other in paths if other != path))
        assert len(elsewhere) >= 0.9 * len(names)       # the rest is in libraries beside these


class Book:
    """One minor with two patches; fills TorchBook."""

    releases = (BookRelease(minor="2.3", version="2.3.1", file="x", sha256="0" * 64, string_abi="new",
                            patches=("2.3.0",)),)

    def minors(self, name: str) -> tuple[str, ...]:
        return ("2.3",) if neutral(name) in {"_ZN3c103oneEv", "_ZN3c103twoEv", "_ZN3c103twoEv@string"} else ()

    def libraries(self, name: str) -> tuple[str, ...]:
        return ("libc10.so",) if self.minors(name) else ()

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return (PatchException(version=version, key="_ZN3c103oneEv", exported=False),
                PatchException(version=version, key="_ZN3c105threeEv", exported=True))


def test_a_patch_release_and_a_tagged_name_have_their_own_say() -> None:
    newest, patch = release_names(Book(), "2.3.1"), release_names(Book(), "2.3.0")
    assert isinstance(newest, ReleaseNames)
    assert isinstance(patch, ReleaseNames)
    names = ("_ZN3c103oneEv", "_ZN3c103twoEv", "_ZN3c105threeEv", "malloc")
    assert [newest.offers("libc10.so", name) for name in names] == [True, False, False, False]
    assert [patch.offers("libc10.so", name) for name in names] == [False, False, True, False]
    assert not newest.offers("libtorch.so", names[0])
    assert not newest.offers("libc10.so", "_ZN3c103oneESs")
    assert newest.offers("libc10.so", "_ZN3c103twoB5cxx11Ev")       # as the wheel has it
    assert not newest.offers("libc10.so", "_ZN3c103oneB5cxx11Ev")
    assert release_names(Book(), "2.4.0") is None


def test_a_damaged_file_is_refused_whichever_byte_it_is() -> None:
    content = (ABI / FILE).read_bytes()
    rng = random.Random(5)      # noqa: S311 - not a secret
    for place in [0, 8, 12, 16, 48, len(content) - 1, *(rng.randrange(len(content)) for _ in range(40))]:
        damaged = content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1:]
        with pytest.raises(BadInput, match=r"x\.bin: is"):
            Sections(damaged, "x.bin")
    for cut in (0, 7, 47, 48, 1000, len(content) - 1):
        with pytest.raises(BadInput, match=r"x\.bin: is"):
            Sections(content[:cut], "x.bin")


@pytest.mark.parametrize("document", [
    [], {}, {"project": 1, "libraries": []}, {"project": {}, "libraries": [{"path": 1}]}])
def test_a_document_that_is_none_is_an_error_about_the_file(document: Mapping[str, object], tmp_path: Path) -> None:
    row = ("demo", "1.0", "demo-1.0-py3-none-any.whl", "ab" * 32)
    (tmp_path / FILE).write_bytes(pack(["a"], [0], [(row, document)]))
    opened = open_loading_book(tmp_path, open_torch_book)
    with pytest.raises(BadInput, match=r"what it tells of demo-1\.0-py3-none-any\.whl is not as it should be"):
        opened.tables("ab" * 32)
    with pytest.raises(BadInput, match=r"loading\.bin: is damaged"):
        opened.symbols("ab" * 32, "site/x.so")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        open_loading_book(tmp_path, open_torch_book)
