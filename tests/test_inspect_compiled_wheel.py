"""The compiled files of a wheel: only shared objects are unpacked, nothing stays behind, hostile archives are told."""

from __future__ import annotations

import os
import tempfile
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackfix.abi.records import Compiled
from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.inspect.compiled_wheel import MOST_STATED, read_wheel
from stackfix.inspect.environment_records import Note
from stackfix.inspect.places import MIB
from tests.diagnose_world import elf_bytes, lib
from tests.inspect_trees import make_wheel
from tests.loader_oracle.graph import Library

INFO = "ext-2.0.dist-info"
METADATA = "Metadata-Version: 2.1\nName: ext\nVersion: 2.0\n"


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def content(files: Mapping[str, Library | bytes]) -> dict[str, bytes]:
    return {name: each if isinstance(each, bytes) else elf_bytes(f"/x/{name}", each) for name, each in files.items()}


def raw_wheel(folder: Path, files: Mapping[str, bytes | str], name: str = "ext-2.0-py3-none-any.whl") -> Path:
    """An archive with exactly these members."""
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, body in files.items():
            archive.writestr(member, body)
    return path


def names(compiled: Compiled, path: str) -> list[str]:
    [file] = [each for each in compiled.files if each.path == path]
    return [each.name for each in file.undefined if each.name != "dlopen"]


def test_a_wheel_is_read_and_nothing_stays_behind(tmp_path: Path, own_temporary_folder: Path) -> None:
    path = make_wheel(tmp_path, "ext", "2.0", content({
        "ext/_C.cpython-311-x86_64-linux-gnu.so": lib(wants=("helped", "torched"), needs=("libhelp.so.1",)),
        "ext.libs/libhelp.so.1": lib(offers=("helped",)), "ext/table.bin": b"x" * 100,
    }), requires=("torch>=2.3",), tag="cp311-cp311-manylinux_2_28_x86_64")
    notes: list[Note] = []
    told: list[tuple[int, int]] = []
    found = read_wheel(path, notes, lambda done, total: told.append((done, total)))
    assert (found.name, found.version, found.origin, found.source) == ("ext", "2.0", "wheel", str(path))
    assert (found.file_name, found.requires, found.tags) == (path.name, ("torch>=2.3",),
                                                             ("cp311-cp311-manylinux_2_28_x86_64",))
    assert [each.path for each in found.files] == ["ext.libs/libhelp.so.1", "ext/_C.cpython-311-x86_64-linux-gnu.so"]
    assert names(found, "ext/_C.cpython-311-x86_64-linux-gnu.so") == ["torched"]
    assert (found.unreadable, notes) == ((), [])
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(each.elf.size for each in found.files)
    assert list(own_temporary_folder.iterdir()) == []


def test_the_name_of_the_file_tells_for_what_it_is_and_not_wheel(tmp_path: Path) -> None:
    """transformer-engine-cu12 is py3-none by its name, and cp38-cp38 by its WHEEL."""
    made = make_wheel(tmp_path, "ext", "2.0", content({"libext.so": lib()}), tag="cp38-cp38-linux_x86_64")
    named = made.rename(tmp_path / "ext-2.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    assert read_wheel(named, []).tags == ("py3-none-manylinux_2_17_x86_64", "py3-none-manylinux2014_x86_64")
    assert read_wheel(named.rename(tmp_path / "odd.whl"), []).tags == ("cp38-cp38-linux_x86_64",)


def test_files_of_the_data_folder_are_read_too(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "ext", "2.0", content({"ext-2.0.data/platlib/ext/_C.so": lib(wants=("f",))}))
    found = read_wheel(path, [])
    assert names(found, "ext-2.0.data/platlib/ext/_C.so") == ["f"]


def test_a_wheel_without_compiled_files_has_none(tmp_path: Path) -> None:
    found = read_wheel(make_wheel(tmp_path, "ext", "2.0", {"ext/__init__.py": b""}), [])
    assert (found.files, found.unreadable) == ((), ())


def test_a_wheel_without_a_record_is_read_and_noted(tmp_path: Path) -> None:
    path = raw_wheel(tmp_path, {f"{INFO}/METADATA": METADATA, **content({"ext/_C.so": lib(wants=("f",))})})
    notes: list[Note] = []
    found = read_wheel(path, notes)
    assert names(found, "ext/_C.so") == ["f"]
    assert any("missing" in each.reason and "RECORD" in each.reason for each in notes)


def test_a_name_that_is_no_wheels_is_noted_and_kept_out(tmp_path: Path) -> None:
    path = raw_wheel(tmp_path, {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": "Wheel-Version: 1.0\n",
                                f"{INFO}/RECORD": ""}, "renamed.whl")
    notes: list[Note] = []
    found = read_wheel(path, notes)
    assert (found.file_name, found.tags) == (None, ())
    assert any("no name of a wheel" in each.reason for each in notes)


def test_members_that_lead_outside_are_not_unpacked(tmp_path: Path, own_temporary_folder: Path) -> None:
    body = elf_bytes("/x/a.so", lib(wants=("f",)))
    path = raw_wheel(tmp_path, {
        f"{INFO}/METADATA": METADATA, "../../../evil.so": body, "/evil.so": body, "ext/good.so": body,
        f"ext/{'d/' * 200}deep.so": body, "ext/\xff\x1b[31m.so": body})
    notes: list[Note] = []
    found = read_wheel(path, notes)
    assert "ext/good.so" in [each.path for each in found.files]
    assert not any("evil" in each.path for each in found.files)
    assert any("leads out of the folder" in each.reason for each in notes)
    assert [reason for name, reason in found.unreadable if name.endswith("deep.so")] == ["cannot be unpacked"]
    assert not list(tmp_path.rglob("evil.so"))
    assert list(own_temporary_folder.iterdir()) == []


def test_a_member_of_another_content_than_its_checksum_is_told(tmp_path: Path) -> None:
    path = raw_wheel(tmp_path, {f"{INFO}/METADATA": METADATA, **content({"ext/good.so": lib(wants=("f",))})})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("ext/bad.so", b"A" * 1000)
    broken = path.read_bytes().replace(b"A" * 1000, b"A" * 999 + b"B")
    path.write_bytes(broken)
    notes: list[Note] = []
    found = read_wheel(path, notes)
    assert [each.path for each in found.files] == ["ext/good.so"]
    assert found.unreadable == (("ext/bad.so", "cannot be unpacked"),)
    assert any("Bad CRC-32" in each.reason for each in notes)


def test_more_than_any_wheel_has_is_refused_before_it_is_unpacked(tmp_path: Path, own_temporary_folder: Path) -> None:
    """The directory states sizes that nobody has written."""
    stated = 0xFFFFFFFE
    count = MOST_STATED // stated + 1
    path = raw_wheel(tmp_path, {f"{INFO}/METADATA": METADATA,
                                **{f"ext/huge{number}.so": b"\0" * MIB for number in range(count)}})
    path.write_bytes(path.read_bytes().replace(MIB.to_bytes(4, "little"), stated.to_bytes(4, "little")))
    with pytest.raises(BadInput, match="GiB of shared objects, which no wheel has"):
        read_wheel(path, [])
    assert list(own_temporary_folder.iterdir()) == []


def test_a_large_member_is_never_in_memory(tmp_path: Path) -> None:
    path = raw_wheel(tmp_path, {f"{INFO}/METADATA": METADATA, "ext/zeros.so": b"\0" * (64 * MIB)})
    tracemalloc.start()
    try:
        found = read_wheel(path, [])
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()
    assert found.unreadable == (("ext/zeros.so", "is no ELF file"),)


def test_what_is_no_wheel_is_one_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.whl")
    (tmp_path / "folder.whl").mkdir()
    (tmp_path / "loop.whl").symlink_to("loop.whl")
    (tmp_path / "empty.whl").touch()
    (tmp_path / "text.whl").write_text("no archive")
    raw_wheel(tmp_path, {"a.so": b""}, "bare.whl")
    raw_wheel(tmp_path, {"a-1.dist-info/METADATA": METADATA, "b-1.dist-info/METADATA": METADATA}, "two.whl")
    raw_wheel(tmp_path, {f"{INFO}/METADATA": "Metadata-Version: 2.1\n"}, "nameless.whl")
    for name in ("pipe", "folder", "loop", "empty", "text", "bare", "two", "nameless", "none"):
        with pytest.raises((BadInput, Unreachable), match=rf"{name}\.whl"):
            read_wheel(tmp_path / f"{name}.whl", [])


def test_every_cut_of_a_wheel_is_an_answer_or_an_error(tmp_path: Path, own_temporary_folder: Path) -> None:
    path = make_wheel(tmp_path, "ext", "2.0", content({"ext/_C.so": lib(wants=("f",))}))
    whole = path.read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // 100)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:]):
            path.write_bytes(damaged)
            try:
                read_wheel(path, [])
            except StackfixError as error:
                assert str(path) in str(error)      # noqa: PT017 - some are read
    assert list(own_temporary_folder.iterdir()) == []
