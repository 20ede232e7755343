"""The mapped book of torch: what it answers, and what it says of a damaged file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.abi.book import MappedTorchBook, open_torch_book
from stackfix.abi.book_format import PROLOGUE, pack
from stackfix.abi.book_patches import parse_patches, render_patches
from stackfix.abi.books import open_books
from stackfix.abi.records import PatchException
from stackfix.errors import BadInput
from tests.abi_small import LIBRARIES, write_book

OLD_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
NEW_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
ROWS = (
    ("_ZN3c104cuda9SetDeviceEi", "2.3-2.4", ("libc10_cuda.so",)),
    ("_ZN3c104cuda9SetDeviceEab", "2.5-", ("libc10_cuda.so",)),
    ("_ZN3c105ErrorD1Ev", "2.3-", ("libc10.so",)),
    (OLD_FAIL, "2.3-2.6", ("libc10.so",)),
    (NEW_FAIL, "2.7", ("libc10.so",)),
    ("_ZN2at5emptyEv", "2.4", ("libtorch_cpu.so",)),
    ("_ZN2at5emptyEv", "2.6-", ("libtorch_cpu.so", "libtorch_cuda.so")),
)
ONE: dict[str, object] = {"minor": "2.3", "version": "2.3.1", "file": "torch.whl", "sha256": "0" * 64,
                          "string_abi": "old", "patches": []}
HEADER = {"libraries": ["libc10.so"], "releases": [ONE]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_book(tmp_path, ROWS, patches=[("2.4.0", "+", "_ZNK2at7Context9preferredEv", "libtorch_cpu.so"),
                                               ("2.4.0", "-", "_ZN2at7Context9preferredEv", "libtorch_cpu.so")])


@pytest.mark.parametrize(("name", "minors"), [
    ("_ZN3c104cuda9SetDeviceEi", ("2.3", "2.4")),
    ("_ZN3c104cuda9SetDeviceEab", ("2.5", "2.6", "2.7")),
    ("_ZN3c105ErrorD1Ev", ("2.3", "2.4", "2.5", "2.6", "2.7")),
    ("_ZN2at5emptyEv", ("2.4", "2.6", "2.7")),
    ("_ZN3c104cuda9SetDeviceEx", ()),
    ("", ()),
])
def test_minors_that_export_a_name(folder: Path, name: str, minors: tuple[str, ...]) -> None:
    assert open_torch_book(folder).minors(name) == minors


def test_a_name_is_looked_up_whatever_its_string(folder: Path) -> None:
    book = open_torch_book(folder)
    assert book.minors(OLD_FAIL) == book.minors(NEW_FAIL) == ("2.3", "2.4", "2.5", "2.6", "2.7")


def test_libraries_are_those_of_any_minor(folder: Path) -> None:
    book = open_torch_book(folder)
    assert book.libraries("_ZN2at5emptyEv") == ("libtorch_cpu.so", "libtorch_cuda.so")
    assert book.libraries("_ZN2at9not_thereEv") == ()


def test_releases_are_those_of_the_header(folder: Path) -> None:
    releases = open_torch_book(folder).releases
    assert [(each.minor, each.version, each.string_abi, each.patches) for each in releases][:2] == [
        ("2.3", "2.3.1", "old", ("2.3.0",)), ("2.4", "2.4.1", "old", ("2.4.0",))]


def test_exceptions_of_a_patch(folder: Path) -> None:
    book = open_torch_book(folder)
    assert book.exceptions("2.4.0") == (
        PatchException(version="2.4.0", key="_ZNK2at7Context9preferredEv", exported=True),
        PatchException(version="2.4.0", key="_ZN2at7Context9preferredEv", exported=False))
    assert book.exceptions("2.4.1") == book.exceptions("2.9.9") == ()


def test_patches_are_read_only_when_asked(folder: Path) -> None:
    (folder / "patches.tsv").write_text("nonsense\n", encoding="utf-8")
    book = open_torch_book(folder)
    assert book.minors("_ZN2at5emptyEv")
    with pytest.raises(BadInput, match=r"patches\.tsv:1: the columns are not version change key library"):
        book.exceptions("2.4.0")


def test_each_book_is_opened_when_it_is_asked_for(folder: Path) -> None:
    books = open_books(folder)
    assert books.torch.minors("_ZN2at5emptyEv") == ("2.4", "2.6", "2.7")
    assert books.torch is books.torch
    with pytest.raises(BadInput, match=r"extensions\.tsv"):
        _ = books.judged
    with pytest.raises(BadInput, match=r"packages\.tsv"):
        _ = books.nvidia


def test_many_names_are_all_found(tmp_path: Path) -> None:
    names = [f"_ZN2at4_ops{len(str(place)) + 1}f{place}4callEv" for place in range(20_000)]
    masks = {name: place * 2654435761 % ((1 << 40) - 1) + 1 for place, name in enumerate(names)}
    header = {"libraries": ["libc10.so"], "releases": [
        {**ONE, "minor": f"2.{place}", "version": f"2.{place}.0"} for place in range(40)]}
    (tmp_path / "full.bin").write_bytes(pack(header, [(name, mask, 1) for name, mask in masks.items()]))
    book = open_torch_book(tmp_path)
    for name, mask in masks.items():
        assert book.minors(name) == tuple(f"2.{place}" for place in range(40) if mask >> place & 1)
    assert not any(book.minors(f"{name}v") for name in names)


# --- damage -------------------------------------------------------------------------------------------------------


def test_no_book_is_said_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="full\\.bin: cannot be read: No such file") as caught:
        open_torch_book(tmp_path)
    assert caught.value.next_step() is not None


@pytest.mark.parametrize("content", [b"", b"sfx-abi\x01", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_book(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "full.bin").write_bytes(content)
    with pytest.raises(BadInput, match=r"full\.bin: is no table of torch's symbols") as caught:
        open_torch_book(tmp_path)
    assert "Install stackfix again" in (caught.value.next_step() or "")


def test_a_book_that_is_cut_or_longer(folder: Path) -> None:
    whole = (folder / "full.bin").read_bytes()
    for content in (*(whole[:size] for size in range(0, len(whole), 7)), whole + b"\0" * 8):
        (folder / "full.bin").write_bytes(content)
        with pytest.raises(BadInput, match=r"full\.bin: is "):
            open_torch_book(folder)


def test_a_changed_byte_is_found_by_its_digest(folder: Path) -> None:
    whole = (folder / "full.bin").read_bytes()
    for place in range(PROLOGUE.size - 32, len(whole), 5):   # before it: the sizes and the magic
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        (folder / "full.bin").write_bytes(content)
        with pytest.raises(BadInput, match="is damaged: its content is not what its digest says") as caught:
            open_torch_book(folder)
        assert "Install stackfix again" in (caught.value.next_step() or "")


def test_no_changed_byte_crashes_a_look_up(folder: Path) -> None:
    whole = (folder / "full.bin").read_bytes()
    blamed = list[str]()
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 0xFF
        try:
            book = MappedTorchBook(bytes(content), folder / "full.bin")
            for name, _, _ in ROWS:
                book.minors(name)
                book.libraries(name)
        except BadInput as error:
            blamed.append(error.thing)
    assert len(blamed) > PROLOGUE.size - 32     # whose digest is not asked
    assert set(blamed) == {str(folder / "full.bin")}


@pytest.mark.parametrize(("change", "says"), [
    ({"releases": []}, "its releases are not in order"),
    ({"releases": [ONE, ONE]}, "its releases are not in order"),
    ({"libraries": "libc10.so"}, "a list was expected"),
    ({"libraries": [1]}, "a text was expected, not 1"),
    ({"releases": [{**ONE, "string_abi": "mixed"}]}, "no std::string ABI"),
    ({"releases": [{**ONE, "version": "2.4.1"}]}, "no release: 2.3"),
    ({"releases": [{**ONE, "more": 1}]}, "the fields of a release are"),
    ({"releases": [{**ONE, "sha256": "x"}]}, "no std::string ABI or no hash of 2.3"),
    ({"releases": ["2.3"]}, "header"),
])
def test_a_header_that_is_not_that_of_a_book(tmp_path: Path, change: dict[str, object], says: str) -> None:
    (tmp_path / "full.bin").write_bytes(pack({**HEADER, **change}, []))
    with pytest.raises(BadInput, match="full\\.bin") as caught:
        open_torch_book(tmp_path)
    assert says in caught.value.what()


def test_a_header_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    deep = pack(HEADER, [])
    text = json.dumps(HEADER, separators=(",", ":")).encode("ascii")
    room = len(text) // 8 * 8
    for damage, says in ((b"[" * room, "not JSON|nested too deeply"), (b"{}" + b" " * (room - 2), "not JSON"),
                         (b"\xff" + text[1:room], r"not UTF-8 \(byte 0\)$")):
        with pytest.raises(BadInput, match=f"its header is not that of a book: ({says})"):
            MappedTorchBook(deep.replace(text[:room], damage), tmp_path / "full.bin")


def test_masks_that_point_nowhere_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "full.bin").write_bytes(pack(HEADER, [("_ZN2at1fEv", 1 << 5, 1), ("_ZN2at1gEv", 1, 1 << 9)]))
    book = open_torch_book(tmp_path)
    with pytest.raises(BadInput, match="names minors that are not in its list"):
        book.minors("_ZN2at1fEv")
    with pytest.raises(BadInput, match="names libraries that are not in its list"):
        book.libraries("_ZN2at1gEv")


@pytest.mark.parametrize(("text", "says"), [
    ("", "p:1: the columns are not"),
    ("version\tchange\tkey\tlibrary", "p:1: the last line does not end"),
    ("version\tchange\tkey\tlibrary\n2.4.0\t+\t_Z1fv\n", "p:2: 3 columns instead of 4"),
    ("version\tchange\tkey\tlibrary\n2.4.0\t*\t_Z1fv\tlibc10.so\n", "p:2: '2.4.0"),
    ("version\tchange\tkey\tlibrary\n2.4\t+\t_Z1fv\tlibc10.so\n", "p:2: '2.4"),
    ("version\tchange\tkey\tlibrary\n2.4.0\t+\t_Z1\udcff\tlibc10.so\n", "p:2: not UTF-8"),
])
def test_a_table_of_patches_with_a_fault(text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_patches(text.encode("utf-8", "surrogateescape"), "p")
    assert "Install stackfix again" in (caught.value.next_step() or "")
    assert caught.value.what().startswith(says)


def test_patches_that_are_written_are_read_back() -> None:
    rows = [("2.4.0", "+", "_ZN2at1fEv", LIBRARIES[0]), ("2.7.0", "-", "_ZN2at1gEv", "libc10.so libtorch_cpu.so")]
    read = parse_patches(render_patches(rows).encode(), "p")
    assert {version: [(each.key, each.exported) for each in found] for version, found in read.items()} == {
        "2.4.0": [("_ZN2at1fEv", True)], "2.7.0": [("_ZN2at1gEv", False)]}
