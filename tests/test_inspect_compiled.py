"""The compiled files of one object and of an installed package: what they leave to others, in the loader's order."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.abi.records import Compiled
from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.inspect.compiled import nothing_readable, read_file, read_places
from stackfix.inspect.compiled_installed import Installation, read_installation, read_installed
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.environment_records import Note
from stackfix.inspect.fatbin_records import UnreadableFatbin
from stackfix.inspect.places import Root
from stackfix.inspect.plain import from_json, to_json
from tests.diagnose_world import World, lib

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def build(folder: Path, name: str, source: str, *options: str) -> Path:
    """A shared object of a few lines of C."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", str(path), *options],
                   input=source, text=True, check=True, timeout=60)
    return path


def names(compiled: Compiled, path: str) -> list[str]:
    [file] = [each for each in compiled.files if each.path == path]
    return [each.name for each in file.undefined if each.name != "dlopen"]      # tests.diagnose_world writes it in each


# --- one file ---


@needs_gcc
def test_undefined_symbols_come_in_the_order_in_which_the_loader_misses_them(tmp_path: Path) -> None:
    source = "void zulu(void); void alpha(void); extern int mike; int f(void) { zulu(); alpha(); return mike; }"
    path = build(tmp_path, "order.so", source)
    found = read_file("order.so", str(path), Root())
    assert (found.name, found.version, found.origin, found.source) == ("order.so", None, "file", "order.so")
    code = f"import ctypes, os; ctypes.CDLL({str(path)!r}, mode=os.RTLD_NOW)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False).stderr
    assert f"undefined symbol: {found.files[0].undefined[0].name}" in said
    assert sorted(names(found, "order.so")) == ["alpha", "mike", "zulu"]


@needs_gcc
def test_libraries_beside_a_file_supply_what_it_needs(tmp_path: Path) -> None:
    """`_ext.so` needs its own libhelp.so, which needs libdeep.so; libother.so has `other` and nobody needs it."""
    build(tmp_path, "pkg/lib/libdeep.so", "int deep(void) { return 1; }", "-Wl,-soname,libdeep.so")
    build(tmp_path, "pkg/lib/libother.so", "int other(void) { return 1; }", "-Wl,-soname,libother.so")
    build(tmp_path, "pkg/lib/libhelp.so", "int deep(void); int help(void) { return deep(); }",
          "-Wl,-soname,libhelp.so", f"-L{tmp_path}/pkg/lib", "-l:libdeep.so", "-Wl,-rpath,$ORIGIN")
    source = ("int help(void), deep(void), other(void), gone(void);"
              "int f(void) { return help() + deep() + other() + gone(); }")
    path = build(tmp_path, "pkg/_ext.so", source, f"-L{tmp_path}/pkg/lib", "-l:libhelp.so", "-Wl,-rpath,$ORIGIN/lib",
                 "-Wl,--unresolved-symbols=ignore-all")
    found = read_file("_ext.so", str(path), Root())
    assert sorted(names(found, "_ext.so")) == ["gone", "other"]
    assert found.files[0].supplied == 2
    alone = tmp_path / "elsewhere" / "_ext.so"
    alone.parent.mkdir()
    shutil.copy(path, alone)
    assert sorted(names(read_file("_ext.so", str(alone), Root()), "_ext.so")) == ["deep", "gone", "help", "other"]


@needs_gcc
def test_a_library_of_another_package_is_not_taken_for_its_own(tmp_path: Path) -> None:
    build(tmp_path, "torch/lib/libc10.so", "int of_torch(void) { return 1; }", "-Wl,-soname,libc10.so")
    path = build(tmp_path, "ext/_C.so", "int of_torch(void); int f(void) { return of_torch(); }",
                 f"-L{tmp_path}/torch/lib", "-l:libc10.so", "-Wl,-rpath,$ORIGIN/../torch/lib")
    assert names(read_file("_C.so", str(path), Root()), "_C.so") == ["of_torch"]


@needs_gcc
@pytest.mark.parametrize(("options", "text"), [
    (("-c",), "an object file (.o)"),
    (("-static", "-nostdlib", "-Wl,-e,f"), "a program"),
    (("-pie", "-fPIE", "-nostdlib", "-Wl,-e,f"), "a program"),
])
def test_what_the_compiler_makes_beside_shared_objects_is_refused(options: tuple[str, ...], text: str,
                                                                 tmp_path: Path) -> None:
    path = tmp_path / "thing.so"
    subprocess.run(["gcc", *options, "-x", "c", "-", "-o", str(path)], input="int f(void) { return 0; }", text=True,
                   check=True, timeout=60, capture_output=True)
    with pytest.raises(BadInput, match=r"thing\.so: is ") as raised:
        read_file("thing.so", str(path), Root())
    assert text in raised.value.reason


@pytest.mark.parametrize(("content", "text"), [
    (b"", "is empty"), (b"#!/bin/sh\n", "is no ELF file"), (b"!<arch>\n", "archive of object files"),
    (b"PK\x03\x04rest", "zip archive"), (b"/* GNU ld script */ INPUT(-lm)", "text for the linker"),
    (b"\x7fELF", "no ELF file that can be read: file too short"),
    (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\x3e\0" + b"\xff" * 44, "no ELF file that can be read"),
    (b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x01\x00\x3e" + bytes(44), "an object file (.o)"),
])
def test_what_is_no_shared_object_says_what_it_is(content: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    with pytest.raises(BadInput) as raised:
        read_file("x.so", str(path), Root())
    assert text in raised.value.reason
    assert raised.value.hint


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "folder.so").mkdir()
    (tmp_path / "one.so").symlink_to("two.so")
    (tmp_path / "two.so").symlink_to("one.so")
    (tmp_path / "lost.so").symlink_to("nowhere.so")
    said = {}
    for name in ("pipe.so", "folder.so", "one.so", "lost.so", "none.so", "pipe.so/x.so", "a\0b.so"):
        with pytest.raises(BadInput) as raised:
            read_file(name, f"{tmp_path}/{name}", Root())
        said[name] = raised.value.reason
    assert said["pipe.so"] == "is not a plain file"
    assert said["folder.so"] == "is a folder"
    assert "circle" in said["one.so"]
    assert "where nothing is" in said["lost.so"]
    assert said["none.so"] == said["pipe.so/x.so"] == "no such file"
    with pytest.raises(BadInput):
        read_file("/dev/zero", "/dev/zero", Root())


@needs_rights
def test_a_file_that_may_not_be_read_is_unreachable(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(b"\x7fELF")
    path.chmod(0)
    with pytest.raises(Unreachable):
        read_file("x.so", str(path), Root())


def test_a_file_for_another_processor_is_read(tmp_path: Path) -> None:
    world = World(tmp_path).library("/x/libarm.so", lib(wants=("gone",), needs=("libc.so.6",), machine=183))
    found = read_file("libarm.so", "/x/libarm.so", Root(str(world.folder)))
    assert found.files[0].elf.machine == "aarch64"
    assert names(found, "libarm.so") == ["gone"]


@needs_gcc
def test_a_file_of_32_bits_is_read(tmp_path: Path) -> None:
    try:
        path = build(tmp_path, "x.so", "int gone(void); int f(void) { return gone(); }", "-m32")
    except subprocess.CalledProcessError:
        pytest.skip("this gcc makes no files of 32 bits")
    found = read_file("x.so", str(path), Root())
    assert (found.files[0].elf.bits, "gone" in names(found, "x.so")) == (32, True)


@needs_gcc
def test_every_cut_and_every_changed_byte_is_an_answer_or_an_error(tmp_path: Path) -> None:
    path = build(tmp_path, "x.so", "int a(void), b(void); int f(void) { return a() + b(); }")
    whole = path.read_bytes()
    lengths = range(0, len(whole), max(1, len(whole) // 150))
    changed = [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:] for at in range(4, 4096, 17)]
    seen = set[str]()
    for content in (*(whole[:length] for length in lengths), *changed):
        path.write_bytes(content)
        try:
            read_file("x.so", str(path), Root())
        except StackfixError as error:
            seen.add(type(error).__name__)
        else:
            seen.add("read")
    assert seen == {"BadInput", "read"}


# --- a package ---


def installation_of(world: World, notes: list[Note] | None = None) -> Installation:
    root = Root(str(world.folder))
    return read_installation(root, {}, find_environment(root, {}, prefix=world.prefix), [] if notes is None else notes)


def test_a_package_is_found_whatever_the_spelling_and_only_its_own_files_count(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("flash-attn", "2.5.8+cu122", {
        "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so": lib(wants=("_ZN3c104cuda9SetDeviceEi",),
                                                                needs=("libc10_cuda.so",)),
        "flash_attn/__init__.py": ""}, requires=("torch", "einops"))
    world.wheel("other", "1.0", {"other.so": lib()})
    for spelling in ("flash_attn", "Flash.Attn", "flash-attn"):
        found = read_installed(spelling, installation_of(world), [])
        assert (found.name, found.version, found.origin) == ("flash-attn", "2.5.8+cu122", "installed")
    assert [each.path for each in found.files] == ["flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"]
    assert found.requires == ("torch", "einops")
    assert found.tags == ("py3-none-manylinux1_x86_64",)
    assert names(found, found.files[0].path) == ["_ZN3c104cuda9SetDeviceEi"]
    assert from_json(to_json(found), Compiled) == found


def test_files_of_a_package_supply_each_other_only_where_needed_leads(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("pkg", "1.0", {
        "pkg/_one.so": lib(wants=("helped", "unhelped"), needs=("libhelp-1234.so",)),
        "pkg/_two.so": lib(wants=("helped",)),
        "pkg.libs/libhelp-1234.so": lib(offers=("helped",), needs=("libdeep.so.1",)),
        "pkg.libs/libdeep.so.1": lib(offers=("deep",)),
        "pkg.libs/libstray.so": lib(offers=("unhelped",))})
    found = read_installed("pkg", installation_of(world), [])
    assert names(found, "pkg/_one.so") == ["unhelped"]
    assert names(found, "pkg/_two.so") == ["helped"]
    assert {each.path: each.supplied for each in found.files if each.supplied} == {"pkg/_one.so": 1}


def test_of_two_libraries_with_one_name_the_nearer_supplies(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("pkg", "1.0", {
        "pkg/a/_x.so": lib(wants=("f",), needs=("libx.so",)), "pkg/a/libx.so": lib(offers=("g",)),
        "pkg/b/_x.so": lib(wants=("f",), needs=("libx.so",)), "pkg/b/libx.so": lib(offers=("f",))})
    found = read_installed("pkg", installation_of(world), [])
    assert names(found, "pkg/a/_x.so") == ["f"]
    assert names(found, "pkg/b/_x.so") == []


def test_a_renamed_copy_that_keeps_its_soname_is_not_what_needed_names(tmp_path: Path) -> None:
    """As torchvision carries libcudart.e8e8b82a.so.12: who needs libcudart.so.12 gets torch's."""
    world = World(tmp_path)
    world.wheel("pkg", "1.0", {
        "pkg/_C.so": lib(wants=("f",), needs=("libx.so.1",)), "pkg/_D.so": lib(wants=("f",), needs=("libx.e8b8.so.1",)),
        "pkg/_E.so": lib(wants=("g",), needs=("liby.so.1",)),
        "pkg.libs/libx.e8b8.so.1": lib(offers=("f",), soname="libx.so.1"),
        "pkg.libs/liby.so.1.2": lib(offers=("g",), soname="liby.so.1")})
    found = read_installed("pkg", installation_of(world), [])
    assert {each.path: names(found, each.path) for each in found.files if "_" in each.path} == {
        "pkg/_C.so": ["f"], "pkg/_D.so": [], "pkg/_E.so": []}


def test_libraries_that_need_each_other_in_a_circle_are_followed_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("pkg", "1.0", {"pkg/liba.so": lib(wants=("b",), needs=("libb.so", "liba.so"), offers=("a",)),
                               "pkg/libb.so": lib(wants=("a", "c"), needs=("liba.so",), offers=("b",))})
    found = read_installed("pkg", installation_of(world), [])
    assert (names(found, "pkg/liba.so"), names(found, "pkg/libb.so")) == ([], ["c"])


def test_an_unknown_package_is_one_error_with_the_nearest_names(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("flash-attn", "2.5.8")
    with pytest.raises(BadInput, match="flash-atn: is no file here, and no package of that name") as raised:
        read_installed("flash-atn", installation_of(world), [])
    assert raised.value.hint == "did you mean flash-attn?"
    with pytest.raises(BadInput) as raised:
        read_installed("zzzz", installation_of(world), [])
    assert "--prefix" in (raised.value.hint or "")


def test_what_cannot_be_read_of_a_package_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("pkg", "1.0", {"pkg/good.so": lib(), "pkg/text.so": "not ELF", "pkg/cut.so": b"\x7fELF\x02",
                               "pkg/gone.so": lib(), "pkg/empty.so": b""})
    world.remove("pkg/gone.so")
    found = read_installed("pkg", installation_of(world), [])
    assert [each.path for each in found.files] == ["pkg/good.so"]
    assert dict(found.unreadable) == {
        "pkg/text.so": "is no ELF file", "pkg/cut.so": "is no ELF file that can be read: file too short",
        "pkg/gone.so": "no such file", "pkg/empty.so": "is empty"}
    assert list(nothing_readable("pkg", found)) == []


def test_a_package_of_which_nothing_can_be_read_is_an_error_and_one_without_files_is_none(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("bad", "1.0", {"bad/a.so": "x", "bad/b.so": "y"})
    world.wheel("pure", "1.0", {"pure/__init__.py": ""})
    [error] = nothing_readable("bad", read_installed("bad", installation_of(world), []))
    assert error.exit_status == 3
    assert "bad/a.so is no ELF file, and 1 more" in str(error)
    pure = read_installed("pure", installation_of(world), [])
    assert (pure.files, pure.unreadable, list(nothing_readable("pure", pure))) == ((), (), [])


def test_a_record_that_leads_out_of_the_prefix_is_noted_and_not_opened(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("evil", "1.0", {"evil/a.so": lib()})
    record = world.host(f"{world.site}/evil-1.0.dist-info/RECORD")
    record.write_text(record.read_text() + "../../../../../../etc/passwd.so,,\n/lib64/x.so,,\nevil/\udcff.so,,\n",
                      errors="surrogateescape")
    notes: list[Note] = []
    found = read_installed("evil", installation_of(world), notes)
    assert [each.path for each in found.files] == ["evil/a.so"]
    assert [each.reason for each in notes] == ["leaves the prefix: ../../../../../../etc/passwd.so",
                                               "leaves the prefix: /lib64/x.so"]
    assert found.unreadable == (("evil/\udcff.so", "no such file"),)


def test_a_package_without_a_record_is_read_from_the_folders_that_it_names(tmp_path: Path) -> None:
    world = World(tmp_path)
    info = f"{world.site}/old_ext-1.0.egg-info"
    world.write(f"{info}/PKG-INFO", "Name: old-ext\nVersion: 1.0\n").write(f"{info}/top_level.txt", "extension\n../x\n")
    world.library("extension/_C.so", lib(wants=("f",)))
    found = read_installed("old-ext", installation_of(world), [])
    assert [each.path for each in found.files] == ["extension/_C.so"]


def test_an_editable_package_is_read_from_its_source_folder(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("mine", "1.0", {"__editable__.mine-1.0.pth": "/home/me/mine\n"})
    world.library("/home/me/mine/mine/_C.cpython-311-x86_64-linux-gnu.so", lib(wants=("f",)))
    found = read_installed("mine", installation_of(world), [])
    assert [each.path for each in found.files] == ["mine/_C.cpython-311-x86_64-linux-gnu.so"]


def test_a_conda_package_without_a_python_project_is_found_by_its_own_name(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    world.conda("libthing", "3.1", {"lib/libthing.so.3": lib(wants=("f",))})
    found = read_installed("libthing", installation_of(world), [])
    assert (found.version, [each.path for each in found.files]) == ("3.1", ["lib/libthing.so.3"])


def test_one_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    world = World(tmp_path).library("/x/a.so", lib(wants=("f",))).link("/x/b.so", "a.so")
    read, unreadable = read_places({"a.so": "/x/a.so", "b.so": "/x/b.so"}, Root(str(world.folder)))
    assert ([each.path for each in read], unreadable) == (["a.so"], [])


def test_gpu_code_that_cannot_be_told_does_not_spoil_the_rest(tmp_path: Path) -> None:
    """A file whose section headers are stripped."""
    world = World(tmp_path).library("/x/a.so", lib(wants=("f",)))
    path = world.host("/x/a.so")
    content = bytearray(path.read_bytes())
    content[0x28:0x30] = struct.pack("<Q", 0)
    path.write_bytes(bytes(content))
    found = read_file("a.so", "/x/a.so", Root(str(world.folder)))
    assert names(found, "a.so") == ["f"]
    archs = found.files[0].archs
    assert isinstance(archs, UnreadableFatbin)
    assert archs.path == "a.so"
