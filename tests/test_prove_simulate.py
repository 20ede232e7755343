"""A planned tree gives the winners that a real loader takes; the system is taken for what the target's glibc has."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.situation import View
from stackfix.prove.simulate import Met
from stackfix.prove.tree import Layout
from stackfix.resolve.records import Target
from tests.diagnose_world import World, lib
from tests.prove_world import TARGET, world_stack

JITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
CUSPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
MODULE = "some/core.cpython-311-x86_64-linux-gnu.so"


def stack_world(world: World, *offers: str) -> World:
    """cuSPARSE, nvJitLink, and a module that needs both."""
    world.wheel("nvidia-nvjitlink-cu12", "12.1.105", {JITLINK: lib(offers=[f"{each}@libnvJitLink.so.12"
                                                                         for each in offers])})
    world.wheel("nvidia-cusparse-cu12", "12.1.0.106", {CUSPARSE: lib(
        needs=("libnvJitLink.so.12", "libc.so.6"), runpath="$ORIGIN/../../nvjitlink/lib",
        wants=("__nvJitLinkAddData_12_1@libnvJitLink.so.12", "memcpy@GLIBC_2.14@libc.so.6"))})
    return world.wheel("some", "1.0", {MODULE: lib(
        needs=("libcusparse.so.12", "libc.so.6"), runpath="$ORIGIN/../nvidia/cusparse/lib",
        wants=("PyModule_Create2", "malloc@GLIBC_2.2.5@libc.so.6"))})


def winners(view: View, what: str) -> list[str]:
    """Real paths of what an opening maps, below the site folder."""
    site = Layout(python="3.11").site
    opening = next(each for each in view.openings if each.what == what)
    objects = opening.outcome.attempted.objects
    return [objects[number].real_path.removeprefix(f"{site}/") for number in opening.outcome.loaded]


def test_each_needed_name_is_found_where_the_wheels_will_lie(tmp_path: Path) -> None:
    view = world_stack(stack_world(World(tmp_path), "__nvJitLinkAddData_12_1")).view()
    assert find_faults(view) == ()
    assert winners(view, MODULE) == [MODULE, CUSPARSE, JITLINK]


def test_a_symbol_that_nobody_has_is_a_fault(tmp_path: Path) -> None:
    view = world_stack(stack_world(World(tmp_path), "__nvJitLinkAddData_12_0")).view()
    fault, = find_faults(view)
    assert (fault.category, fault.name, fault.symbols) == ("symbol", "libnvJitLink.so.12", (
        "__nvJitLinkAddData_12_1",))


@pytest.mark.parametrize(("glibc", "versions"), [("2.17", ("GLIBC_2.28",)), ("2.28", ())])
def test_versions_of_the_c_library_are_those_of_the_target(glibc: str, versions: tuple[str, ...],
                                                           tmp_path: Path) -> None:
    world = World(tmp_path).wheel("some", "1.0", {MODULE: lib(
        needs=("libc.so.6",), wants=("fcntl64@GLIBC_2.28@libc.so.6", "free@GLIBC_2.2.5@libc.so.6"))})
    view = world_stack(world, Target(python="3.11", platform="linux-64", glibc=glibc)).view()
    assert tuple(each for fault in find_faults(view) for each in fault.versions) == versions


@pytest.mark.parametrize(("version", "is_there"), [
    ("GLIBCXX_3.4.25", True), ("GLIBCXX_3.4.29", False), ("CXXABI_1.3.11", True), ("CXXABI_1.3.13", False),
    ("CXXABI_FLOAT128", True),
])
def test_versions_of_the_cxx_library_are_those_beside_that_glibc(version: str, is_there: bool,
                                                                 tmp_path: Path) -> None:
    world = World(tmp_path).wheel("some", "1.0", {MODULE: lib(
        needs=("libstdc++.so.6",), wants=(f"_ZSt4cout@{version}@libstdc++.so.6",))})
    assert (not find_faults(world_stack(world).view())) is is_there


def test_a_library_in_the_way_wins_as_it_does_in_life(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1")
    stack = world_stack(world)
    other = stack.planned[f"{stack.layout.site}/{JITLINK}"]
    view = stack.view(Met(files={"/usr/local/cuda/lib64/libnvJitLink.so.12": other},
                          library_path="/usr/local/cuda/lib64"))
    assert winners(view, MODULE)[-1] == "/usr/local/cuda/lib64/libnvJitLink.so.12"


def test_a_target_of_another_processor_passes_over_what_is_not_its_own(tmp_path: Path) -> None:
    world = stack_world(World(tmp_path), "__nvJitLinkAddData_12_1")
    view = world_stack(world, Target(python="3.11", platform="linux-aarch64", glibc="2.28")).view()
    assert {each.category for each in find_faults(view)} == {"missing"}


def test_no_path_of_a_wheel_leads_out_of_the_tree() -> None:
    layout = Layout(python=TARGET.python)
    assert layout.place("site/a/b.so") == f"{layout.site}/a/b.so"
    assert layout.place("base/lib/b.so") == f"{layout.prefix}/lib/b.so"
    for hostile in ("site/../b.so", "site//b.so", "site/./b.so", "site/", "site", "/b.so", "etc/b.so", "site/a\0.so"):
        assert layout.place(hostile) is None, hostile
