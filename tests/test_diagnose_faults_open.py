"""What a copied prefix says without the system that it belongs to: its own faults, and none of the system's."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Diagnosis
from tests.diagnose_world import INTERPRETER, SYSTEM, World, lib

GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2")
RUNTIMES = ("libstdc++.so.6", "libgcc_s.so.1")
CORE = "numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so"
ROOT = "torch/_C.cpython-311-x86_64-linux-gnu.so"


def copied(folder: Path, *, conda: bool = False) -> World:
    """A prefix below a folder, without anything of its system but the file of its Python."""
    world = World(folder, conda=conda)
    for path in (INTERPRETER, *(f"{SYSTEM}/{name}" for name in ("libc.so.6", *RUNTIMES))):
        world.remove(path)
    return world


def system_libraries(diagnosis: Diagnosis) -> list[str]:
    return [each.reason for each in diagnosis.undecided if each.subject == "system-libraries"]


@pytest.mark.parametrize("conda", [False, True])
def test_what_a_system_gives_is_undecided_once(tmp_path: Path, *, conda: bool) -> None:
    world = copied(tmp_path, conda=conda)
    for number in range(3):
        world.library(f"p{number}.cpython-311-x86_64-linux-gnu.so", lib(
            needs=(*GLIBC, *RUNTIMES, "libtbb.so.12"),
            wants=("malloc@GLIBC_2.2.5@libc.so.6", "free", "PyList_New",
                   "_ZNSt6localeC1Ev@GLIBCXX_3.4@libstdc++.so.6")))
    found = diagnose(world.view())
    assert found.findings == ()
    names = ", ".join(sorted((*GLIBC, *RUNTIMES, "libtbb.so.12")))
    assert system_libraries(found) == [
        f"the tree has no C library: what the system that it belongs to gives as {names} is not known"]


def test_with_a_c_library_the_same_names_are_faults(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("numpy", "1.26.4", {CORE: lib(needs=("libc.so.6", "librt.so.1"))})
    found = diagnose(world.view())
    assert [each.code for each in found.findings] == ["SF401"]
    assert "librt.so.1" in found.findings[0].summary
    assert system_libraries(found) == []


def test_libraries_of_the_stack_and_of_the_prefix_are_still_judged(tmp_path: Path) -> None:
    world = copied(tmp_path).wheel("torch", "2.3.1", {ROOT: lib(needs=("libc.so.6", "libcudnn.so.8", "libgomp.so.1"))})
    world.wheel("numpy", "1.26.4", {CORE: lib(needs=("libm.so.6", "libopenblas64_p-r0-0cf96a72.3.23.dev.so"))})
    found = diagnose(world.view())
    assert sorted((each.code, each.summary.partition(",")[0]) for each in found.findings) == [
        ("SF401", "libcudnn.so.8"), ("SF401", "libopenblas64_p-r0-0cf96a72.3.23.dev.so")]
    assert [each.partition(" gives as ")[2] for each in system_libraries(found)] == [
        "libc.so.6, libgomp.so.1, libm.so.6 is not known"]


def test_copies_of_the_prefix_where_nobody_looks(tmp_path: Path) -> None:
    """A system has a compiler's run time, whatever lies in the prefix; libmine is the prefix's own."""
    world = copied(tmp_path, conda=True)
    world.conda("libgcc", "13.2.0", {"lib/libgcc_s.so.1": lib(), "lib/libmine.so.1": lib()})
    world.wheel("numpy", "1.26.4", {CORE: lib(needs=("libgcc_s.so.1", "libmine.so.1"))})
    found = diagnose(world.view())
    assert [(each.code, "libmine.so.1" in each.summary) for each in found.findings] == [("SF402", True)]
    assert [each.partition(" gives as ")[2] for each in system_libraries(found)] == ["libgcc_s.so.1 is not known"]


def threads(world: World) -> World:
    """An extension whose symbols of libpthread are libc's since glibc 2.34, where libpthread still is."""
    world.library(f"{SYSTEM}/libpthread.so.0", lib(needs=("libc.so.6",), versions=("GLIBC_2.2.5",)))
    return world.wheel("numpy", "1.26.4", {CORE: lib(needs=("libpthread.so.0", "libc.so.6"),
                                                     wants=("pthread_create@GLIBC_2.2.5@libpthread.so.0",))})


def test_a_part_of_glibc_without_the_rest_lacks_nothing(tmp_path: Path) -> None:
    found = diagnose(threads(copied(tmp_path / "copied")).view())
    assert found.findings == ()
    assert "libc.so.6, libpthread.so.0 is not known" in system_libraries(found)[0]
    assert [each.symbols for each in diagnose(threads(World(tmp_path / "whole")).view()).findings] == [
        ("pthread_create",)]


def old(world: World) -> World:
    world.library(f"{SYSTEM}/libm.so.6", lib(offers=("exp@GLIBC_2.29",)))
    return world.wheel("numpy", "1.26.4", {CORE: lib(needs=("libm.so.6",), wants=("fmod@GLIBC_2.38@libm.so.6",))})


def test_a_version_of_glibc_is_not_asked_of_a_part(tmp_path: Path) -> None:
    found = diagnose(old(copied(tmp_path / "copied")).view())
    assert found.findings == ()
    assert "libm.so.6 is not known" in system_libraries(found)[0]
    assert [each.code for each in diagnose(old(World(tmp_path / "whole")).view()).findings] == ["SF904"]


def test_symbols_of_an_interpreter_that_cannot_start_are_not_judged(tmp_path: Path) -> None:
    world = copied(tmp_path).wheel("numpy", "1.26.4", {CORE: lib(wants=("PyExc_RuntimeError", "gone"))})
    found = diagnose(world.view())
    assert found.findings == ()
    reason = next(each.reason for each in found.undecided if each.subject == "imports")
    assert reason == (
        "the environment's interpreter cannot be started here: what it maps at its start is not known, and Python's "
        f"own symbols are not judged; 2 symbols (gone, …) that {CORE.rpartition('/')[2]} needs may be among them")
