"""A wheel before it is installed: what is foretold is what an installer then makes; and wheels that mean harm."""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from stackfix.diagnose.loader import load
from stackfix.diagnose.records import LoadOutcome, OpenLibrary, ProcessState, StartProgram
from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.environment import inspect_installation
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.environment_records import Environment, Owner
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.places import MIB, Root
from stackfix.inspect.records import FileAt, Files, LoaderEnvironment, UnreadableElf
from stackfix.inspect.wheel_environment import ClaimsOver, with_wheel
from stackfix.inspect.wheel_file import MAX_DEPTH, WheelOverlay, open_wheel
from tests.inspect_trees import SITE, look, make_venv, make_wheel, pip_install, record_hash, uv_install, write

needs_gcc = pytest.mark.skipif(
    not shutil.which("gcc") or platform.libc_ver()[0] != "glibc" or platform.machine() not in {"x86_64", "aarch64"},
    reason="needs gcc and glibc")
INFO = "ext-2.0.dist-info"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """Small libraries by name: two dep.so, of which one lacks a symbol, and an extension that needs it."""
    folder = tmp_path_factory.mktemp("compiled")
    sources = {
        "old": ("int dep_one(void) { return 1; }", ["-Wl,-soname,libdep.so.1"]),
        "new": ("int dep_one(void) { return 1; } int dep_two(void) { return 2; }", ["-Wl,-soname,libdep.so.1"]),
        "ext": ("int dep_two(void); int PyInit__C(void) { return dep_two(); }",
                ["-L.", "-l:libdep.so.1", "-Wl,-rpath,$ORIGIN/../nvidia/dep/lib"]),
        "deep": ("int dep_one(void); int help(void) { return dep_one(); }",
                 ["-L.", "-l:libdep.so.1", "-Wl,-rpath,$ORIGIN/../../nvidia/dep/lib"]),
        "plain": ("int plain(void) { return 3; }", []),
    }
    for name, (source, options) in sources.items():
        (folder / f"{name}.c").write_text(source, encoding="utf-8")
        subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--enable-new-dtags", "-o", f"{name}.so",
                        f"{name}.c", *options], cwd=folder, check=True, timeout=60)
        if name == "new":
            shutil.copy(folder / "new.so", folder / "libdep.so.1")
    return {name: (folder / f"{name}.so").read_bytes() for name in sources}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return make_venv(tmp_path / "venv")


class Foretold:
    """An environment with a wheel laid over it."""

    def __init__(self, prefix: Path, wheel: WheelOverlay) -> None:
        self.wheel = wheel
        before, installed = inspect_installation(Root(), {}, find_environment(Root(), {}, prefix=str(prefix)))
        self.claims = ClaimsOver(wheel, installed)
        self.environment = with_wheel(before, wheel, self.claims)


def laid(prefix: Path, path: Path, site: str | None = None) -> Iterator[Foretold]:
    with open_wheel(path, environment=look(prefix), root=Root(), below=DiskFiles(), site=site) as wheel:
        yield Foretold(prefix, wheel)


def outcomes(environment: Environment, files: Files) -> dict[str, tuple[str | None, frozenset[str]]]:
    """What the loader would make of every shared object of the environment: the fault, and the files mapped."""
    machine = LoaderEnvironment(machine=read_loader(Root(), machine=platform.machine()), cwd="/")
    started = load(StartProgram(path=sys.executable), ProcessState(), machine, files)
    assert started.failure is None

    def told(outcome: LoadOutcome) -> tuple[str | None, frozenset[str]]:
        new = outcome.attempted.objects[len(started.state.objects):]
        return str(outcome.failure) if outcome.failure else None, frozenset(each.real_path for each in new)

    return {each.path: told(load(OpenLibrary(name=each.path), started.state, machine, files))
            for each in environment.shared_objects}


def without_installer(environment: Environment) -> Environment:
    """Without what only an installation leaves: who made it, and the notes on the wheel."""
    plain = tuple(replace(each, installer=None, requested=False, origin=None) for each in environment.distributions)
    return replace(environment, distributions=plain, notes=())


@needs_gcc
@pytest.mark.parametrize(("dep", "install"), [("old", pip_install), ("new", uv_install)])
def test_what_is_foretold_is_what_an_installer_makes(
    tmp_path: Path, venv: Path, compiled: Mapping[str, bytes], dep: str, install: Callable[[Path, Path], None],
) -> None:
    install(venv, make_wheel(tmp_path, "nvidia_dep", "1.0", {
        "nvidia/__init__.py": b"", "nvidia/dep/lib/libdep.so.1": compiled[dep], "shared.txt": b"one"}))
    install(venv, make_wheel(tmp_path, "ext", "1.0", {
        "ext/_C.abi3.so": compiled["plain"], "ext/libgone.so": compiled["plain"], "nvidia/__init__.py": b""}))
    path = make_wheel(tmp_path, "ext", "2.0", {
        "ext/_C.abi3.so": compiled["ext"], "ext/lib/libdeep.so": compiled["deep"], "nvidia/__init__.py": b"",
        "ext/libbad.so": b"no ELF file", "shared.txt": b"two", "ext-2.0.data/data/lib/libdata.so": compiled["plain"],
        "ext-2.0.data/platlib/ext/libplat.so.3": compiled["plain"], "ext-2.0.data/scripts/tool.so": b"x",
    }, requires=("nvidia-dep",))
    before = look(venv)
    for foretold in laid(venv, path):
        wheel, expected = foretold.wheel, without_installer(foretold.environment)
        loads = outcomes(expected, wheel.files)
        assert [each.version for each in wheel.replaces] == ["1.0"]
        assert wheel.notes == ()
        assert look(venv) == before             # nothing was written
    install(venv, path)
    real = look(venv)
    for field in fields(Environment):
        assert getattr(without_installer(real), field.name) == getattr(expected, field.name), field.name
    assert outcomes(real, DiskFiles()) == loads
    failure, mapped = loads[f"{venv}/{SITE}/ext/_C.abi3.so"]
    assert (failure is None) == (dep == "new")
    assert f"{venv}/{SITE}/nvidia/dep/lib/libdep.so.1" in mapped
    assert [each.path for each in expected.shared_files if not each.same] == [f"{venv}/{SITE}/shared.txt"]


@needs_gcc
def test_the_wheel_of_a_library_is_seen_by_what_is_installed(tmp_path: Path, venv: Path,
                                                            compiled: Mapping[str, bytes]) -> None:
    """An upgrade of a library is judged with its consumers; links in the environment are followed."""
    (tmp_path / "elsewhere").mkdir()
    (venv / SITE / "nvidia").symlink_to(tmp_path / "elsewhere")
    pip_install(venv, make_wheel(tmp_path, "nvidia_dep", "1.0", {"nvidia/dep/lib/libdep.so.1": compiled["old"]}))
    pip_install(venv, make_wheel(tmp_path, "ext", "1.0", {"ext/_C.abi3.so": compiled["ext"]}))
    path = make_wheel(tmp_path, "nvidia_dep", "2.0", {"nvidia/dep/lib/libdep.so.1": compiled["new"],
                                                      "nvidia/more/lib/libdeep.so": compiled["deep"]})
    extension = f"{venv}/{SITE}/ext/_C.abi3.so"
    assert "dep_two" in str(outcomes(look(venv), DiskFiles())[extension][0])
    for foretold in laid(venv, path):
        found = outcomes(foretold.environment, foretold.wheel.files)
    pip_install(venv, path)
    assert outcomes(look(venv), DiskFiles()) == found
    assert found[extension] == (None, frozenset({extension, f"{tmp_path}/elsewhere/dep/lib/libdep.so.1"}))


def test_folders_may_lie_deep_in_each_other(tmp_path: Path, venv: Path) -> None:
    deep, deeper = (f"ext/{'d/' * number}x.so" for number in (MAX_DEPTH - 1, 1200))
    path = make_wheel(tmp_path, "ext", "2.0", {deep: b"\x7fELF", deeper: b"\x7fELF"})
    for foretold in laid(venv, path):
        assert isinstance(foretold.wheel.files.at(f"{venv}/{SITE}/{deep}"), FileAt)
        assert foretold.wheel.files.at(f"{venv}/{SITE}/{deeper}") is None
        assert [each.reason[:100] for each in foretold.wheel.notes] == [
            f"more than {MAX_DEPTH} folders deep: {deeper}"[:100]]


def test_what_it_says_of_itself(tmp_path: Path, venv: Path) -> None:
    path = make_wheel(tmp_path, "Some_Ext", "2.0+cu121", {"ext/x.py": b""}, requires=("torch==2.3.1",),
                      tag="cp311-cp311-manylinux1_x86_64.manylinux_2_5_x86_64")
    for foretold in laid(venv, path):
        wheel = foretold.wheel
    found = wheel.distribution
    assert (found.name, found.spelling, found.version, found.requires) == (
        "some-ext", "Some_Ext", "2.0+cu121", ("torch==2.3.1",))
    assert (found.site, found.metadata) == (f"{venv}/{SITE}", f"{venv}/{SITE}/Some_Ext-2.0+cu121.dist-info")
    assert wheel.file_tags == ("cp311-cp311-manylinux1_x86_64", "cp311-cp311-manylinux_2_5_x86_64")
    assert (wheel.shared_objects, wheel.notes, wheel.replaces) == ((), (), ())


def test_its_files_can_be_read_and_then_are_gone(tmp_path: Path, venv: Path) -> None:
    path = make_wheel(tmp_path, "ext", "2.0", {"ext/libx.so": b"\x7fELF"})
    for foretold in laid(venv, path):
        wheel, place = foretold.wheel, f"{venv}/{SITE}/ext/libx.so"
        assert wheel.root.read_bytes(place, 10) == b"\x7fELF"
        found = wheel.files.at(f"{venv}/{SITE}/ext/../ext/./libx.so")
        assert isinstance(found, FileAt)
        assert (found.path, found.real_path) == (f"{venv}/{SITE}/ext/../ext/./libx.so", place)
        assert isinstance(found.elf, UnreadableElf)
        assert wheel.files.at(f"{venv}/{SITE}/ext/none/libx.so") is None
        assert foretold.claims.owners(place) == (Owner(manager="pip", name="ext", version="2.0"),)
        folder = Path(wheel.root.folder)
        assert folder.is_dir()
    assert not folder.exists()


def members(**changes: bytes) -> dict[str, bytes]:
    """Members of a small wheel, its RECORD right."""
    content = {"ext/libx.so": b"library", "ext/other.txt": b"text",
               f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: ext\nVersion: 2.0\n",
               f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"}
    rows = "".join(f"{name},{record_hash(body)},{len(body)}\n" for name, body in content.items())
    return content | {f"{INFO}/RECORD": f"{rows}{INFO}/RECORD,,\n".encode()} | changes


def archive(folder: Path, *content: tuple[str, bytes], name: str = "ext-2.0-py3-none-any.whl", method: int = 8) -> Path:
    with zipfile.ZipFile(folder / name, "w", method) as file:
        for member, body in content:
            file.writestr(zipfile.ZipInfo(member), body, compress_type=method)
    return folder / name


def with_record(**changes: str) -> dict[str, bytes]:
    rows = members()[f"{INFO}/RECORD"].decode()
    for old, new in changes.items():
        rows = rows.replace(old, new)
    return members() | {f"{INFO}/RECORD": rows.encode()}


HASH = record_hash(b"library")
FAULTS: dict[str, tuple[list[tuple[str, bytes]], str]] = {
    "escapes": ([*members().items(), ("../../evil.so", b"x"), ("/etc/evil.so", b"x"), ("a/../../evil.so", b"x")],
                "leads out of the folder"),
    "no file name": ([*members().items(), ("ext/" + "x" * 300 + ".so", b"x")], "is no file name"),
    "twice": ([("ext/libx.so", b"other"), *members().items()], "more than once in the archive"),
    "another hash": ([*(members() | {"ext/libx.so": b"LIBRARY"}).items()], "of another hash than RECORD says"),
    "another size": ([*(members() | {"ext/other.txt": b"longer text"}).items()], "of another size than RECORD says"),
    "unlisted": ([*members().items(), ("ext/more.py", b"")], "in the archive, but not in RECORD"),
    "listed only": ([each for each in members().items() if each[0] != "ext/other.txt"],
                    "in RECORD, but not in the archive"),
    "file and folder": ([*members().items(), ("ext/libx.so/liby.so", b"x")], "without a place beside the others"),
    "no RECORD": ([each for each in members().items() if not each[0].endswith("RECORD")], "missing"),
    "no rows": ([*(members() | {f"{INFO}/RECORD": b"\xff\n\0\n,,\n"}).items()], "no rows"),
    "endless RECORD": ([*(members() | {f"{INFO}/RECORD": b"x,,\n" * 200_001}).items()], "cannot be used"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_fault_of_a_member_is_a_note(tmp_path: Path, venv: Path, name: str) -> None:
    content, expected = FAULTS[name]
    around = {each for each in tmp_path.rglob("*") if "venv" not in each.parts}
    for foretold in laid(venv, archive(tmp_path, *content)):
        wheel = foretold.wheel
        inside = sorted(str(each.relative_to(wheel.root.folder)) for each in Path(wheel.root.folder).rglob("*.so"))
        assert inside == [f"{str(venv)[1:]}/{SITE}/ext/libx.so"]
    assert any(expected in each.reason for each in wheel.notes), wheel.notes
    assert [each.path for each in wheel.shared_objects] == [f"{venv}/{SITE}/ext/libx.so"]
    assert {each for each in tmp_path.rglob("*") if "venv" not in each.parts} - around == {
        tmp_path / "ext-2.0-py3-none-any.whl"}


def test_a_sound_wheel_has_no_note_and_deep_reads_the_rest(tmp_path: Path, venv: Path) -> None:
    changed = members() | {"ext/other.txt": b"TEXT"}
    for content, deep, count in ((members(), True, 0), (changed, False, 0), (changed, True, 1)):
        path = archive(tmp_path, *content.items())
        with open_wheel(path, environment=look(venv), root=Root(), below=DiskFiles(), deep=deep) as wheel:
            assert len(wheel.notes) == count


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_of_other_compressions_are_left_packed(tmp_path: Path, venv: Path, method: int) -> None:
    path = tmp_path / "ext-2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for member, body in members().items():
            file.writestr(member, body, compress_type=method if member.endswith(".so") else None)
    for foretold in laid(venv, path):
        assert foretold.wheel.shared_objects == ()
        assert "compressed in a way" in foretold.wheel.notes[0].reason


def damaged(path: Path, change: Callable[[bytearray], None]) -> Path:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    return path


def central(content: bytearray, name: bytes) -> int:
    """Where a member's entry in the central directory begins."""
    return content.rindex(name) - 46


def flip_content(content: bytearray) -> None:
    content[content.index(b"library")] ^= 1


def encrypt(content: bytearray) -> None:
    content[central(content, b"ext/libx.so") + 8] |= 1


def cut_short(content: bytearray) -> None:
    place = central(content, b"ext/libx.so")
    struct.pack_into("<II", content, place + 20, 1 << 20, 1 << 20)


@pytest.mark.parametrize("change", [flip_content, encrypt, cut_short])
def test_a_member_that_cannot_be_unpacked_is_a_note(tmp_path: Path, venv: Path,
                                                    change: Callable[[bytearray], None]) -> None:
    path = damaged(archive(tmp_path, *members().items(), method=zipfile.ZIP_STORED), change)
    for foretold in laid(venv, path):
        assert foretold.wheel.shared_objects == ()
        assert any("cannot be unpacked" in each.reason for each in foretold.wheel.notes)
        assert list(Path(foretold.wheel.root.folder).rglob("*.so")) == []


def bomb(content: bytearray) -> None:
    """States 4 GiB for each of many members."""
    place = 0
    while (place := content.find(b"PK\1\2", place + 1)) > 0:
        if content[place + 46:].startswith(b"ext/bomb"):
            struct.pack_into("<I", content, place + 24, 0xFFFFFFF0)


def huge_list(content: bytearray) -> None:
    """Has a list of members of 40 MiB."""
    size, start = struct.unpack_from("<II", content, len(content) - 10)
    struct.pack_into("<II", content, len(content) - 10, size + (40 << 20), start)
    content[-22:-22] = bytes(40 << 20)


def no_local_headers(content: bytearray) -> None:
    content[:] = content.replace(b"PK\3\4", b"PK\0\0")


def whole(**changes: bytes) -> list[tuple[str, bytes]]:
    return [*members(**changes).items()]


@pytest.mark.parametrize(("content", "change", "reason"), [
    ([], None, "no NAME-VERSION.dist-info/METADATA"),
    ([*whole(), ("more-1.0.dist-info/METADATA", b"")], None, "several projects"),
    (whole(**{f"{INFO}/METADATA": b"Version: 2.0\n"}), None, "no usable name and version"),
    ([*whole(), *((f"ext/bomb{place}.so", b"x") for place in range(9))], bomb, "GiB of shared objects"),
    (whole(), lambda content: content.__delitem__(slice(-30, None)), "is no wheel"),
    (whole(), lambda content: content.__delitem__(slice(0, None)), "is no wheel"),
    (whole(), no_local_headers, "is no wheel"),
    (whole(), huge_list, "its list of members has"),
], ids=["empty-zip", "two", "nameless", "bomb", "cut", "empty", "local-header", "huge-list"])
def test_what_is_no_wheel_is_one_clear_error(tmp_path: Path, venv: Path, content: list[tuple[str, bytes]],
                                             change: Callable[[bytearray], None] | None, reason: str) -> None:
    path = archive(tmp_path, *content)
    if change is not None:
        damaged(path, change)
    with pytest.raises(BadInput, match=reason) as caught:
        next(laid(venv, path))
    assert str(path) in caught.value.what()


def test_places_that_hold_no_wheel(tmp_path: Path, venv: Path) -> None:
    os.mkfifo(tmp_path / "fifo.whl")
    for name, reason in (("nowhere.whl", "no such file"), ("venv", "is a folder"), ("fifo.whl", "not a plain file")):
        with pytest.raises(BadInput, match=reason):
            next(laid(venv, tmp_path / name))
    path = archive(tmp_path, *members().items())
    with pytest.raises(BadInput, match="no folder of the environment"):
        next(laid(venv, path, "/nowhere"))


def test_a_name_that_does_not_fit_is_a_note(tmp_path: Path, venv: Path) -> None:
    for name, reason in (("flash.whl", "no name of a wheel"), ("ext-2.0.0-py3-none-any.whl", ""),
                         ("other-2.0-py3-none-any.whl", "METADATA calls it ext 2.0"),
                         ("ext-2.1-py3-none-any.whl", "METADATA calls it ext 2.0")):
        for foretold in laid(venv, archive(tmp_path, *members().items(), name=name)):
            assert [reason in each.reason for each in foretold.wheel.notes] == ([True] if reason else [])


def test_a_full_disk_is_told_before_anything_is_unpacked(tmp_path: Path, venv: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(Unreachable, match="are free") as caught:
        next(laid(venv, archive(tmp_path, *members().items())))
    assert "TMPDIR" in str(caught.value.next_step())
    assert list(tmp_path.glob("stackfix-wheel-*")) == []


def test_a_large_member_is_never_in_memory(tmp_path: Path, venv: Path) -> None:
    content = bytes(64 * MIB)
    path = make_wheel(tmp_path, "ext", "2.0", {"ext/libx.so": content})
    environment, files = look(venv), DiskFiles()
    tracemalloc.start()
    try:
        with open_wheel(path, environment=environment, root=Root(), below=files) as wheel:
            assert wheel.shared_objects[0].size == len(content)
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def test_damage_anywhere_is_a_wheel_or_an_error(tmp_path: Path, venv: Path) -> None:
    """Bytes of a small wheel at two values: an overlay or one of our errors."""
    path = archive(tmp_path, *members().items())
    content = path.read_bytes()
    environment, files = look(venv), DiskFiles()
    good = 0
    for place in range(0, len(content), 7):
        for value in (0, 0xFF):
            path.write_bytes(content[:place] + bytes([value]) + content[place + 1:])
            try:
                with open_wheel(path, environment=environment, root=Root(), below=files) as wheel:
                    good += len(wheel.shared_objects)
            except StackfixError:
                continue
    assert good


def test_a_wheel_over_a_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, "venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n")
    write(tree, "usr/lib/python3.11/os.py")
    write(tree, "venv/lib/python3.11/site-packages/ext/libold.so", b"x")
    root = Root(str(tree))
    path = archive(tmp_path, *members().items())
    with open_wheel(path, environment=look("/venv", root=root), root=root, below=DiskFiles(root)) as wheel:
        assert wheel.shared_objects[0].path == "/venv/lib/python3.11/site-packages/ext/libx.so"
        for name in ("libx.so", "libold.so"):
            assert isinstance(wheel.files.at(f"/venv/lib/python3.11/site-packages/ext/{name}"), FileAt)
