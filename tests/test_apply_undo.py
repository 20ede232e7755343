"""An undo gives back what was there, and nothing that somebody changed since is lost."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.errors import ChangedSince, NothingToUndo, NotTakenBack, Unfinished
from stackfix.apply.pending import complete, pending, take_back
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import transactions, undo, undo_all
from stackfix.plan.records import MakeLink, SetAside, WriteFile
from tests.apply_faults.world import (
    HOOK,
    SCRIPT,
    SITE,
    World,
    fake_installer,
    make_world,
    memory_folder,
    plan_of,
    tree_of,
    whole_plan,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with memory_folder(tmp_path) as folder:
        yield make_world(folder)


def apply(world: World) -> None:
    apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world))


def rewrite(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text, encoding="utf-8")


def make_folder(path: Path) -> None:
    path.mkdir()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "content": (lambda prefix: rewrite(prefix / "bin/activate", "edited\n"), "bin/activate", "has other content"),
    "mode": (lambda prefix: (prefix / SCRIPT).chmod(0o755), SCRIPT, "has mode 755, not 644"),
    "gone": (lambda prefix: (prefix / HOOK).unlink(), HOOK, "is gone"),
    "added": (lambda prefix: (prefix / "etc/conda/mine.txt").write_text("mine\n", encoding="utf-8"),
              "etc/conda/mine.txt", "was added"),
    "back": (lambda prefix: (prefix / f"{SITE}/shadow.py").write_text("again\n", encoding="utf-8"),
             f"{SITE}/shadow.py", "is there again"),
    "folder back": (lambda prefix: make_folder(prefix / "lib/stale"), "lib/stale", "is there again"),
    "package": (lambda prefix: rewrite(prefix / f"{SITE}/demo/__init__.py", "patched\n"),
                f"{SITE}/demo/__init__.py", "has other content"),
    "kind": (lambda prefix: become_a_folder(prefix / "bin/demo"), "bin/demo", "is a folder now, not a file"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_since_is_told_and_nothing_is_undone(world: World, change: str) -> None:
    apply(world)
    make, path, how = CHANGES[change]
    make(world.prefix)
    after = tree_of(world.prefix)
    with pytest.raises(ChangedSince) as caught:
        undo(world.prefix)
    assert caught.value.differences == ((path, how),)
    assert tree_of(world.prefix) == after
    assert pending(world.prefix) is None


@pytest.mark.parametrize("change", CHANGES)
def test_force_undoes_and_keeps_what_was_changed(world: World, change: str) -> None:
    before = tree_of(world.prefix)
    apply(world)
    make, path, how = CHANGES[change]
    make(world.prefix)
    changed = tree_of(world.prefix).get(path)
    undone = undo(world.prefix, forced=True)
    after = tree_of(world.prefix)
    assert [each.path for each in undone.kept] == ([] if how == "is gone" else [path])
    for each in undone.kept:
        assert after[each.copy] == changed
    assert {place: each for place, each in after.items() if not place.startswith(".stackfix")} == before
    assert pending(world.prefix) is None
    assert transactions(world.prefix) == ()


def test_what_python_compiled_meanwhile_is_no_change(world: World) -> None:
    before = tree_of(world.prefix)
    apply(world)
    for path in (HOOK, f"{SITE}/demo/__init__.py", f"{SITE}/demo/more/part.py"):
        source = world.prefix / path
        cached = source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc"
        py_compile.compile(str(source), cfile=str(cached))
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def test_compiled_forms_of_a_replaced_module_come_back(world: World) -> None:
    old = world.write(f"{SITE}/hooked.py", "old = 1\n")
    compiled = world.write(f"{SITE}/__pycache__/hooked.cpython-311.pyc", "compiled old")
    before = tree_of(world.prefix)
    apply_plan(plan_of(world, WriteFile(path=f"{SITE}/hooked.py", text="new = 1\n")), world.prefix,
               installer=fake_installer(world))
    assert not compiled.exists()
    compiled.write_text("compiled new", encoding="utf-8")
    undo(world.prefix)
    assert tree_of(world.prefix) == before
    assert old.read_text(encoding="utf-8") == "old = 1\n"


def test_a_cache_folder_of_our_module_alone_goes_with_it(world: World) -> None:
    before = tree_of(world.prefix)
    path = "share/tools/tiny.py"
    (world.prefix / "share/tools").mkdir(parents=True)
    with_folders = tree_of(world.prefix)
    assert with_folders != before
    apply_plan(plan_of(world, WriteFile(path=path, text="x = 1\n")), world.prefix, installer=fake_installer(world))
    subprocess.run([sys.executable, "-c", "import tiny"], cwd=world.prefix / "share/tools", check=True,
                   env={name: each for name, each in os.environ.items() if not name.startswith("PYTHON")})
    assert (world.prefix / "share/tools/__pycache__").is_dir()
    undo(world.prefix)
    assert tree_of(world.prefix) == with_folders


def test_several_repairs_are_undone_from_the_last_one(world: World) -> None:
    states = [tree_of(world.prefix)]
    for text in ("1\n", "2\n", "3\n"):
        apply_plan(plan_of(world, WriteFile(path="bin/activate", text=text)), world.prefix,
                   installer=fake_installer(world))
        states.append(tree_of(world.prefix))
    assert [each.number for each in transactions(world.prefix)] == [3, 2, 1]
    undo(world.prefix)
    assert tree_of(world.prefix) == states[2]
    assert [each.number for each in undo_all(world.prefix)] == [2, 1]
    assert tree_of(world.prefix) == states[0]
    with pytest.raises(NothingToUndo):
        undo(world.prefix)
    assert tree_of(world.prefix) == states[0]


def test_an_undo_that_cannot_finish_keeps_the_copies_and_says_where(
    world: World, monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = tree_of(world.prefix)
    apply(world)
    real = syscalls.rename

    def refuse(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        if new == "stale":
            raise PermissionError(1, "Operation not permitted", new)
        real(old, new, old_folder=old_folder, new_folder=new_folder)

    monkeypatch.setattr(syscalls, "rename", refuse)
    with pytest.raises(NotTakenBack, match="Operation not permitted") as caught:
        undo(world.prefix)
    hint = caught.value.next_step() or ""
    copy = next(word for word in hint.replace(",", " ").replace(";", " ").split() if word.endswith("/lib/stale"))
    assert (world.prefix / copy / "deep/a.txt").read_text(encoding="utf-8") == "kept\n"
    monkeypatch.undo()
    with pytest.raises(Unfinished):
        undo(world.prefix)
    with pytest.raises(Unfinished):
        apply(world)
    found = pending(world.prefix)
    assert found is not None
    assert (found.state, found.touched, found.can_complete) == ("undoing", True, True)
    complete(world.prefix)
    assert tree_of(world.prefix) == before


def test_a_failed_apply_that_cannot_be_taken_back_says_both(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree_of(world.prefix)
    real, failing = syscalls.rename, ["stale"]

    def refuse(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        if new in failing:
            failing.append("shadow.py")
            raise OSError(5, "Input/output error", new)
        real(old, new, old_folder=old_folder, new_folder=new_folder)

    monkeypatch.setattr(syscalls, "rename", refuse)
    with pytest.raises(NotTakenBack, match=r"set aside lib/stale.*could not be taken back"):
        apply(world)
    monkeypatch.undo()
    take_back(world.prefix)
    assert tree_of(world.prefix) == before


def test_folders_that_cannot_be_renamed_are_moved_name_by_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As overlayfs does with a folder of an image's layer."""
    before = tree_of(world.prefix, inodes=False)
    real = syscalls.rename
    expanded = []

    def refuse(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        status = os.stat(old, dir_fd=old_folder, follow_symlinks=False)
        if os.path.isdir(f"/proc/self/fd/{old_folder}/{old}") and "0001" not in old and status.st_nlink:  # noqa: PTH112
            expanded.append(old)
            raise OSError(18, "Invalid cross-device link", old)
        real(old, new, old_folder=old_folder, new_folder=new_folder)

    monkeypatch.setattr(syscalls, "rename", refuse)
    apply(world)
    assert {"stale", "conda", "etc"} & set(expanded)
    assert (world.prefix / SCRIPT).exists()
    undo(world.prefix)
    assert tree_of(world.prefix, inodes=False) == before


def test_a_link_that_is_swapped_in_leads_nowhere(world: World) -> None:
    """Our moves open every folder by descriptor: one that became a link since is refused, not followed."""
    apply_plan(plan_of(world, MakeLink(path="share/x/libcud.so", target="../../lib/libcud.so.1"),
                       SetAside(path="lib/stale")), world.prefix, installer=fake_installer(world))
    away = world.folder / "away"
    (world.prefix / "share").rename(away)
    (world.prefix / "share").symlink_to(away)
    outside = tree_of(away)
    with pytest.raises(ChangedSince):
        undo(world.prefix)
    undo(world.prefix, forced=True)
    assert tree_of(away) == outside
    assert (world.prefix / "lib/stale/deep/a.txt").exists()


def test_the_commands_of_the_docs_take_it_back_without_stackfix(world: World) -> None:
    before = tree_of(world.prefix)
    apply(world)
    text = (ROOT / "docs/transactions.md").read_text(encoding="utf-8")
    script = text.partition("```sh\n")[2].partition("```")[0]
    listed = subprocess.run(["sh", "-c", script], cwd=world.prefix, capture_output=True, text=True, check=True)
    assert listed.stdout.count("mv -nT ") > 10
    subprocess.run(["sh", "-ec", listed.stdout], cwd=world.prefix, check=True)
    shutil.rmtree(world.prefix / ".stackfix")
    assert tree_of(world.prefix) == before
