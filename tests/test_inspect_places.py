"""A folder as a machine's root: nothing outside it is read, and every path ends."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.places import Entry, Root, list_or_note, must_list, open_root
from tests.inspect_trees import link, write


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "tree").mkdir()
    write(tmp_path, "secret", "outside")
    write(tmp_path, "tree/etc/name", "inside")
    return open_root(tmp_path / "tree")


def test_an_absolute_link_starts_at_the_root(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "usr/name", "/etc/name")
    assert root.resolve("/usr/name") == "/etc/name"
    assert root.find_text("/usr/name") == "inside"
    assert root.link_target("/usr/name") == "/etc/name"


def test_dots_end_at_the_root(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "up", "../../../etc/name")
    link(tmp_path / "tree", "out", "../secret")
    assert root.find_text("/up") == "inside"
    assert root.find_text("/../../etc/../etc/name") == "inside"
    assert root.find_text("/out") is None
    assert root.find_text("/../secret") is None


def test_a_link_to_our_own_file_does_not_leave(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "out", str(tmp_path / "secret"))
    assert root.find_text("/out") is None
    assert root.lexists("/out")
    assert not root.exists("/out")


def test_loops_end(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "a", "b")
    link(tmp_path / "tree", "b", "/a")
    link(tmp_path / "tree", "deep", "deep/deep/x")
    for path in ("/a", "/b/c", "/deep"):
        assert root.find(path) is None
    with pytest.raises(OSError, match="symbolic links"):
        root.resolve("/a")


def test_a_chain_of_forty_links_is_followed_and_one_more_is_not(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "l0", "/etc/name")
    for number in range(1, 41):
        link(tmp_path / "tree", f"l{number}", f"l{number - 1}")
    assert root.find("/l39") == "/etc/name"
    assert root.find("/l40") is None


def test_a_file_is_no_folder(root: Root) -> None:
    assert root.find("/etc/name/") is None
    assert root.find("/etc/name/..") is None
    assert root.find("/etc/name/x") is None


@pytest.mark.parametrize("path", ["", "etc/name", "/etc/na\0me", "/\ud800"])
def test_a_path_that_no_call_takes_is_an_answer(root: Root, path: str) -> None:
    assert root.find(path) is None
    assert root.find_text(path) is None
    assert Root().find(path) is None
    assert Root().find_text(path) is None


def test_a_fifo_and_a_device_are_not_opened(root: Root, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tree" / "pipe")
    for path in ("/pipe", "/etc"):
        with pytest.raises(OSError, match="not a plain file"):
            root.read_bytes(path, 10)
    with pytest.raises(OSError, match="not a plain file"):
        Root().read_bytes("/dev/zero", 10)
    assert root.find_entries("/")[-1] == Entry(name="pipe", kind="other", size=0)


def test_a_file_longer_than_the_limit_is_refused_and_its_head_is_not(root: Root) -> None:
    assert root.read_bytes("/etc/name", 6) == b"inside"
    with pytest.raises(OSError, match="longer than 5 bytes"):
        root.read_bytes("/etc/name", 5)
    assert root.read_head("/etc/name", 3) == b"ins"


def test_entries_are_sorted_and_links_stay_links(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "tree", "etc/dir", "/etc")
    write(tmp_path, "tree/etc/b/c")
    assert [(each.name, each.kind) for each in root.entries("/etc")] == [
        ("b", "folder"), ("dir", "link"), ("name", "file")]
    assert root.first_folders(("/etc", "/etc/dir", "/none", "/etc/name", "/etc/b")) == ("/etc", "/etc/b")


def test_the_live_root_answers_as_the_tree_does(tmp_path: Path) -> None:
    write(tmp_path, "etc/name", "inside")
    link(tmp_path, "name", "etc/name")
    link(tmp_path, "loop", "loop")
    live, where = Root(), os.path.realpath(tmp_path)
    assert live.resolve(f"{where}/name") == f"{where}/etc/name"
    assert live.find_text(f"{where}/name") == "inside"
    assert live.find(f"{where}/loop") is None
    assert live.link_target(f"{where}/loop") == "loop"
    assert live.live
    assert not open_root(tmp_path).live


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", write(tmp_path, "file")):
        with pytest.raises(BadInput, match="no such folder"):
            open_root(path)


def test_what_cannot_be_listed_is_told(root: Root) -> None:
    assert list_or_note(root, "/none") == ((), None)
    assert list_or_note(root, "/etc/name") == ((), "Not a directory")
    with pytest.raises(Unreachable, match="Not a directory"):
        must_list(root, "/etc/name")


# Runs as root in a fresh interpreter: opens each path inside each tree after chroot, so the kernel itself answers.
ORACLE = """
import json, os, sys
answers = []
for tree, paths in json.load(sys.stdin):
    read, write = os.pipe()
    if os.fork() == 0:
        os.chroot(tree)
        found = []
        for path in paths:
            try:
                status = os.stat(os.open(path, os.O_PATH))
                found.append([status.st_dev, status.st_ino])
            except OSError:
                found.append(None)
        os.write(write, json.dumps(found).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        answers.append(json.loads(stream.read()))
    os.wait()
print(json.dumps(answers))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot, the oracle, needs root")
def test_a_tree_is_walked_as_the_kernel_walks_a_chroot(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    drawn = random.Random(seed)     # noqa: S311 - no secret

    def path() -> str:
        parts = drawn.choices(["a", "b", "c", "d", ".", "..", ""], k=drawn.randint(1, 5))
        return drawn.choice(["", "/"]) + "/".join(parts) or "."

    asked = []
    for number in range(120):
        tree = tmp_path / str(number)
        (tree / "c" / "c").mkdir(parents=True)
        write(tree, "c/d")
        for name in ("a", "b", "c/a", "c/b", "c/c/a"):
            if drawn.random() < 0.7:
                link(tree, name, path())
        asked.append((str(tree), [f"/{path().lstrip('/')}" for _ in range(25)]))
    done = subprocess.run([sys.executable, "-I", "-c", ORACLE], input=json.dumps(asked), capture_output=True, text=True,
                          check=True, timeout=120)
    reached = 0
    for (tree_name, paths), answers in zip(asked, json.loads(done.stdout), strict=True):
        root = Root(tree_name)
        for each, answer in zip(paths, answers, strict=True):
            status = root.status(each)
            assert (answer and tuple(answer)) == (status and (status.st_dev, status.st_ino)), (seed, tree_name, each)
            reached += answer is not None
    assert reached > 500        # the paths are not all of nothing


def test_a_path_that_no_system_call_takes_is_no_link(root: Root) -> None:
    for path in ("relative", "/a\0b", "/\ud800"):
        assert root.link_target(path) is None
        assert not root.lexists(path)
