"""ELF files by path: links, refusals, and no more open files than the process may have."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from stackfix.diagnose.loader import load
from stackfix.diagnose.records import ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.places import Root, open_root
from stackfix.inspect.records import (
    BadElf,
    ElfObject,
    FileAt,
    LoaderEnvironment,
    LoaderMachine,
    Refused,
    SymbolNames,
    UnreadableElf,
)
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library, Reference


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "lib" / "libq.so.1"
    path.parent.mkdir()
    path.write_bytes(write(Library(path="", soname="libq.so.1", defines=(Definition(name="here"),))))
    return path


def test_links_share_one_identity_and_one_record(library: Path) -> None:
    (library.parent / "soft.so").symlink_to("libq.so.1")
    os.link(library, library.parent / "hard.so")
    files = DiskFiles()
    found = [files.at(str(library.parent / name)) for name in ("libq.so.1", "soft.so", "hard.so")]
    assert all(isinstance(each, FileAt) for each in found)
    assert len({each.identity for each in found if isinstance(each, FileAt)}) == 1
    assert len({id(each.elf) for each in found if isinstance(each, FileAt)}) == 1
    assert [each.real_path for each in found if isinstance(each, FileAt)][:2] == [str(library.resolve())] * 2


def test_absent_looped_and_unusable(library: Path, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "text.so").write_text("INPUT ( libq.so )", encoding="utf-8")
    files = DiskFiles()
    assert files.at(str(tmp_path / "absent.so")) is None
    assert files.at(str(tmp_path / "dangling")) is None
    assert files.at(str(library / "below.so")) is None
    looped = files.at(str(tmp_path / "a"))
    assert isinstance(looped, Refused)
    assert looped.ends_list
    text, folder = files.at(str(tmp_path / "text.so")), files.at(str(tmp_path))
    assert isinstance(text, FileAt)
    assert text.elf == UnreadableElf(path=str(tmp_path / "text.so"), reason="file too short")
    assert isinstance(folder, FileAt)
    assert isinstance(folder.elf, UnreadableElf)


def test_a_path_of_two_thousand_folders(library: Path, tmp_path: Path) -> None:
    """As a RUNPATH may have it; the kernel takes 4096 bytes."""
    files = DiskFiles(Root())
    assert files.at(f"{tmp_path}/{'d/' * 1900}{library.name}") is None
    assert files.at(f"{library.parent}{'/.' * 1900}/{library.name}") is not None


def test_links_stay_inside_a_root(library: Path, tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "libq.so").symlink_to("/lib/libq.so.1")        # the tree's own /lib
    (tmp_path / "opt" / "out.so").symlink_to("../../../../../../etc/passwd")
    files = DiskFiles(open_root(tmp_path))
    found = files.at("/opt/libq.so")
    assert isinstance(found, FileAt)
    assert found.real_path == "/lib/libq.so.1"
    assert isinstance(found.elf, ElfObject)
    assert files.at("/opt/out.so") is None
    assert not files.symbols(found).offered(SymbolNames({"there"}))
    assert list(files.symbols(found).offered(SymbolNames({"here", "there"}))) == ["here"]


def test_unreadable_symbols_are_an_error_about_the_file(library: Path) -> None:
    files = DiskFiles()
    found = files.at(str(library))
    assert isinstance(found, FileAt)
    library.unlink()
    assert files.symbols(found).undefined()         # still mapped
    with pytest.raises(BadElf, match="No such file"):
        DiskFiles().symbols(found)


def test_many_files_stay_below_the_limit_of_open_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    content = write(Library(path="", defines=(Definition(name="here"),)))
    used = len(os.listdir("/proc/self/fd"))     # noqa: PTH208 - a count
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 64, hard))
    try:
        files = DiskFiles(Root())
        for place in range(200):
            path = tmp_path / f"lib{place}.so"
            path.write_bytes(content)
            found = files.at(str(path))
            assert isinstance(found, FileAt)
            assert [each.name for each in files.symbols(found).undefined()] == ["dlopen"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_that_others_hold_are_no_fault_of_a_file(tmp_path: Path) -> None:
    """Half of what may be open is free when the limit is read, and is not later on."""
    content = write(Library(path="", defines=(Definition(name="here"),)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))     # noqa: PTH208 - a count
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 100, hard))
    try:
        files = DiskFiles(Root())
        held += [os.open("/dev/null", os.O_RDONLY) for _ in range(80)]
        for place in range(60):
            path = tmp_path / f"lib{place}.so"
            path.write_bytes(content)
            found = files.at(str(path))
            assert isinstance(found, FileAt)
            assert isinstance(found.elf, ElfObject), found.elf
            assert [each.name for each in files.symbols(found).undefined()] == ["dlopen"]
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_of_more_objects_than_files_may_be_open(tmp_path: Path) -> None:
    """Each library of one scope wants a symbol of the next: all of them are searched, few are mapped at a time."""
    (tmp_path / "bin").mkdir()
    program, count = tmp_path / "bin" / "program", 150
    names = [f"lib{place}.so" for place in range(count)]
    for place, name in enumerate(names):
        (tmp_path / name).write_bytes(write(Library(
            path="", soname=name, defines=(Definition(name=f"s{place}"), Definition(name="dlopen")),
            refers=(Reference(name=f"s{(place + 1) % count}"),))))
    (tmp_path / "ld.so").write_bytes(write(Library(path="", soname="ld.so")))
    program.write_bytes(write(Library(path="", needed=tuple(names), rpath=str(tmp_path)),
                              interpreter=str(tmp_path / "ld.so")))
    machine = LoaderMachine(machine="x86_64", bits=64, system_folders=(), lib="lib64", platform="x86_64")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))     # noqa: PTH208 - a count
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, hard))
    try:
        outcome = load(StartProgram(path=str(program)), ProcessState(),
                       LoaderEnvironment(machine=machine, cwd="/"), DiskFiles())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (outcome.failures, outcome.unjudged) == ((), ())
    found = {each.name: outcome.state.objects[each.provider].elf.soname
             for each in outcome.bindings if each.provider is not None and each.name.startswith("s")}
    assert found == {f"s{place}": name for place, name in enumerate(names)}
