"""An environment as it would be: links that are not made yet, files set aside, variables, a hook's libraries."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.situation import View
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt, Refused
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.effect import Laid, view_after
from stackfix.plan.effect_files import ChangedFiles
from stackfix.plan.effect_imports import in_order
from stackfix.plan.effect_installed import table_of
from stackfix.plan.effect_records import Effect, Hooked, Linked, Variable
from stackfix.plan.effect_variables import value_after
from stackfix.plan.effect_wheel import WheelFiles
from stackfix.plan.hook import hook_steps
from stackfix.plan.records import Install, WriteFile
from tests.case_worlds import install_torch
from tests.diagnose_world import World, lib
from tests.plan_world import whole
from tests.test_cases_k1 import OWN, TOOLKIT, beside_toolkit


class Ground:
    """Fills plan.effect.Ground for a machine without wheels."""

    def __init__(self, world: World, hooks: tuple[Hooked, ...] = ()) -> None:
        self.root, self._hooks = Root(str(world.folder)), hooks

    def real(self, folder: str) -> str | None:
        return self.root.find(folder)

    def hooks(self) -> tuple[Hooked, ...]:
        return self._hooks

    def files(self, wheel: Install) -> WheelFiles:
        raise AssertionError(wheel)

    def laid_over(self, below: Laid, wheel: Install) -> Laid:
        raise AssertionError(wheel)


# --- files ---


@pytest.fixture
def libraries(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.library("/opt/a/libx.so.1", lib(soname="libx.so.1")).library("/opt/b/liby.so.2", lib())
    return world.link("/opt/way", "a")


def changed(world: World, *, links: dict[str, str], gone: tuple[str, ...] = ()) -> ChangedFiles:
    root = Root(str(world.folder))
    return ChangedFiles(DiskFiles(root), links=links, gone=gone, real=root.find)


@pytest.mark.parametrize("path", ["/opt/b/libx.so.1", "/opt/b/../b/libx.so.1", "/opt/b/./libx.so.1"])
def test_a_link_is_followed_and_the_path_that_was_asked_for_stays(path: str, libraries: World) -> None:
    found = changed(libraries, links={"/opt/b/libx.so.1": "../a/libx.so.1"}).at(path)
    assert isinstance(found, FileAt)
    assert (found.path, found.real_path) == (path, "/opt/a/libx.so.1")


def test_a_link_is_found_through_a_folder_that_is_a_link(libraries: World) -> None:
    files = changed(libraries, links={"/opt/way/new.so": "libx.so.1"})
    assert all(isinstance(files.at(each), FileAt) for each in ("/opt/a/new.so", "/opt/way/new.so"))


def test_a_link_in_a_folder_that_is_not_there_yet(libraries: World) -> None:
    found = changed(libraries, links={"/opt/new/deep/libx.so.1": "../../a/libx.so.1"}).at("/opt/new/deep/libx.so.1")
    assert isinstance(found, FileAt)


def test_links_in_a_circle_are_what_the_kernel_says(libraries: World) -> None:
    found = changed(libraries, links={"/opt/a/one": "two", "/opt/a/two": "one"}).at("/opt/a/one")
    assert isinstance(found, Refused)
    assert found.ends_list


def test_what_is_set_aside_is_gone_and_the_rest_stays(libraries: World) -> None:
    files = changed(libraries, links={}, gone=("/opt/b", "/opt/way/libx.so.1"))
    assert [files.at(each) for each in ("/opt/b/liby.so.2", "/opt/a/libx.so.1", "/opt/way/libx.so.1")] == [None] * 3
    assert files.at("/usr/lib/x86_64-linux-gnu/libc.so.6") is not None


# --- variables ---


@pytest.mark.parametrize(("variable", "before", "after"), [
    (Variable(name="LD_LIBRARY_PATH", first=("/a",)), None, "/a"),
    (Variable(name="LD_LIBRARY_PATH", first=("/a", "/b")), "/c:/b/", "/a:/b:/c"),
    (Variable(name="LD_LIBRARY_PATH", without=("/c",)), "/c/:/b;/c", "/b"),
    (Variable(name="LD_LIBRARY_PATH", without=("/c",)), "/c", None),
    (Variable(name="LD_LIBRARY_PATH", without=("",)), ":/b::/c:", "/b:/c"),
    (Variable(name="LD_PRELOAD", without=("/x.so",)), "/x.so /y.so", "/y.so"),
    (Variable(name="PYTHONNOUSERSITE", value="1"), None, "1"),
])
def test_what_activation_leaves(variable: Variable, before: str | None, after: str | None) -> None:
    assert value_after(variable, before) == after


# --- the hook ---


def codes(view: View) -> list[str]:
    return [each.code for each in diagnose(view).findings if each.severity == "error"]


def test_a_hook_of_another_package_does_not_help(tmp_path: Path) -> None:
    """Who imports torch alone executes nothing of it."""
    world = whole(beside_toolkit(tmp_path, "2.5.1")).environ(LD_LIBRARY_PATH=f"{TOOLKIT}/lib64")
    view, library = world.view(load_libraries()), world.inside(OWN)
    for module, expected in (("torch", []), ("triton", ["SF101"]), ("nvidia", ["SF101"])):
        effect = Effect(hooks=(Hooked(module=module, library=library),))
        assert codes(view_after(view, effect, Ground(world))) == expected, module


def test_a_hook_whose_library_cannot_be_loaded_changes_nothing(tmp_path: Path) -> None:
    world = whole(install_torch(World(tmp_path), "2.5.1"))
    world.write(world.inside("torch/lib/libbroken.so"), b"\x7fELF and no more")
    world.library("torch/lib/libneedy.so", lib(needs=("libnone.so.1",)))
    hooked = tuple(Hooked(module="torch", library=world.inside(f"torch/lib/{name}"))
                   for name in ("libbroken.so", "libneedy.so", "not-there.so"))
    view = world.view(load_libraries())
    after = view_after(view, Effect(hooks=hooked), Ground(world))
    assert codes(after) == codes(view) == []
    [failed] = [each for each in after.openings if each.what.startswith("the preload hook of torch opens")]
    assert failed.may_fail is not None
    assert failed.outcome.failures


def test_a_hook_that_is_there_counts_in_every_effect(tmp_path: Path) -> None:
    world = whole(beside_toolkit(tmp_path, "2.5.1")).environ(LD_LIBRARY_PATH=f"{TOOLKIT}/lib64")
    known = (Hooked(module="torch", library=world.inside(OWN)),)
    assert codes(view_after(world.view(load_libraries()), Effect(), Ground(world, known))) == []


def test_libraries_come_after_those_that_they_need(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name, needs in (("liba.so", ("libb.so", "libd.so")), ("libb.so", ("libc_.so",)), ("libc_.so", ("liba.so",)),
                        ("libd.so", ())):
        world.library(f"/opt/{name}", lib(needs=needs))
    paths = [f"/opt/{name}" for name in ("liba.so", "libb.so", "libc_.so", "libd.so", "none.so")]
    found = [posixpath.basename(each) for each in in_order(paths, DiskFiles(Root(str(tmp_path))))]
    assert found == ["libc_.so", "libb.so", "libd.so", "liba.so"]       # a circle begins somewhere


def test_the_table_of_a_hook_is_read_back() -> None:
    table = {"torch": ["nvidia/a/lib/liba.so", "it's/lib\\b.so"], "jax": ["x.so"]}
    texts = [step.text for step in hook_steps("lib/site", table, "3.11") if isinstance(step, WriteFile)]
    assert {name: list(paths) for text in texts for name, paths in table_of(text).items()} == table


@pytest.mark.parametrize("text", ["", "LIBRARIES = print", "LIBRARIES = [1]", "LIBRARIES = {1: 2}", "(" * 5000, "\0"])
def test_what_is_no_table_is_none(text: str) -> None:
    assert table_of(text) == {}


# --- joining ---


def test_an_effect_is_the_same_however_it_was_joined() -> None:
    one = Effect(links=(Linked(path="/p/a", target="b"),), hooks=(Hooked(module="torch", library="/p/x.so"),))
    two = Effect(links=(Linked(path="/p/c", target="d"),), variables=(Variable(name="LD_LIBRARY_PATH", first=("/p",)),))
    assert one.joined(two) == two.joined(one)
    assert hash(one.joined(two)) == hash(two.joined(one))
    assert one.joined(one) == one
    assert one.joined(two).kinds() == ("preload-hook", "relink", "write-activation")
    assert one.joined(Effect(links=(Linked(path="/p/a", target="e"),))).links == (Linked(path="/p/a", target="e"),)
