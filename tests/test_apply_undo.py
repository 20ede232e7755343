"""An undo gives back what was there, and nothing that somebody changed since is lost."""

from __future__ import annotations

import os
import py_compile
import random
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
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
    make, path, _ = CHANGES[change]
    make(world.prefix)
    changed = tree_of(world.prefix).get(path)
    undone = undo(world.prefix, forced=True)
    after = tree_of(world.prefix)
    assert [each.path for each in undone.kept] == [path]
    for each in undone.kept:
        assert after[each.copy] == changed
    assert {place: each for place, each in after.items() if not place.startswith(".stackfix")} == before
    assert pending(world.prefix) is None
    assert transactions(world.prefix) == ()


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


GONE: dict[str, tuple[str, ...]] = {
    "a new file": (HOOK,), "a new link": ("lib/new/libcud.so.2",), "a folder that was made": ("etc",),
    "a file that replaced one": ("bin/activate",), "a link that replaced one": ("lib/libcud.so",),
    "a package": (f"{SITE}/demo", f"{SITE}/demo-2.0.dist-info", "bin/demo", f"{SITE}/nvidia/demo"),
    "a part of a package": (f"{SITE}/demo/more", f"{SITE}/demo/__init__.py"),
    "all": (HOOK, "lib/new", "etc", "bin/activate", "lib/libcud.so", f"{SITE}/demo", f"{SITE}/demo-2.0.dist-info",
            "bin/demo", f"{SITE}/nvidia/demo"),
}


@pytest.mark.parametrize("what", GONE)
def test_what_is_gone_already_counts_as_undone(world: World, what: str) -> None:
    before = tree_of(world.prefix)
    apply(world)
    for path in GONE[what]:
        remove(world.prefix / path)
    undone = undo(world.prefix)
    assert tree_of(world.prefix) == before
    assert set(undone.gone) == set(GONE[what])
    assert not set(undone.gone) & set(undone.removed)
    assert undone.kept == ()


AGAIN: dict[str, tuple[str, ...]] = {
    "a file": ("bin/activate",), "a link": ("lib/libcud.so",), "a file that was set aside": (f"{SITE}/shadow.py",),
    "a folder that was set aside": ("lib/stale",),
    "a release": (f"{SITE}/demo", f"{SITE}/demo-1.0.dist-info", "bin/demo"),
    "all": ("bin/activate", "lib/libcud.so", f"{SITE}/shadow.py", "lib/stale", f"{SITE}/demo",
            f"{SITE}/demo-1.0.dist-info", "bin/demo"),
}


@pytest.mark.parametrize("what", AGAIN)
def test_what_is_again_as_it_was_before_counts_as_undone(world: World, what: str) -> None:
    """Made anew by somebody, as an installer makes a release anew: the same bytes and modes, other inodes."""
    before, copy = tree_of(world.prefix), world.folder / "copy"
    shutil.copytree(world.prefix, copy, symlinks=True)
    apply(world)
    if what in {"a release", "all"}:
        for path in (f"{SITE}/demo", f"{SITE}/demo-2.0.dist-info", f"{SITE}/nvidia/demo"):
            remove(world.prefix / path)
    for path in AGAIN[what]:
        if os.path.lexists(world.prefix / path):
            remove(world.prefix / path)
        (copy / path).rename(world.prefix / path)
    assert undo(world.prefix).kept == ()
    after = tree_of(world.prefix)
    folders = {path for path, each in before.items() if each[0] == stat.S_IFDIR}       # the new one takes in the old
    assert {path: each[:4] if path in folders else each for path, each in after.items()} == {
        path: each[:4] if path in folders else each for path, each in before.items()}


OTHERS: dict[str, dict[str, str]] = {
    "beside a script": {"etc/conda/activate.d/other.sh": "1\n"},
    "in a folder above": {"etc/conda/mine.txt": "2\n", "etc/other/deep/x": "3\n"},
    "in a package": {f"{SITE}/demo/mine.py": "4\n", f"{SITE}/demo/libs/mine/x.bin": "5\n"},
    "in a new folder of a package": {f"{SITE}/demo/more/mine.py": "6\n", f"{SITE}/nvidia/demo/mine.so": "7\n"},
    "in place of a folder": {"lib/stale/mine.txt": "8\n"},
    "everywhere": {"etc/conda/deactivate.d/other.sh": "9\n", f"{SITE}/demo/mine.py": "0\n", "lib/new/x": "a\n",
                   f"{SITE}/demo-2.0.dist-info/direct_url.json": "{}"},
}


@pytest.mark.parametrize("where", OTHERS)
def test_what_others_put_into_our_folders_stays(world: World, where: str) -> None:
    before = tree_of(world.prefix)
    apply(world)
    added, made = OTHERS[where], tree_of(world.prefix)
    for path, text in added.items():
        world.write(path, text)
        if path.startswith("lib/stale"):
            (world.prefix / "lib/stale").chmod(0o750)
    place = {path: (world.prefix / path).stat().st_ino for path in added}
    compiled = py_compile.compile(str(world.prefix / f"{SITE}/demo/__init__.py"))
    assert compiled
    undone = undo(world.prefix)
    after = tree_of(world.prefix)
    assert {path: (world.prefix / path).read_text(encoding="utf-8") for path in added} == added
    assert {path: (world.prefix / path).stat().st_ino for path in added} == place
    folders = {str(above) for path in added for above in Path(path).parents}
    assert {path: each for path, each in after.items() if path not in added and path not in folders} == {
        path: each for path, each in before.items() if path not in folders}
    for path in folders & before.keys():        # the same kind and mode; one that others are in is not made anew
        assert after[path][:2] == before[path][:2], path
    ours = {path for path in folders & made.keys() if path not in before}      # and they had to be left
    assert set(undone.left) == {path for path in ours if str(Path(path).parent) not in ours}
    assert transactions(world.prefix) == ()
    assert not (world.prefix / ".stackfix").exists()


def test_a_folder_that_came_back_in_place_of_our_file_keeps_what_others_have_in_it(world: World) -> None:
    before = tree_of(world.prefix)
    plan = plan_of(world, SetAside(path="lib/stale"), WriteFile(path="lib/stale", text="a file now\n"))
    apply_plan(replace(plan, actions=(replace(plan.actions[0], changes=()),)), world.prefix,
               installer=fake_installer(world))
    (world.prefix / "lib/stale").unlink()
    world.write("lib/stale/deep/a.txt", "kept\n", 0o640)
    (world.prefix / "lib/stale").chmod(0o750)
    mine = world.write("lib/stale/mine.txt", "mine\n")
    undo(world.prefix)
    assert mine.read_text(encoding="utf-8") == "mine\n"
    mine.unlink()
    after = tree_of(world.prefix)
    assert {path: each[:4] for path, each in after.items()} == {path: each[:4] for path, each in before.items()}


def test_whatever_others_did_an_undo_loses_nothing_of_it(tmp_path: Path) -> None:
    """At random: things removed, edited, added and put back. Either it is refused, or all is where it belongs."""
    chance = random.Random(int(os.environ.get("STACKFIX_UNDO_SEED", "1")))      # noqa: S311 - not a secret
    ends = Counter[str]()
    for _ in range(int(os.environ.get("STACKFIX_UNDOS", "40"))):
        with memory_folder(tmp_path) as folder:
            world = make_world(folder)
            copy = Path(shutil.copytree(world.prefix, folder / "copy", symlinks=True))
            before = contents(world)
            apply(world)
            made = contents(world)
            for _ in range(chance.randint(1, 6)):
                meddle(world, copy, chance, sorted({*before, *made}))
            found = contents(world)
            foreign = {path for path, each in found.items() if each not in (before.get(path), made.get(path))
                       and (path in before or path in made)}
            try:
                undone = undo(world.prefix)
            except ChangedSince:
                ends.update(["refused"])
                assert contents(world) == found
                assert {path for path in foreign if before.get(path) != made.get(path)}, "it had no reason"
                continue
            ends.update(["undone"])
            after = contents(world)
            for path in {*before, *made, *found}:
                judge_undone(path, before.get(path), made.get(path), found.get(path), after)
            assert all(path not in before for path in undone.left)
            assert not (world.prefix / ".stackfix").exists()
    assert min(ends["refused"], ends["undone"]) > 0, ends


def contents(world: World) -> dict[str, tuple[object, ...]]:
    """Kind, mode, and bytes or target of all but our own folder."""
    return {path: each[:3] for path, each in tree_of(world.prefix, inodes=False).items()
            if path != "." and not path.startswith(".stackfix")}


def meddle(world: World, copy: Path, chance: random.Random, known: list[str]) -> None:
    """One thing that somebody does in the environment: to a path that was or is there, or to a new one."""
    path = chance.choice(known)
    place, what = world.prefix / path, chance.choice(("remove", "remove", "edit", "add", "put back", "put back"))
    if what == "add":
        folders = [each for each in known if (world.prefix / each).is_dir() and not (world.prefix / each).is_symlink()]
        world.write(f"{chance.choice(folders)}/added-{chance.random()}/deep.txt", "added\n")
    elif what == "remove" and os.path.lexists(place) and path not in {"bin", "lib", "lib/python3.11", SITE}:
        remove(place)
    elif what == "edit" and place.is_file() and not place.is_symlink():
        rewrite(place, f"edited {chance.random()}\n")
    elif what == "put back" and os.path.lexists(copy / path) and place.parent.is_dir() and not place.is_dir():
        if os.path.lexists(place):
            remove(place)
        if (copy / path).is_dir() and not (copy / path).is_symlink():
            shutil.copytree(copy / path, place, symlinks=True)
        else:
            shutil.copy2(copy / path, place, follow_symlinks=False)


def judge_undone(path: str, before: object, made: object, found: object, after: dict[str, tuple[object, ...]]) -> None:
    """One path after an undo: as before where the repair had changed it, else as others left it."""
    if path.endswith((".pyc", "__pycache__")):
        return
    now = after.get(path)
    needed = any(each.startswith(f"{path}/") for each in after)
    if before == made or (before is None and made is None):     # no business of the repair
        assert now == found or (found is None and needed), path
    elif before is None:                                        # ours: gone, but for a folder that others are in
        assert now is None or needed, path
    else:
        assert now == before, path


def test_another_file_where_one_was_set_aside_is_a_change(world: World) -> None:
    """In a folder that came back as another release's: what is put back would take its place."""
    apply(world)
    world.write(f"{SITE}/demo/core.py", "mine\n")
    with pytest.raises(ChangedSince) as caught:
        undo(world.prefix)
    assert caught.value.differences == ((f"{SITE}/demo/core.py", "is there again"),)
    undone = undo(world.prefix, forced=True)
    [kept] = undone.kept
    assert (world.prefix / kept.copy).read_text(encoding="utf-8") == "mine\n"
    assert (world.prefix / SITE / "demo/core.py").read_text(encoding="utf-8") == "core = 1\n"


def test_what_comes_up_in_the_way_while_it_is_put_back_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = tree_of(world.prefix)
    apply(world)
    mine = world.prefix / SITE / "shadow.py"
    real = syscalls.rename

    def rename(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        if not mine.exists():
            mine.write_text("mine\n", encoding="utf-8")
        real(old, new, old_folder=old_folder, new_folder=new_folder)

    monkeypatch.setattr(syscalls, "rename", rename)
    with pytest.raises(NotTakenBack, match="File exists"):
        undo(world.prefix)
    monkeypatch.undo()
    assert mine.read_text(encoding="utf-8") == "mine\n"
    mine.unlink()
    take_back(world.prefix)
    assert tree_of(world.prefix) == before


@pytest.mark.parametrize("how", ["gone", "edited"])
def test_what_was_put_back_before_a_kill_is_no_change_of_somebodys(how: str, world: World,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies where ours was missing, or was set apart: a resumed undo took it for an edit of ours."""
    before = tree_of(world.prefix)
    apply(world)
    place, mode = world.prefix / "bin/activate", (world.prefix / "bin/activate").stat().st_mode
    place.unlink() if how == "gone" else rewrite(place, "edited\n")
    rename = syscalls.rename

    def stop_once_it_is_back(old: str, new: str, *, old_folder: int, new_folder: int) -> None:
        rename(old, new, old_folder=old_folder, new_folder=new_folder)
        if place.exists() and place.read_text() == "# as the venv made it\n":
            raise KeyboardInterrupt

    monkeypatch.setattr(syscalls, "rename", stop_once_it_is_back)
    with pytest.raises(KeyboardInterrupt):
        undo(world.prefix, forced=how == "edited")
    monkeypatch.undo()
    assert take_back(world.prefix).kept == ()
    assert place.stat().st_mode == mode
    assert {path: each for path, each in tree_of(world.prefix).items() if not path.startswith(".stackfix")} == before


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
