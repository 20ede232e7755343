"""SIGKILL at every call that changes the disk: the next run takes back, completes or undoes, and the tree is whole.

A few runs more are killed at random, some of them again while they recover: STACKFIX_KILLS=500 makes it five hundred.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from stackfix.apply.pending import complete, pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import transactions, undo
from tests.apply_faults.kills import calls_of, run_killed_before
from tests.apply_faults.world import World, fake_installer, make_world, memory_folder, tree_of, whole_plan

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
