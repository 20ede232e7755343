"""Symbols of the libraries in a wheel, beside what nm reads; hostile wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stackfix.almanac.extract import Extracted, extract, read_library
from stackfix.almanac.records import ManifestWheel, WantedName
from stackfix.errors import BadInput
from stackfix.inspect.elf import map_file
from tests.almanac_wheels import needs_gcc, shared_object, wheel

BINDINGS = """
__attribute__((weak)) void weak_one(void) {}
__attribute__((visibility("protected"))) void protected_one(void) {}
__attribute__((visibility("hidden"))) void hidden_one(void) {}
static void local_one(void) {}
int thing;
__thread int tls_one;
void *keep = (void *)local_one;
__asm__(".data\\n.globl unique_one\\n.type unique_one, @gnu_unique_object\\n.size unique_one, 4\\nunique_one: .long 1");
"""
VERSIONS = "LIBV_1 { global: old_*; };\nLIBV_2 { global: new_*; local: *; } LIBV_1;\n"


def read(folder: Path, files: Mapping[str, bytes], wanted: Callable[[str], bool] = lambda _: True) -> Extracted:
    row = wheel(folder, "some", "1.0", files, requires=("other>=2", "torch==2.3.1"))
    before = set(folder.iterdir())
    try:
        return extract(folder / row.file, row, wanted)
    finally:
        assert set(folder.iterdir()) == before


def nm(path: Path, *options: str) -> set[str]:
    done = subprocess.run(["nm", "-D", *options, str(path)], check=True, capture_output=True, text=True, timeout=60)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


@needs_gcc
def test_what_others_can_bind_to_is_exported(tmp_path: Path) -> None:
    found = read(tmp_path, {"a/liba.so": shared_object(tmp_path / "made", "liba.so", ["_ZN3c101fEv"], more=BINDINGS)})
    library, = found.tables.libraries
    assert library.exports == ("_ZN3c101fEv", "keep", "protected_one", "thing", "tls_one", "unique_one", "weak_one")
    assert (library.path, library.soname, library.needed, library.wanted) == ("a/liba.so", "liba.so", (), ())
    assert found.tables.requires == ("other>=2", "torch==2.3.1")
    assert set(library.exports) == nm(tmp_path / "made" / "liba.so", "--defined-only")


@needs_gcc
def test_what_a_library_wants_comes_with_its_version(tmp_path: Path) -> None:
    made = tmp_path / "made"
    shared_object(made, "libv.so.1", ["old_one", "new_one", "hidden"], script=VERSIONS)
    user = shared_object(made, "libu.so", wants=["old_one", "new_one", "plain"], needs=["libv.so.1"],
                         more="extern void perhaps(void) __attribute__((weak)); void *p = (void *)perhaps;")
    found = read(tmp_path, {"libv.so.1": (made / "libv.so.1").read_bytes(), "libu.so": user})
    user_tables, owner = found.tables.libraries
    assert owner.exports == ("new_one", "old_one")      # no LIBV_1, which is a symbol too
    assert user_tables.needed == ("libv.so.1",)
    assert user_tables.wanted == (
        WantedName(name="new_one", version="LIBV_2", file="libv.so.1", weak=False),
        WantedName(name="old_one", version="LIBV_1", file="libv.so.1", weak=False),
        WantedName(name="perhaps", version=None, file=None, weak=True),
        WantedName(name="plain", version=None, file=None, weak=False),
    )


@needs_gcc
def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    files = {"x/liba.so": shared_object(tmp_path / "made", "liba.so", ["a"]), "x/broken.so": b"no library",
             "x/notes.txt": b""}
    found = read(tmp_path, files, lambda path: "liba" in path)
    assert [each.path for each in found.tables.libraries] == ["x/liba.so"]
    assert found.left == ("x/broken.so",)


def test_a_whole_table_is_as_nm_has_it() -> None:
    """The largest library that every machine with a compiler has."""
    path = Path(os.path.realpath(next(Path(folder) / "libstdc++.so.6" for folder in (
        "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu") if Path(folder).is_dir())))
    if not path.exists() or not shutil.which("nm"):
        pytest.skip("no libstdc++ or no nm here")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with map_file(descriptor, str(path)) as mapped:
            found = read_library(mapped, "libstdc++.so.6")
    finally:
        os.close(descriptor)
    theirs = {name for name in nm(path, "--defined-only") if not name.startswith(("GLIBCXX_", "CXXABI_"))}
    assert len(theirs) > 1000
    assert set(found.exports) == theirs
    assert {each.name for each in found.wanted} == nm(path, "--undefined-only")


@pytest.mark.parametrize("content", [b"", b"not an ELF file", b"\x7fELF" + bytes(200),
                                     b"\x7fELF\x02\x01\x01" + b"\xff" * 300])
def test_a_library_that_is_none_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput, match=r"^some-1\.0-.*\.whl: x/liba\.so: ") as caught:
        read(tmp_path, {"x/liba.so": content})
    assert "\n" not in caught.value.what()


@needs_gcc
def test_a_library_whose_end_is_gone(tmp_path: Path) -> None:
    content = shared_object(tmp_path / "made", "liba.so", ["a", "b"])
    for size in (100, 500, 5000):
        with pytest.raises(BadInput, match=r"x/liba\.so: "):
            read(tmp_path, {"x/liba.so": content[:size]})


@needs_gcc
def test_false_counts_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    """Every word of the hash table and of the dynamic section set to a huge number, one after the other."""
    content = shared_object(tmp_path / "made", "liba.so", ["a", "b", "c"], wants=["d"])
    told = set[str]()
    for place in range(64, min(len(content), 2200), 4):
        damaged = content[:place] + b"\xff\xff\xff\x7f" + content[place + 4:]
        try:
            found = read_library(damaged, "liba.so")
        except BadInput as error:
            told.add(error.what())
        else:
            assert len(found.exports) < 100
    assert len(told) > 5


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    row = ManifestWheel(package="some", version="1.0", file="some-1.0-py3-none-any.whl", sha256="0" * 64)
    (tmp_path / row.file).write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(BadInput, match=r"is no wheel"):
        extract(tmp_path / row.file, row, lambda _: True)


def test_a_member_that_states_a_false_size(tmp_path: Path) -> None:
    row = wheel(tmp_path, "some", "1.0", {"x/liba.so": b"\x7fELF" + bytes(1 << 20)})
    content = (tmp_path / row.file).read_bytes()
    size = (4 + (1 << 20)).to_bytes(4, "little")
    for stated, reason in ((b"\x10\x00\x00\x00", "cannot be unpacked|file too short|invalid"),
                           (b"\xf0\xff\xff\xff", "cannot be unpacked|MiB")):
        (tmp_path / row.file).write_bytes(content.replace(size, stated))
        with pytest.raises(BadInput, match=reason):
            extract(tmp_path / row.file, row, lambda _: True)


def test_a_wheel_of_very_many_libraries(tmp_path: Path) -> None:
    row = wheel(tmp_path, "some", "1.0", {f"x/lib{number}.so": b"" for number in range(2001)})
    with pytest.raises(BadInput, match="2001 shared objects"):
        extract(tmp_path / row.file, row, lambda _: True)


def test_a_wheel_without_metadata(tmp_path: Path) -> None:
    row = ManifestWheel(package="some", version="1.0", file="some-1.0-py3-none-any.whl", sha256="0" * 64)
    with zipfile.ZipFile(tmp_path / row.file, "w") as archive:
        archive.writestr("x/liba.so", b"")
    with pytest.raises(BadInput, match="METADATA"):
        extract(tmp_path / row.file, row, lambda _: False)
