"""SIGKILL at every call that changes the disk: the next run takes back, completes or undoes, and the tree is whole.

A few runs more are killed at random, some of them again while they recover: STACKFIX_KILLS=500 makes it five hundred.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.errors import Busy, Drifted, Unfinished
from stackfix.apply.pending import complete, pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import transactions, undo
from stackfix.errors import StackfixError
from stackfix.plan.records import Plan, SetAside
from tests.apply_faults.kills import Ended, calls_of, in_child, run_killed_before
from tests.apply_faults.world import (
    HOOK,
    SITE,
    World,
    action,
    fake_installer,
    make_world,
    memory_folder,
    tree_of,
    wheel_step,
    whole_plan,
)

KILLS = int(os.environ.get("STACKFIX_KILLS", "12"))
STRIDE = 1 if "STACKFIX_KILLS" in os.environ else 3     # the same for what is completed
SEED = int(os.environ.get("STACKFIX_KILLS_SEED", "1"))
Tree = dict[str, tuple[object, ...]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("stackfix.apply.transaction.processes_with", lambda prefix, paths: ())  # reads all of /proc
    with memory_folder(tmp_path) as made:
        yield made


def fresh(folder: Path) -> World:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return make_world(folder)


def apply(world: World) -> object:
    return apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))


def applied_tree(folder: Path) -> Tree:
    """The environment as the whole plan leaves it, without the transaction's own folder."""
    world = fresh(folder)
    apply(world)
    return outside(world)


def outside(world: World) -> Tree:
    """All but our own folder, without inodes: another environment has others."""
    found = tree_of(world.prefix, inodes=False)
    return {path: each for path, each in found.items() if not path.startswith(".stackfix")}


def test_a_kill_at_any_call_of_an_apply_is_taken_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = calls_of(lambda: apply(fresh(folder)))
    states = set()
    for call in range(1, calls.total() + 1):
        world = fresh(folder)
        before = tree_of(world.prefix)
        assert run_killed_before(call, partial(apply, world)).killed
        found = pending(world.prefix)
        states.add(found.state if found else None)
        assert found is None or found.running is None
        if found is not None:
            take_back(world.prefix)
        if transactions(world.prefix):      # it was committed; at most the lock was left
            undo(world.prefix)
        assert tree_of(world.prefix) == before, call
        assert pending(world.prefix) is None
    with capsys.disabled():
        sys.stdout.write(f"\nkilled before each of {calls.total()} calls of an apply: {dict(calls)}\n")
    assert states >= {"preparing", "changing", "clearing"}
    assert {"write", "rename", "link", "unlink", "sync", "mkdir", "create"} <= set(calls)


def test_a_kill_at_any_call_of_an_apply_can_be_completed(folder: Path) -> None:
    after = applied_tree(folder)
    calls = calls_of(lambda: apply(fresh(folder))).total()
    completed = 0
    for call in range(1, calls + 1, STRIDE):
        world = fresh(folder)
        before = tree_of(world.prefix)
        run_killed_before(call, partial(apply, world))
        found = pending(world.prefix)
        if found is None or found.number is None or not found.can_complete:
            continue
        complete(world.prefix)
        completed += 1
        assert outside(world) == after, call
        undo(world.prefix)
        assert tree_of(world.prefix) == before, call
    assert completed > 60 // STRIDE


def test_a_kill_at_any_call_of_an_undo_is_undone_to_its_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = fresh(folder)
    apply(world)
    calls = calls_of(lambda: undo(world.prefix))
    states = set()
    for call in range(1, calls.total() + 1):
        world = fresh(folder)
        before = tree_of(world.prefix)
        apply(world)
        assert run_killed_before(call, partial(undo, world.prefix)).killed
        found = pending(world.prefix)
        states.add(found.state if found else None)
        way_out: Callable[[Path], object] = complete if call % 2 else take_back
        way_out(world.prefix)
        if transactions(world.prefix):
            undo(world.prefix)
        assert tree_of(world.prefix) == before, call
    with capsys.disabled():
        sys.stdout.write(f"\nkilled before each of {calls.total()} calls of an undo: {dict(calls)}\n")
    assert states >= {"undoing", "clearing"}


LIVED_IN = {f"{SITE}/demo/mine.py": "mine\n", "etc/conda/activate.d/other.sh": "other\n", "lib/new/x": "x\n"}


def lived_in(folder: Path) -> tuple[World, Tree]:
    """An environment after a repair in which others have been at work, and what an undo has to leave of it."""
    world = fresh(folder)
    (world.prefix / SITE / "demo").chmod(0o700)
    before = outside(world)
    apply(world)
    for path, text in LIVED_IN.items():
        world.write(path, text)
    (world.prefix / HOOK).unlink()
    (world.prefix / "lib/libcud.so").unlink()
    (world.prefix / "lib/libcud.so").symlink_to("libcud.so.1")      # as before
    (world.prefix / f"{SITE}/shadow.py").write_text("shadow = 1\n", encoding="utf-8")
    mine = {path: each for path, each in outside(world).items()
            if any(path == one or one.startswith(f"{path}/") for one in LIVED_IN)}
    return world, {**mine, **before}


def test_a_kill_at_any_call_of_an_undo_beside_others_is_undone_to_its_end(folder: Path) -> None:
    world, wanted = lived_in(folder)
    calls = calls_of(lambda: undo(world.prefix)).total()
    assert outside(world) == wanted
    for call in range(1, calls + 1, STRIDE):
        world, wanted = lived_in(folder)
        assert run_killed_before(call, partial(undo, world.prefix)).killed
        run_killed_before(call % 40 + 1, partial(take_back, world.prefix))
        if pending(world.prefix) is not None:
            take_back(world.prefix)
        if transactions(world.prefix):
            undo(world.prefix)
        assert outside(world) == wanted, call
        assert not (world.prefix / ".stackfix").exists()


def test_a_kill_where_folders_cannot_be_renamed_keeps_modes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As overlayfs does with a folder of an image's layer: it is moved name by name, and may be in both places."""
    real = syscalls.rename

    def refuse(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        if old in {"stale", "deep", "demo"} and stat.S_ISDIR(os.stat(old, dir_fd=old_folder).st_mode):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), old)
        real(old, new, old_folder=old_folder, new_folder=new_folder)

    monkeypatch.setattr(syscalls, "rename", refuse)
    calls = calls_of(lambda: apply(fresh(folder))).total()
    for call in range(1, calls + 1, STRIDE):
        world = fresh(folder)
        before = outside(world)
        run_killed_before(call, partial(apply, world))
        run_killed_before(call % 60 + 1, partial(take_back, world.prefix))
        if pending(world.prefix) is not None:
            take_back(world.prefix)
        if transactions(world.prefix):
            undo(world.prefix)
        assert outside(world) == before, call


def test_one_call_that_fails_anywhere_leaves_a_whole_tree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not only a lack of room: a rename, a sync, a change of mode that the disk refuses once."""
    calls = calls_of(lambda: apply(fresh(folder)))
    ends = Counter[str]()
    for call in range(1, calls.total() + 1):
        world = fresh(folder)
        before = tree_of(world.prefix)
        ended = failing_once(call, partial(apply, world))
        ends.update(["refused" if ended.status else "made all the same"])
        if pending(world.prefix) is not None:
            take_back(world.prefix)
        assert len(transactions(world.prefix)) == (0 if ended.status else 1), call
        if not ended.status:
            undo(world.prefix)
        assert tree_of(world.prefix) == before, call
    with capsys.disabled():
        sys.stdout.write(f"\neach of {calls.total()} calls of an apply failing once: {dict(ends)}\n")
    assert ends["refused"] > calls.total() // 2


def test_one_call_of_an_undo_that_fails_can_be_tried_again(folder: Path) -> None:
    world = fresh(folder)
    apply(world)
    calls = calls_of(lambda: undo(world.prefix)).total()
    for call in range(1, calls + 1):
        world = fresh(folder)
        before = tree_of(world.prefix)
        apply(world)
        failing_once(call, partial(undo, world.prefix))
        if pending(world.prefix) is not None:
            take_back(world.prefix)
        if transactions(world.prefix):
            undo(world.prefix)
        assert tree_of(world.prefix) == before, call


def failing_once(call: int, work: Callable[[], object]) -> Ended:
    """Runs `work` in a child, whose call number `call` fails."""
    def before(count: int, name: str) -> None:
        if count == call:
            raise OSError(errno.EIO, f"{name} is refused")

    return in_child(work, before)


def test_a_step_that_fails_in_any_place_takes_the_others_back(folder: Path) -> None:
    world = fresh(folder)
    steps = whole_plan(world).actions[0].steps
    for place in range(len(steps) + 1):
        for failing in (SetAside(path="lib/never/was"), wheel_step(project="other", version="9", replaces=())):
            world = fresh(folder)
            before = tree_of(world.prefix)
            mixed = action("one-1", "relink", *steps[:place], failing, *steps[place:])
            with pytest.raises(StackfixError):
                apply_plan(Plan(prefix=str(world.prefix), actions=(mixed,), left=()), world.prefix,
                           installer=fake_installer(world))
            assert tree_of(world.prefix) == before, (place, failing)
            assert pending(world.prefix) is None


def test_of_two_repairs_at_once_one_is_made(folder: Path) -> None:
    """Two real processes with the same plan: the other one finds it busy, or finds it changed."""
    for count in range(6 if STRIDE > 1 else 60):
        world = fresh(folder)
        before = tree_of(world.prefix)
        plan, gate, children = whole_plan(world), os.pipe(), list[int]()
        for number in range(2):
            child = os.fork()
            if child == 0:
                status = 9
                try:
                    os.close(gate[1])
                    os.read(gate[0], 1)
                    time.sleep((count % 6) * number * 0.002)
                    apply_plan(plan, world.prefix, installer=fake_installer(world))
                    status = 0
                except (Busy, Drifted, Unfinished):
                    status = 1
                finally:
                    os._exit(status)
            children.append(child)
        os.close(gate[0])
        os.close(gate[1])
        ends = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        assert ends == [0, 1]
        assert [each.number for each in transactions(world.prefix)] == [1]
        undo(world.prefix)
        assert tree_of(world.prefix) == before


def test_kills_at_random_also_of_the_recovery(folder: Path) -> None:
    chance = random.Random(SEED)        # noqa: S311 - not a secret
    after = applied_tree(folder)
    calls = calls_of(lambda: apply(fresh(folder))).total()
    for _ in range(KILLS):
        world = fresh(folder)
        before = tree_of(world.prefix)
        run_killed_before(chance.randint(1, calls), partial(apply, world))
        for _ in range(chance.randint(0, 3)):
            found = pending(world.prefix)
            ways: list[Callable[[Path], object]] = [take_back]
            if found is not None and found.can_complete:
                ways.append(complete)
            way = chance.choice(ways)
            run_killed_before(chance.randint(1, 60), partial(way, world.prefix))
        found = pending(world.prefix)
        way_out: Callable[[Path], object] = take_back
        if found is not None and found.can_complete and chance.random() < 0.5:
            way_out = complete
        way_out(world.prefix)
        if transactions(world.prefix):
            assert outside(world) == after
            undo(world.prefix)
        assert tree_of(world.prefix) == before
