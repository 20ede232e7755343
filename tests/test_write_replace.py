"""All files or none, and what was there before is put back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from stackfix.errors import Unreachable
from stackfix.write import replace as module
from stackfix.write.replace import replace_files

NEW = {"a.txt": b"new a", "b.txt": b"new b", "c.txt": b"new c"}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_new_and_old_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old a")
    (tmp_path / "other").write_bytes(b"kept")
    replace_files(tmp_path, NEW)
    assert tree(tmp_path) == {**NEW, "other": b"kept"}


def test_modes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"old a")
    (tmp_path / "a.txt").chmod(0o640)
    before = os.umask(0o027)
    try:
        replace_files(tmp_path, NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "b.txt").stat().st_mode) == 0o640


def test_what_holds_already_is_not_touched(tmp_path: Path) -> None:
    replace_files(tmp_path, NEW)
    before = (tmp_path / "a.txt").stat()
    replace_files(tmp_path, NEW)
    after = (tmp_path / "a.txt").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("failing", ["a.txt", "b.txt", "c.txt"])
def test_a_failed_move_takes_the_earlier_ones_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str,
) -> None:
    """The disk fails at one move: no part of ours can be made to, so the call that moves is replaced."""
    (tmp_path / "a.txt").write_bytes(b"old a")
    (tmp_path / "c.txt").write_bytes(b"old c")
    before = tree(tmp_path)
    real: Callable[[Path, Path], Path] = Path.replace

    def fail_once(self: Path, target: Path) -> Path:
        if target.name == failing and self.name.endswith(".new"):
            raise OSError(5, "Input/output error", str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail_once)
    with pytest.raises(Unreachable, match="Input/output error"):
        replace_files(tmp_path, NEW)
    assert tree(tmp_path) == before


def test_a_name_is_removed_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"old a")
    replace_files(tmp_path, {"a.txt": None, "b.txt": b"new b", "gone.txt": None})
    assert tree(tmp_path) == {"b.txt": b"new b"}
    real: Callable[[Path], Path | None] = module.save_aside

    def fail(place: Path) -> Path | None:
        if place.name == "c.txt":
            raise OSError(5, "Input/output error", str(place))
        return real(place)

    monkeypatch.setattr(module, "save_aside", fail)
    with pytest.raises(Unreachable, match="Input/output error"):
        replace_files(tmp_path, {"b.txt": None, "c.txt": b"new c"})
    assert tree(tmp_path) == {"b.txt": b"new b"}


def test_an_interrupt_takes_the_earlier_ones_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"old a")
    real: Callable[[Path], Path | None] = module.save_aside

    def interrupt(place: Path) -> Path | None:
        if place.name == "c.txt":
            raise KeyboardInterrupt
        return real(place)

    monkeypatch.setattr(module, "save_aside", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_files(tmp_path, NEW)
    assert tree(tmp_path) == {"a.txt": b"old a"}


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "c.txt").mkdir()
    with pytest.raises(Unreachable, match=r"c\.txt: is in the way"):
        replace_files(tmp_path, NEW)
    assert tree(tmp_path) == {}


def test_a_pipe_in_the_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "b.txt")
    with pytest.raises(Unreachable, match=r"b\.txt: is in the way"):
        replace_files(tmp_path, NEW)
    assert tree(tmp_path) == {}


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "out" / "b.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(Unreachable, match=r"b\.txt: is a link that leads out of"):
        replace_files(tmp_path / "out", NEW)
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["b.txt"]


def test_a_dangling_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.txt").symlink_to(tmp_path / "nothing")
    with pytest.raises(Unreachable, match="leads out of"):
        replace_files(tmp_path / "out", NEW)
    assert not (tmp_path / "nothing").exists()


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_bytes(b"old")
    (tmp_path / "a.txt").symlink_to("real.txt")
    replace_files(tmp_path, {"a.txt": b"new"})
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new"


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("a.txt")
    with pytest.raises(Unreachable, match=r"a\.txt"):
        replace_files(tmp_path, NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "a\\b", "/etc/x", "a\0b"])
def test_a_name_that_is_no_bare_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreachable, match="not a bare file name"):
        replace_files(tmp_path / "new", {"a.txt": b"x", name: b"x"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(Unreachable, match="is not a folder"):
        replace_files(tmp_path / "file", NEW)
    with pytest.raises(Unreachable, match="Not a directory"):
        replace_files(tmp_path / "file" / "below", NEW)
    assert tree(tmp_path) == {"file": b"x"}


def test_folders_made_for_nothing_go_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes, *, like: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(module, "write_new", full)
    with pytest.raises(Unreachable, match="No space left on device"):
        replace_files(tmp_path / "x" / "y", NEW)
    assert list(tmp_path.iterdir()) == []
