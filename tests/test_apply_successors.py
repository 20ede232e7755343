"""Another release was installed over that of a repair: its undo says so, and never leaves two of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.errors import ReplacedSince
from stackfix.apply.pending import pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import forget, undo
from tests.apply_faults.world import (
    NEW,
    SITE,
    World,
    fake_installer,
    make_world,
    memory_folder,
    record_of,
    tree_of,
    whole_plan,
)

LATER = f"{SITE}/demo-3.0.dist-info"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with memory_folder(tmp_path) as folder:
        yield make_world(folder)


def apply(world: World) -> None:
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))


def install_over(world: World, *, record: bool = True, installer: str = "uv") -> None:
    """As pip does: what its RECORD lists of the repair's release goes, demo 3.0 comes, partly in the same places."""
    site = world.prefix / SITE
    for path in NEW:
        if not path.startswith("nvidia/__init__"):
            (site / path).unlink()
    shutil.rmtree(site / "demo-2.0.dist-info")
    files = {"demo/__init__.py": "version = 3\n", "demo/later/part.py": "part = 3\n", "nvidia/demo/lib.so": "ELF 3\n",
             "demo-3.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Demo\nVersion: 3.0\n",
             "demo-3.0.dist-info/INSTALLER": installer, "../../../bin/demo": "#!later\n"}
    for path, text in files.items():
        world.write(os.path.normpath(f"{SITE}/{path}"), text)
    rows = ["nvidia/__init__.py", "../../../pyvenv.cfg", "../../../.stackfix/0001/journal", "../../../../out.txt"]
    if record:      # its rows are believed as far as they are a package's
        world.write(f"{LATER}/RECORD", record_of([*files, *rows, "demo-3.0.dist-info/RECORD"]))


def outside_of_store(world: World) -> dict[str, tuple[object, ...]]:
    return {path: each for path, each in tree_of(world.prefix).items() if not path.startswith(".stackfix")}


def test_a_release_that_was_installed_over_ours_is_recognised_and_nothing_is_undone(world: World) -> None:
    apply(world)
    install_over(world)
    after = tree_of(world.prefix)
    with pytest.raises(ReplacedSince) as caught:
        undo(world.prefix)
    assert f"demo 3.0 was installed after the repair, over its 2.0 ({LATER})" in caught.value.what()
    assert "`stackfix undo --forget` keeps it" in caught.value.next_step()
    assert "puts back demo 1.0" in caught.value.next_step()
    assert tree_of(world.prefix) == after
    assert pending(world.prefix) is None


def test_force_sets_the_newer_release_aside_whole(world: World) -> None:
    before = tree_of(world.prefix)
    apply(world)
    install_over(world)
    changed = tree_of(world.prefix)
    undone = undo(world.prefix, forced=True)
    assert outside_of_store(world) == before
    after = tree_of(world.prefix)
    for path in (LATER, f"{LATER}/RECORD", f"{SITE}/demo/later/part.py", f"{SITE}/demo/__init__.py", "bin/demo"):
        assert after[f".stackfix/changed-0001/{path}"] == changed[path]
    assert LATER in {each.path for each in undone.kept}


def test_force_that_is_killed_anywhere_goes_on_to_the_same_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata goes last, so that the rest is still known."""
    before = tree_of(world.prefix)
    rename, left = syscalls.rename, [0]

    def count_down(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        rename(old, new, old_folder=old_folder, new_folder=new_folder)

    stopped = 0
    for number in range(100):
        apply(world)
        install_over(world)
        left[0] = number
        monkeypatch.setattr(syscalls, "rename", count_down)
        try:
            undo(world.prefix, forced=True)
        except KeyboardInterrupt:
            stopped += 1
            monkeypatch.setattr(syscalls, "rename", rename)
            assert pending(world.prefix) is not None
            take_back(world.prefix)
        monkeypatch.setattr(syscalls, "rename", rename)
        assert outside_of_store(world) == before
        shutil.rmtree(world.prefix / ".stackfix")
        if left[0] >= 0:        # nothing was left to be stopped
            break
    assert stopped > 15


@pytest.mark.parametrize(("record", "installer", "why"), [
    (False, "uv", "it has no RECORD"), (True, "conda", "conda has it on its own record")])
@pytest.mark.parametrize("forced", [False, True])
def test_what_cannot_be_set_aside_whole_stays(forced: bool, record: bool, installer: str, why: str,
                                              world: World) -> None:
    apply(world)
    install_over(world, record=record, installer=installer)
    after = tree_of(world.prefix)
    with pytest.raises(ReplacedSince) as caught:
        undo(world.prefix, forced=forced)
    assert why in caught.value.next_step()
    assert "--force" not in caught.value.next_step()
    assert tree_of(world.prefix) == after
    gone = forget(world.prefix)
    assert f"{SITE}/demo-1.0.dist-info" in gone.dropped
    assert {path: each[:3] for path, each in outside_of_store(world).items()} == {      # one link less
        path: each[:3] for path, each in after.items() if not path.startswith(".stackfix")}
    assert not (world.prefix / ".stackfix").exists()


def test_the_same_release_installed_anew_leaves_no_second_one(world: World) -> None:
    """Its metadata has other files, which would else be left alone in a folder that names a release."""
    before = tree_of(world.prefix)
    apply(world)
    info = world.prefix / SITE / "demo-2.0.dist-info"
    rows = (info / "RECORD").read_text()
    (info / "RECORD").unlink()
    (info / "RECORD").write_text(f"{rows}demo-2.0.dist-info/REQUESTED,,\n")
    (info / "REQUESTED").touch()
    with pytest.raises(ReplacedSince):
        undo(world.prefix)
    undo(world.prefix, forced=True)
    assert outside_of_store(world) == before
