"""Paths are walked by descriptor; links are read, and stay inside or are refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.errors import LeavesPrefix
from stackfix.apply.moves import make_folders, move, remove
from stackfix.apply.nodes import difference, node_at
from stackfix.apply.tree import Tree, parts_of, split
from stackfix.errors import BadInput
from stackfix.plan.records import Node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    env = tmp_path / "env"
    (env / "lib/python3.11").mkdir(parents=True)
    (env / "lib/file").write_text("x", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    links = {"lib64": "lib", "abs": str(env / "lib"), "out": "../outside", "away": "/etc", "round": "round",
             "a": "b", "b": "a", "lib/up": "../lib/up2", "lib/up2": "python3.11", "back": "../env/lib",
             "lost": "gone/x"}
    for name, target in links.items():
        (env / name).symlink_to(target)
    return env


@pytest.mark.parametrize(("path", "expected"), [
    ("lib64/x", "lib/x"), ("abs/x/y", "lib/x/y"), ("lib64/up/x", "lib/python3.11/x"), ("lib64", "lib64"),
    ("lost/x", "gone/x/x"), ("none/x", "none/x"), ("lib/file", "lib/file"),
])
def test_links_on_the_way_are_read(folder: Path, path: str, expected: str) -> None:
    with Tree(folder) as tree:
        assert tree.resolve(path) == expected


@pytest.mark.parametrize("path", ["out/x", "away/x", "round/x", "a/x", "back/x", "../x", "/x", "lib/../../x"])
def test_what_leads_out_or_round_is_refused(folder: Path, path: str) -> None:
    with Tree(folder) as tree, pytest.raises(LeavesPrefix):
        tree.resolve(path)


def test_a_link_at_the_end_is_read_when_asked(folder: Path) -> None:
    with Tree(folder) as tree:
        assert tree.resolve("lib64", last=True) == "lib"
        with pytest.raises(LeavesPrefix):
            tree.resolve("away", last=True)


@pytest.mark.parametrize("path", ["a//b", "./a", "a/", "a\0b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadInput):
        parts_of(path)


def test_the_prefix_itself_is_no_name() -> None:
    with pytest.raises(BadInput):
        split("")


def test_no_folder_is_opened_through_a_link(folder: Path) -> None:
    with Tree(folder) as tree:
        for path in ("lib64", "out", "lib64/python3.11"):
            with pytest.raises(OSError, match="Not a directory"), tree.folder(path):
                pass
        assert tree.status("lib64/file") is None


@pytest.mark.parametrize("with_renameat2", [True, False])
def test_a_move_never_replaces(folder: Path, monkeypatch: pytest.MonkeyPatch, *, with_renameat2: bool) -> None:
    if not with_renameat2:
        monkeypatch.setattr(syscalls, "found", lambda name: None)
    (folder / "other").write_text("other", encoding="utf-8")
    with Tree(folder) as tree:
        for place in ("other", "lib64", "lost", "lib/python3.11"):
            with pytest.raises(FileExistsError):
                move(tree, "lib/file", place, merge=False, expand=lambda: None)
        inode = (folder / "lib/file").stat().st_ino
        move(tree, "lib/file", "moved", merge=False, expand=lambda: None)
    assert (folder / "moved").stat().st_ino == inode
    assert (folder / "other").read_text(encoding="utf-8") == "other"


def test_a_removal_follows_no_link_and_opens_what_is_closed(folder: Path) -> None:
    (folder.parent / "outside/kept").write_text("x", encoding="utf-8")
    with Tree(folder) as tree:
        make_folders(tree, "mine/closed/deep")
        (folder / "mine/link").symlink_to(folder.parent / "outside")
        (folder / "mine/closed/deep/file").write_text("x", encoding="utf-8")
        (folder / "mine/closed").chmod(0)
        remove(tree, "mine")
        remove(tree, "not there")
    assert not (folder / "mine").exists()
    assert (folder.parent / "outside/kept").exists()


def test_a_node_says_what_is_there_and_a_fifo_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    with Tree(folder) as tree:
        assert node_at(tree, "fifo").kind == "other"
        assert node_at(tree, "lib64") == Node(kind="link", target="lib")
        assert node_at(tree, "none") == Node(kind="absent")
        with pytest.raises(OSError, match="not a plain file"):
            tree.read("fifo")


@pytest.mark.parametrize(("expected", "actual", "how"), [
    (Node(kind="file"), Node(kind="file", sha256="a", mode=0o644), None),
    (Node(kind="absent"), Node(kind="link", target="x"), "is a link now"),
    (Node(kind="link", target="x"), Node(kind="link", target="y"), "is a link to y now, not to x"),
    (Node(kind="file", mode=0), Node(kind="file", mode=0o644), "has mode 644, not 0"),
    (Node(kind="folder"), Node(kind="file"), "is a file now, not a folder"),
])
def test_a_difference_is_told_in_words(expected: Node, actual: Node, how: str | None) -> None:
    assert difference(expected, actual) == how


def test_a_folder_of_a_lower_layer_is_moved_and_comes_back(tmp_path: Path) -> None:
    """Overlayfs, as in a container's image: such a folder cannot be renamed (EXDEV)."""
    folders = {name: tmp_path / name for name in ("lower", "upper", "work", "merged")}
    for place in folders.values():
        place.mkdir()
    (folders["lower"] / "pkg/deep").mkdir(parents=True)
    (folders["lower"] / "pkg/deep/a").write_text("a", encoding="utf-8")
    (folders["lower"] / "pkg/deep").chmod(0o750)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(tmp_path / "upper")], check=False, capture_output=True)
    options = f"lowerdir={folders['lower']},upperdir={folders['upper']}/u,workdir={folders['upper']}/w,redirect_dir=off"
    for name in ("u", "w"):
        (folders["upper"] / name).mkdir()
    done = subprocess.run(["mount", "-t", "overlay", "-o", options, "none", str(folders["merged"])], check=False,
                          capture_output=True)
    if done.returncode != 0:
        subprocess.run(["umount", str(folders["upper"])], check=False, capture_output=True)
        pytest.skip("no overlay file system can be mounted")
    expanded = []
    try:
        with Tree(folders["merged"]) as tree:
            move(tree, "pkg", "kept", merge=False, expand=lambda: expanded.append("pkg"))
            assert not tree.exists("pkg")
            assert (folders["merged"] / "kept/deep").stat().st_mode & 0o777 == 0o750
            move(tree, "kept", "pkg", merge=True, expand=lambda: None)
        assert (folders["merged"] / "pkg/deep/a").read_text(encoding="utf-8") == "a"
        assert expanded == ["pkg"]
    finally:
        subprocess.run(["umount", str(folders["merged"])], check=True)
        subprocess.run(["umount", str(folders["upper"])], check=True)
