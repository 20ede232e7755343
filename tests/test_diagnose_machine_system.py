"""libstdc++ and glibc that are too old, and files for another processor: built, and where it can be, really loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.machine_architecture import check_architecture, foreign_tags
from stackfix.diagnose.machine_system import check_system_libraries
from stackfix.inspect.environment_records import Distribution
from tests.diagnose_world import SYSTEM, World, lib
from tests.loader_oracle.graph import Library

GLIBCXX = "libstdc++.so.6"
OLD = ("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.19", "CXXABI_1.3.7")
MODULE = "_youtokentome_cython.cpython-311-x86_64-linux-gnu.so"
AARCH64, I386 = 183, 3


def only(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found


def needs(version: str, file: str = GLIBCXX) -> Library:
    return lib(needs=(file,), wants=(f"a_function@{version}@{file}",))


def oracle_linux_7(folder: Path, *, torch_first: bool) -> World:
    """A conda environment on a system with an old libstdc++; the environment has a newer one."""
    world = World(folder, conda=True)
    world.library(f"{SYSTEM}/{GLIBCXX}", lib(versions=OLD))
    world.conda("libstdcxx-ng", "13.2.0", {"lib/libstdc++.so.6": lib(
        offers=("a_function@GLIBCXX_3.4.20",), versions=(*OLD, "GLIBCXX_3.4.32"))})
    world.wheel("torch", "2.1.0+cu118", {"torch/lib/libtorch_cpu.so": lib(needs=(GLIBCXX,), runpath="$ORIGIN")})
    world.wheel("youtokentome", "1.0.6", {MODULE: needs("GLIBCXX_3.4.20")})
    opened = [("torch/lib/libtorch_cpu.so", "torch", "import torch"),
              (f"{world.site}/{MODULE}", "youtokentome", "import youtokentome")]
    for name, project, what in opened if torch_first else reversed(opened):
        world.opens(name, project=project, what=what)
    return world


def test_torch_maps_the_systems_libstdcxx_first(tmp_path: Path) -> None:
    world = oracle_linux_7(tmp_path, torch_first=True)
    finding = only(check_system_libraries(world.view()))
    assert (finding.code, finding.severity, finding.level) == ("SF903", "error", "environment")
    assert finding.winner == finding.culprit.path == f"{SYSTEM}/{GLIBCXX}"
    assert finding.loser == f"{world.prefix}/lib/{GLIBCXX}"
    assert finding.requester is not None
    assert finding.requester.package == "youtokentome 1.0.6"
    line = f"{SYSTEM}/{GLIBCXX}: version `GLIBCXX_3.4.20' not found (required by {world.site}/{MODULE})"
    assert finding.error == line
    assert "libtorch_cpu.so" in finding.why
    assert "import torch" in finding.why
    assert any("GLIBCXX_3.4.19" in each for each in finding.evidence)
    assert any(f"LD_LIBRARY_PATH={world.prefix}/lib/newer" in each for each in finding.cure)
    assert finding.repairable


def test_the_other_order_of_imports_is_nothing(tmp_path: Path) -> None:
    assert list(check_system_libraries(oracle_linux_7(tmp_path, torch_first=False).view())) == []


def test_a_newer_libstdcxx_without_its_link_is_told_as_a_lost_link(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    world.library(f"{SYSTEM}/{GLIBCXX}", lib(versions=OLD))
    world.conda("libstdcxx-ng", "14.2.0", {"lib/libstdc++.so.6.0.34": lib(soname=GLIBCXX, versions=(
        *OLD, "GLIBCXX_3.4.30"))})
    world.wheel("torch", "2.7.0", {"torch/lib/libtorch_python.so": needs("GLIBCXX_3.4.30")})
    world.opens("torch/lib/libtorch_python.so", project="torch")
    assert list(check_system_libraries(world.view())) == []


def test_an_old_libstdcxx_on_the_path(tmp_path: Path) -> None:
    """What Matlab and other large programs put there."""
    world = World(tmp_path).environ(LD_LIBRARY_PATH="/opt/matlab/sys/os/glnxa64")
    world.library(f"/opt/matlab/sys/os/glnxa64/{GLIBCXX}", lib(versions=OLD))
    world.wheel("mine", "1.0", {"mine/_x.so": needs("GLIBCXX_3.4.30")})
    world.library(f"{SYSTEM}/{GLIBCXX}", lib(offers=("a_function@GLIBCXX_3.4.30",), versions=OLD))
    finding = only(check_system_libraries(world.opens("mine/_x.so", project="mine").view()))
    assert finding.culprit.variable == "LD_LIBRARY_PATH"
    assert finding.loser == f"{SYSTEM}/{GLIBCXX}"
    assert finding.cure[0] == "unset LD_LIBRARY_PATH"
    assert (finding.error or "?").removeprefix("") in world.really()


def test_no_newer_libstdcxx_anywhere(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": needs("GLIBCXX_3.4.99")})
    finding = only(check_system_libraries(world.opens("mine/_x.so", project="mine", phase="module").view()))
    assert (finding.severity, finding.loser, finding.repairable) == ("error", None, False)


def test_a_wheel_for_a_newer_glibc(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": needs("GLIBC_2.38", "libc.so.6")})
    finding = only(check_system_libraries(world.opens("mine/_x.so", project="mine").view()))
    assert (finding.code, finding.severity, finding.culprit.package) == ("SF904", "error", "mine 1.0")
    assert finding.summary.startswith("glibc 2.36 is too old for _x.so")
    assert "GLIBC_2.38' not found" in world.really()
    assert any(line.startswith("tags of mine 1.0: ") for line in finding.evidence)


def test_what_may_fail_is_a_note(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": needs("GLIBC_2.38", "libc.so.6")})
    world.opens("mine/_x.so", project="mine", may_fail="mine has a slower way")
    assert only(check_system_libraries(world.view())).severity == "note"


# --- SF905 ---

def test_a_library_of_another_processor_in_the_environment(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {
        "mine/_x.so": lib(needs=("libmine.so.1",), runpath="$ORIGIN/libs"),
        "mine/libs/libmine.so.1": lib(machine=AARCH64)})
    finding = only(check_architecture(world.opens("mine/_x.so", project="mine").view()))
    assert (finding.code, finding.severity) == ("SF905", "error")
    assert (finding.culprit.path, finding.culprit.package) == (f"{world.site}/mine/libs/libmine.so.1", "mine 1.0")
    assert finding.summary == (f"mine 1.0 is not for this machine: {world.site}/mine/libs/libmine.so.1 is for aarch64")
    assert finding.error == ("libmine.so.1: cannot open shared object file: No such file or directory")
    assert finding.error.removeprefix("") in world.really()


def test_a_module_of_another_processor(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.so": lib(machine=AARCH64)})
    finding = only(check_architecture(world.opens("mine/_x.so", project="mine", phase="module").view()))
    assert (finding.severity, finding.culprit.path) == ("error", f"{world.site}/mine/_x.so")


def test_a_module_with_another_platform_in_its_name(tmp_path: Path) -> None:
    """Python looks for the suffixes of its own platform only."""
    name = "mine/_x.cpython-311-aarch64-linux-gnu.so"
    world = World(tmp_path).wheel("mine", "1.0", {name: lib(machine=AARCH64)})
    finding = only(check_architecture(world.opens(name, project="mine", phase="module").view()))
    assert finding.error == "ModuleNotFoundError: No module named 'mine._x'"


def test_one_file_under_two_names_is_one_finding(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("mine", "1.0", {"mine/libs/libmine.so.1": lib(bits=32, machine=I386)})
    world.wheel("other", "2.0", {"other/_y.so": lib(needs=("libmine.so.1",), runpath="$ORIGIN/../mine/libs")})
    world.opens("other/_y.so", project="other").opens("mine/libs/libmine.so.1", project="mine")
    finding = only(check_architecture(world.view()))
    assert (finding.culprit.path, finding.culprit.package) == (f"{world.site}/mine/libs/libmine.so.1", "mine 1.0")
    assert finding.requester is not None
    assert finding.requester.package == "other 2.0"


@pytest.mark.parametrize(("machine", "bits", "says"), [(AARCH64, 64, "aarch64"), (I386, 32, "32-bit")])
def test_an_extension_that_is_to_be_judged(tmp_path: Path, machine: int, bits: int, says: str) -> None:
    view = World(tmp_path).library("/build/_mine.so", lib(machine=machine, bits=bits)).opens("/build/_mine.so").view()
    view = replace(view, situation=replace(view.situation, extra=("/build/_mine.so",)))
    finding = only(each for each in diagnose(view).findings if each.severity != "note")
    assert (finding.code, finding.severity, finding.culprit.path) == ("SF905", "error", "/build/_mine.so")
    assert says in finding.summary
    assert finding.cure == ("build _mine.so for x86_64",)


def test_a_debugger_brings_a_file_for_each_machine(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("debugpy", "1.8", {"debugpy/attach_linux_x86.so": lib(machine=I386, bits=32),
                                                     "debugpy/attach_linux_amd64.so": lib()})
    for name in ("debugpy/attach_linux_x86.so", "debugpy/attach_linux_amd64.so"):
        world.opens(name, project="debugpy", phase="module")
    assert [each.severity for each in check_architecture(world.view())] == ["note"]


def test_a_foreign_file_outside_is_passed_over(tmp_path: Path) -> None:
    """lib32 folders on the path are common, and the search goes on behind them."""
    world = World(tmp_path).environ(LD_LIBRARY_PATH="/usr/lib32")
    world.library("/usr/lib32/libmine.so.1", lib(bits=32, machine=I386))
    world.library(f"{SYSTEM}/libmine.so.1", lib())
    world.wheel("mine", "1.0", {"mine/_x.so": lib(needs=("libmine.so.1",))})
    assert list(check_architecture(world.opens("mine/_x.so", project="mine").view())) == []


def test_a_wheel_for_another_platform(tmp_path: Path) -> None:
    """`pip install --platform manylinux2014_aarch64 --target`."""
    world = World(tmp_path).wheel("mine", "1.0", {"mine/_x.cpython-311-aarch64-linux-gnu.so": lib(machine=AARCH64)})
    world.write(f"{world.site}/mine-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_17_aarch64\nTag: cp311-cp311-manylinux2014_aarch64\n")
    finding = only(check_architecture(world.view()))
    assert (finding.severity, finding.culprit.package) == ("error", "mine 1.0")
    assert "manylinux2014_aarch64" in finding.summary
    assert finding.cure == ("/venv/bin/python -m pip install --force-reinstall --no-deps mine==1.0",)


@pytest.mark.parametrize(("tags", "foreign"), [
    (("cp311-cp311-manylinux_2_28_x86_64",), False), (("py3-none-any",), False), ((), False),
    (("py3-none-manylinux1_x86_64",), False), (("cp311-cp311-linux_aarch64",), True),
    (("cp311-cp311-win_amd64",), True), (("cp311-cp311-macosx_11_0_arm64",), True),
    (("cp311-cp311-macosx_10_9_universal2", "cp311-cp311-manylinux2010_x86_64"), False),
    (("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64",), False), (("cp311-cp311-solaris_x",), False),
    (("cp311-cp311-musllinux_1_2_x86_64",), False), (("cp311-cp311-musllinux_1_2_i686",), True),
])
def test_platforms_of_wheels(tags: tuple[str, ...], foreign: bool) -> None:
    wheel = Distribution(
        name="x", spelling="x", version="1", metadata="/x", site="/", kind="dist-info", requires=(), extras=(),
        requires_python=None, tags=tags, build=None, generator=None, installer=None, requested=False, origin=None,
        record=True, manager="pip", conda_package=None)
    assert bool(foreign_tags(wheel, "x86_64")) is foreign
