"""No room, wherever it ends: on a small file system as root, else by a limit on the size of files."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.errors import StepFailed
from stackfix.apply.pending import pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import transactions, undo
from stackfix.errors import StackfixError, Unreachable
from stackfix.plan.records import InstallWheel
from tests.apply_faults.kills import calls_of, in_child
from tests.apply_faults.world import (
    SITE,
    action,
    fake_installer,
    make_world,
    memory_folder,
    tree_of,
    wheel_step,
    whole_plan,
)

TINY = 512 << 10        # bytes


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, nearly nothing of it used."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TINY}", "none", str(folder)], check=False,
                          capture_output=True)
    if done.returncode != 0:
        pytest.skip("needs root to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, free: int) -> None:
    """Leaves `free` bytes of the file system."""
    left = os.statvfs(folder)
    size = left.f_bavail * left.f_frsize - free
    (folder / "filler").write_bytes(b"x" * max(size, 0))


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_disk_that_fills_up_at_any_size_changes_nothing(small: Path) -> None:
    ends = set()
    for free in range(0, 200 << 10, 12 << 10):
        empty(small)
        world = make_world(small)
        plan = whole_plan(world)
        fill(small, free)
        before = tree_of(world.prefix)
        try:
            apply_plan(plan, world.prefix, installer=fake_installer(world))
        except (StackfixError, OSError) as error:
            ends.add(type(error).__name__)
        else:
            ends.add("done")
            undo(world.prefix)
        assert tree_of(world.prefix) == before, free
        assert pending(world.prefix) is None
    assert {"done", "NoSpace"} <= ends
    assert ends <= {"done", "NoSpace", "StepFailed", "Unreachable"}


def test_a_wheel_that_is_too_big_changes_nothing(small: Path) -> None:
    world = make_world(small)
    before = tree_of(world.prefix)

    def installer(step: InstallWheel, into: Path) -> None:
        fake_installer(world)(step, into)
        (into / step.site / "demo/big.bin").write_bytes(b"x" * TINY)

    with pytest.raises(StepFailed, match=r"install demo 2\.0: No space left on device"):
        apply_plan(whole_plan(world), world.prefix, installer=installer)
    assert tree_of(world.prefix) == before


@pytest.mark.parametrize("added", [(), (f"{SITE}/demo/mine.py", "etc/conda/activate.d/other.sh")], ids=["", "others"])
def test_an_undo_on_a_full_disk_is_whole_or_says_so(added: tuple[str, ...], small: Path) -> None:
    world = make_world(small)
    before = tree_of(world.prefix)
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    for path in added:
        world.write(path, "others\n")
    fill(small, 0)
    try:
        undo(world.prefix)
    except (StackfixError, OSError):
        (small / "filler").unlink()
        if transactions(world.prefix):
            undo(world.prefix)
        else:
            take_back(world.prefix)
    for path in added:
        assert (world.prefix / path).read_text(encoding="utf-8") == "others\n"
        (world.prefix / path).unlink()
    for path in ("etc/conda/activate.d", "etc/conda", "etc") if added else ():
        (world.prefix / path).rmdir()
    after = tree_of(world.prefix)
    mixed = {f"{SITE}/demo"} if added else set()      # a new folder that took in what was there
    assert {path: each[:4] if path in mixed else each for path, each in after.items()} == {
        path: each[:4] if path in mixed else each for path, each in before.items()}


def failing_at(call: int, number: int) -> None:
    """Every call from `call` on that needs room fails, in this process."""
    count = 0

    def before(name: str) -> None:
        nonlocal count
        count += 1
        if count >= call and name in {"write", "create", "mkdir", "symlink", "link"}:
            raise OSError(number, os.strerror(number))

    syscalls.before_call = before


@pytest.mark.parametrize("number", [28, 122, 5], ids=["ENOSPC", "EDQUOT", "EIO"])
def test_no_room_from_any_call_on_leaves_the_tree_whole(tmp_path: Path, number: int,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """All later calls that need room fail, too: taking back must do without any."""
    monkeypatch.setattr("stackfix.apply.transaction.processes_with", lambda prefix, paths: ())
    with memory_folder(tmp_path) as folder:
        world = make_world(folder)
        before = tree_of(world.prefix)
        apply = partial(apply_plan, whole_plan(world), world.prefix, installer=fake_installer(world))
        total = calls_of(apply).total()
        undo(world.prefix)
        for call in range(1, total + 1, 1 if number == 28 else 9):
            failing_at(call, number)
            try:
                apply()
            except (StackfixError, OSError):
                pass
            finally:
                syscalls.before_call = None
            if transactions(world.prefix):
                undo(world.prefix)
            elif pending(world.prefix) is not None:
                take_back(world.prefix)
            assert tree_of(world.prefix) == before, call


def test_a_limit_on_the_size_of_files_changes_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE, as a batch system may set it: also for the journal itself."""
    world = make_world(tmp_path)
    plan = whole_plan(world)
    before = tree_of(world.prefix)

    def limited(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(Unreachable):
            apply_plan(plan, world.prefix, installer=fake_installer(world))

    for size in (200, 2000, 5000):
        ended = in_child(partial(limited, size), lambda count, name: None)
        assert (ended.killed, ended.status) == (False, 0), size
        if pending(world.prefix) is not None:
            take_back(world.prefix)
        assert tree_of(world.prefix) == before, size


def test_a_step_that_fails_after_wheels_are_there_takes_them_back(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    before = tree_of(world.prefix)
    plan = whole_plan(world)
    other = action("two-2", "install", wheel_step(project="more", version="1.0", replaces=()))

    def installer(step: InstallWheel, into: Path) -> None:
        if step.project == "more":
            raise OSError(28, "No space left on device")
        fake_installer(world)(step, into)

    with pytest.raises(StepFailed, match="install more"):
        apply_plan(replace(plan, actions=(*plan.actions, other)), world.prefix, installer=installer)
    assert tree_of(world.prefix) == before
