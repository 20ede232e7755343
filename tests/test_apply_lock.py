"""One run at a time in a prefix; the dead are told from the living, and succeeded by one heir alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.apply import lock, syscalls
from stackfix.apply.errors import Busy, CannotWrite
from stackfix.apply.lock import acquire, holder, locked, release
from stackfix.apply.lock_owner import Owner, is_dead, parse_owner, started_at, this_process, to_bytes
from stackfix.apply.pending import pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.tree import Tree
from stackfix.apply.undo import undo
from tests.apply_faults.kills import in_child
from tests.apply_faults.world import World, fake_installer, make_world, memory_folder, tree_of, whole_plan


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with memory_folder(tmp_path) as folder:
        yield make_world(folder)


def lock_as(world: World, owner: Owner, name: str = "lock") -> Path:
    (world.prefix / ".stackfix").mkdir(mode=0o700, exist_ok=True)
    place = world.prefix / ".stackfix" / name
    place.write_bytes(to_bytes(owner))
    return place


def of_a_dead_process() -> Owner:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return replace(this_process(), pid=int(done.stdout), started="1")


OTHERS: dict[str, Callable[[Owner], Owner]] = {
    "alive": lambda me: replace(me, token="other"),
    "another host": lambda me: replace(me, token="other", host="elsewhere", pid=1, started="0"),
    "another machine": lambda me: replace(me, token="other", machine="0" * 32, pid=1, started="0"),
    "another container": lambda me: replace(me, token="other", space="pid:[1]", pid=1, started="0"),
}
DEAD: dict[str, Callable[[Owner], Owner]] = {
    "gone": lambda me: of_a_dead_process(),
    "number used again": lambda me: replace(me, token="other", started="1"),
    "before this boot": lambda me: replace(me, token="other", boot="an-earlier-one"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_lock_of_somebody_who_may_be_alive_holds(world: World, other: str) -> None:
    owner = OTHERS[other](this_process())
    place = lock_as(world, owner)
    before = tree_of(world.prefix)
    with pytest.raises(Busy, match=f"process {owner.pid} on {owner.host}") as caught:
        apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    assert str(place) in (caught.value.next_step() or "")
    assert tree_of(world.prefix) == before
    found = pending(world.prefix)
    assert found is not None
    assert found.running == str(owner)


@pytest.mark.parametrize("other", DEAD)
def test_a_lock_of_the_dead_is_taken_over(world: World, other: str) -> None:
    before = tree_of(world.prefix)
    owner = DEAD[other](this_process())
    assert is_dead(owner)
    lock_as(world, owner)
    found = pending(world.prefix)
    assert found is not None
    assert (found.state, found.running, found.touched) == ("clearing", None, False)
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def test_heirs_that_died_are_succeeded_too(world: World) -> None:
    before = tree_of(world.prefix)
    first, second, third = (replace(of_a_dead_process(), token=token) for token in ("a1", "b2", "c3"))
    lock_as(world, first)
    lock_as(world, second, "lock.heir.a1")
    lock_as(world, third, "lock.heir.b2")
    lock_as(world, third, "lock.own.c3")
    with Tree(world.prefix) as tree, locked(tree):
        owner = holder(tree)
        assert owner is not None
        assert owner.pid == os.getpid()
        assert sorted(each.name for each in (world.prefix / ".stackfix").iterdir()) == ["lock"]
    assert tree_of(world.prefix) == before


def test_an_heir_who_comes_late_stands_back(world: World) -> None:
    """It read the lock of the dead, then another heir took over: its own link must not make it an owner."""
    dead = of_a_dead_process()
    lock_as(world, dead)
    other = replace(this_process(), token="quicker")
    real = syscalls.link

    def others_turn(old: str, new: str, *, folder: int) -> None:
        if new == f"lock.heir.{dead.token}":
            syscalls.link = real
            lock_as(world, other)
        real(old, new, folder=folder)

    with Tree(world.prefix) as tree:
        syscalls.link = others_turn
        try:
            with pytest.raises(Busy, match="process"):
                acquire(tree, this_process())
        finally:
            syscalls.link = real
        owner = holder(tree)
        assert owner is not None
        assert owner.token == "quicker"


def test_file_systems_without_hard_links_are_locked_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree_of(world.prefix)

    def refuse(old: str, new: str, *, folder: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(syscalls, "link", refuse)
    with Tree(world.prefix) as tree, locked(tree), Tree(world.prefix) as second, pytest.raises(Busy):
        acquire(second, this_process())
    lock_as(world, of_a_dead_process())
    with Tree(world.prefix) as tree, locked(tree):
        pass
    assert tree_of(world.prefix) == before


def test_a_link_that_worked_and_was_reported_as_failed_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS: the answer is lost, the call is sent again, and says that the name is there."""
    real = syscalls.link

    def lost(old: str, new: str, *, folder: int) -> None:
        real(old, new, folder=folder)
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(syscalls, "link", lost)
    with Tree(world.prefix) as tree, locked(tree):
        assert holder(tree) is not None


@pytest.mark.parametrize("count", range(8))
def test_an_interruption_while_the_lock_is_taken_leaves_nothing(
        count: int, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before, calls = tree_of(world.prefix), list[str]()

    def interrupt(name: str) -> None:
        calls.append(name)
        if len(calls) == count + 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(syscalls, "before_call", interrupt)
    with Tree(world.prefix) as tree, suppress(KeyboardInterrupt), locked(tree):
        monkeypatch.setattr(syscalls, "before_call", None)
    assert {**tree_of(world.prefix), ".": 0} == {**before, ".": 0}
    assert calls[0] == "mkdir"


def test_a_lock_that_is_not_whole_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PAUSE", 0.001)
    lock_as(world, this_process()).write_bytes(b"{")
    with Tree(world.prefix) as tree, pytest.raises(Busy, match="somebody"):
        acquire(tree, this_process())


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'{"pid": 1}', b"\xff", b"[" * 5000,
                                     json.dumps({"token": "../x", "host": "", "machine": "", "boot": "", "space": "",
                                                 "pid": 1, "started": ""}).encode()])
def test_what_names_no_owner_is_none(content: bytes) -> None:
    assert parse_owner(content) is None


def test_a_zombie_is_dead() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert started_at(child) is None
    os.waitpid(child, 0)


def test_a_process_that_is_hidden_from_us_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    owner = replace(of_a_dead_process(), token="other")
    assert is_dead(owner)
    monkeypatch.setattr("stackfix.apply.lock_owner.os.kill", refused)
    assert not is_dead(owner)


def test_of_many_that_start_at_once_one_at_a_time_has_the_lock(world: World) -> None:
    """Forty real processes around a lock of the dead; each that has it makes a file that nobody else may find."""
    lock_as(world, of_a_dead_process())
    inside = world.folder / "inside"
    went = world.folder / "went"
    went.mkdir()

    def work(name: str) -> None:
        for _ in range(400):
            with Tree(world.prefix) as tree:
                me = this_process()
                try:
                    acquire(tree, me)
                except Busy:
                    time.sleep(0.002)
                    continue
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                inside.unlink()
                (went / name).touch()
                if name == "0":
                    os.kill(os.getpid(), signal.SIGKILL)    # as an owner: the next one is its heir
                release(tree, me)
                os._exit(0)
        os._exit(3)

    children = []
    for number in range(40):
        child = os.fork()
        if child == 0:
            try:
                work(str(number))
            finally:
                os._exit(4)
        children.append(child)
    ends = [os.waitpid(child, 0)[1] for child in children]
    assert sorted(ends) == [0] * 39 + [signal.SIGKILL]
    assert len(list(went.iterdir())) == 40


def test_a_folder_that_the_last_owner_removes_meanwhile_is_made_anew(
    world: World, monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, went = syscalls.make_folder, list[str]()

    def make(name: str, *, folder: int, mode: int = 0o777) -> None:
        real(name, folder=folder, mode=mode)
        if len(went) < 3:
            went.append(name)
            os.rmdir(name, dir_fd=folder)
    monkeypatch.setattr(syscalls, "make_folder", make)
    with Tree(world.prefix) as tree, locked(tree):
        assert went == [".stackfix"] * 3
    assert not (world.prefix / ".stackfix").exists()


def test_two_repairs_at_once_are_one_after_the_other(world: World) -> None:
    before = tree_of(world.prefix)
    seen = world.folder / "seen"

    def second(count: int, name: str) -> None:
        if name == "rename" and not seen.exists():
            seen.touch()
            with pytest.raises(Busy):
                apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
            with pytest.raises(Busy):
                take_back(world.prefix)
            with pytest.raises(Busy):
                undo_or_busy(world)

    ended = in_child(lambda: apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world)), second)
    assert (ended.killed, ended.status) == (False, 0)
    assert seen.exists()
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def undo_or_busy(world: World) -> None:
    undo(world.prefix)


@pytest.mark.parametrize("what", ["file", "link", "open to all"])
def test_a_store_that_is_not_ours_alone_is_refused(world: World, what: str) -> None:
    store = world.prefix / ".stackfix"
    if what == "file":
        store.write_text("", encoding="utf-8")
    elif what == "link":
        (world.folder / "elsewhere").mkdir()
        store.symlink_to(world.folder / "elsewhere")
    else:
        store.mkdir()
        store.chmod(0o777)
    before = tree_of(world.folder)
    with pytest.raises(CannotWrite, match=r"\.stackfix"):
        apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    assert tree_of(world.folder) == before
