"""A journal is read back line by line; what was cut short counts for nothing, and what leads out is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stackfix.apply.errors import JournalDamaged
from stackfix.apply.journal import Journal, read_journal
from stackfix.apply.journal_records import Begin, Committed, Doing, Move, Staged
from stackfix.apply.pending import pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.tree import Tree
from stackfix.apply.undo import undo
from stackfix.plan.records import Plan
from tests.apply_faults.world import World, fake_installer, make_world, memory_folder, tree_of, whole_plan

BEGIN = Begin(format=1, version="0", number=1, started="2024-01-01T00:00:00+00:00", host="box", pid=1,
              plan=Plan(prefix="/env", actions=(), left=()))
MOVE = Move(kind="aside", path="lib/x\udcff\n", store="kept/1/lib/x\udcff\n")
LINES = (BEGIN, Staged(steps=1), Doing(step=1, part="remove", moves=(MOVE,)), Committed())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with memory_folder(tmp_path) as folder:
        yield make_world(folder)


def write_journal(folder: Path) -> bytes:
    (folder / "home").mkdir()
    with Tree(folder) as tree:
        journal = Journal(tree, "home", fresh=True)
        for line in LINES:
            journal.append(line)
        journal.close()
    return (folder / "home/journal").read_bytes()


def test_lines_are_read_as_they_were_written_also_odd_names(tmp_path: Path) -> None:
    write_journal(tmp_path)
    with Tree(tmp_path) as tree:
        assert read_journal(tree, "home") == LINES


def test_a_line_that_was_cut_short_counts_for_nothing_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    content = write_journal(tmp_path)
    ends = [place + 1 for place, mark in enumerate(content) if mark == ord("\n")]
    with Tree(tmp_path) as tree:
        for length in range(0, len(content), 7):
            (tmp_path / "home/journal").write_bytes(content[:length])
            whole = sum(end <= length for end in ends)
            assert read_journal(tree, "home") == LINES[:whole]
            journal = Journal(tree, "home")
            if whole:
                journal.append(Committed())
                assert read_journal(tree, "home") == (*LINES[:whole], Committed())
            journal.close()


def change(key: str, value: object) -> Callable[[Any], Any]:
    return lambda line: {**line, key: value}


def changed_move(**fields: object) -> Callable[[Any], Any]:
    return lambda line: {**line, "moves": [{**line["moves"][0], **fields}]} if line["is"] == "Doing" else line


BAD: dict[str, Callable[[Any], Any]] = {
    "format": lambda line: {**line, "format": 2} if line["is"] == "Begin" else line,
    "kind of line": change("is", "Wonder"),
    "more fields": change("more", 1),
    "path out": changed_move(path="../../etc/passwd"),
    "absolute path": changed_move(path="/etc/passwd"),
    "the prefix": changed_move(path=""),
    "our own folder": changed_move(path=".stackfix/0001"),
    "store out": changed_move(store="kept/../../../x"),
    "store elsewhere": changed_move(store="journal"),
    "store itself": changed_move(store="kept"),
    "kind of move": changed_move(kind="copy"),
    "entry out": changed_move(entries=[{"is": "Entry", "path": "../x", "node": {
        "is": "Node", "kind": "file", "sha256": None, "mode": None, "target": None}}]),
    "no object": lambda line: [line],
}


@pytest.mark.parametrize("bad", BAD)
def test_a_journal_that_is_not_ours_is_refused(tmp_path: Path, bad: str) -> None:
    lines = write_journal(tmp_path).splitlines()
    changed = [json.dumps(BAD[bad](json.loads(line))) for line in lines]
    (tmp_path / "home/journal").write_text("".join(f"{line}\n" for line in changed), encoding="utf-8")
    with Tree(tmp_path) as tree, pytest.raises(JournalDamaged, match="home/journal") as caught:
        read_journal(tree, "home")
    assert "home/kept" in (caught.value.next_step() or "")


@pytest.mark.parametrize("content", [b"\0" * 64 + b"\n", b"{}\n", b"[" * 9999 + b"\n", b"\xff\n", b"1\n"])
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes) -> None:
    write_journal(tmp_path)
    (tmp_path / "home/journal").write_bytes(content)
    with Tree(tmp_path) as tree, pytest.raises(JournalDamaged):
        read_journal(tree, "home")


def test_a_hostile_journal_moves_nothing(world: World) -> None:
    """A prefix may come from anywhere, with a journal that was made to reach out of it."""
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    place = world.prefix / ".stackfix/0001/journal"
    text = place.read_text(encoding="ascii").replace('"path":"bin/activate"', '"path":"../out.txt"')
    place.write_text(text, encoding="ascii")
    before = tree_of(world.folder)
    for work in (pending, undo, take_back):
        with pytest.raises(JournalDamaged):
            work(world.prefix)
    assert tree_of(world.folder) == before


def test_the_journal_is_no_link(world: World) -> None:
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))
    place = world.prefix / ".stackfix/0001/journal"
    place.rename(world.folder / "journal")
    place.symlink_to(world.folder / "journal")
    with pytest.raises(JournalDamaged):
        undo(world.prefix)
