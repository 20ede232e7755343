"""Sdists are unpacked into their folder, or refused; nothing of them is ever elsewhere."""

from __future__ import annotations

import errno
import io
import os
import tarfile
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from stackfix.sources import sdist_build_unpack
from stackfix.sources.archives import BadArchive
from stackfix.sources.sdist_build_unpack import unpack_sdist
from tests.sdists import special, tar

SETUP = {"demo-1.0/setup.py": "print()"}


def zipped(members: dict[str, str], *, mode: int = 0) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, text in members.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = mode << 16
            archive.writestr(info, text)
    return stream.getvalue()


def lying(text: str, stated: int) -> bytes:
    """A zip whose only file says to be `stated` bytes long."""
    content = bytearray(zipped({"demo-1.0/setup.py": text}))
    for at in (22, content.index(b"PK\x01\x02") + 24):      # of the local header and of the directory
        content[at:at + 4] = stated.to_bytes(4, "little")
    return bytes(content)


@pytest.mark.parametrize(("content", "name"), [
    (tar({**SETUP, "demo-1.0/src/a.py": "a"}), "demo-1.0.tar.gz"),
    (zipped({**SETUP, "demo-1.0/src/a.py": "a"}), "demo-1.0.zip"),
    (tar({**{f"./{path}": text for path, text in SETUP.items()}, "demo-1.0/src/a.py": "a"}), "demo-1.0.tar.gz"),
])
def test_the_sources_lie_in_one_folder(content: bytes, name: str, tmp_path: Path) -> None:
    found = unpack_sdist(content, name, tmp_path / "source")
    assert found == tmp_path / "source" / "demo-1.0"
    assert {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()} == {"setup.py", "src/a.py"}


def test_links_within_are_copies_of_what_they_lead_to(tmp_path: Path) -> None:
    content = tar({**SETUP, "demo-1.0/src/a.py": "a"}, special("demo-1.0/b.py", tarfile.SYMTYPE, "c.py"),
                  special("demo-1.0/c.py", tarfile.SYMTYPE, "src/../src/a.py"),
                  special("demo-1.0/d.py", tarfile.LNKTYPE, "demo-1.0/src/a.py"),
                  special("demo-1.0/tree", tarfile.SYMTYPE, "src"))
    found = unpack_sdist(content, "demo-1.0.tar.gz", tmp_path / "source")
    assert [(found / name).read_text() for name in ("b.py", "c.py", "d.py", "tree/a.py")] == ["a"] * 4
    assert not [path for path in found.rglob("*") if path.is_symlink()]


def test_what_may_run_may_still_run(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, mode in (("demo-1.0/setup.py", 0o644), ("demo-1.0/configure", 0o6775)):
            member = tarfile.TarInfo(path)
            member.mode = mode
            archive.addfile(member)
    found = unpack_sdist(stream.getvalue(), "demo-1.0.tar.gz", tmp_path / "source")
    assert (found / "configure").stat().st_mode & 0o7777 == 0o755
    assert (found / "setup.py").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(("content", "reason"), [
    (tar({**SETUP, "../outside": "x"}), "'../outside', which lies outside"),
    (tar({**SETUP, "demo-1.0/../../outside": "x"}), "lies outside"),
    (tar({**SETUP, "/outside-stackfix": "x"}), "lies outside"),
    (tar({**SETUP, "C:\\outside": "x"}), "lies outside"),
    (zipped({**SETUP, "../outside": "x"}), "lies outside"),
    (zipped({**SETUP, "/outside-stackfix": "x"}), "lies outside"),
    (tar(SETUP, special("demo-1.0/x", tarfile.SYMTYPE, "/etc/passwd")), "a link to '/etc/passwd' outside|/etc/passwd"),
    (tar(SETUP, special("demo-1.0/x", tarfile.SYMTYPE, "../../outside")), "a link to .* outside of it"),
    (tar(SETUP, special("demo-1.0/x", tarfile.LNKTYPE, "../outside")), "a link to .* outside of it"),
    (tar(SETUP, special("demo-1.0/x", tarfile.SYMTYPE, "x")), "a link to what it does not hold"),
    (tar(SETUP, special("demo-1.0/x", tarfile.SYMTYPE, "y"), special("demo-1.0/y", tarfile.SYMTYPE, "x")),
     "a link to what it does not hold"),
    (tar(SETUP, special("demo-1.0/x", tarfile.SYMTYPE, ".")), "a link to a folder that it lies in"),
    (tar(SETUP, special("demo-1.0/x", tarfile.CHRTYPE)), "no file, folder or link"),
    (tar(SETUP, special("demo-1.0/x", tarfile.FIFOTYPE)), "no file, folder or link"),
    (zipped(SETUP, mode=0o120777), "no file or folder"),
    (tar({}), "no folders at its top"),
    (tar({**SETUP, "other/setup.py": ""}), "2 folders at its top"),
    (tar({"demo-1.0/README": ""}), "neither pyproject.toml nor setup.py"),
    (tar({"setup.py": ""}), "no folders at its top"),
    (tar({**SETUP, "demo-1.0/setup.py/inner": ""}), "cannot be unpacked"),
    (tar({**SETUP, f"demo-1.0/{'n' * 1100}": ""}), "a name of 1109 characters"),
    (tar({**SETUP, f"demo-1.0/{'n' * 300}": ""}), "cannot be unpacked"),
    (tar(SETUP)[:60], "cannot be unpacked"),
    (b"no archive", "cannot be unpacked"),
    (lying("x" * 100, 5), "larger than it says|cannot be unpacked"),
])
def test_what_reaches_elsewhere_or_is_no_sdist_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    name = "demo-1.0.zip" if content[:2] == b"PK" else "demo-1.0.tar.gz"
    with pytest.raises(BadArchive, match=reason):
        unpack_sdist(content, name, tmp_path / "source")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    assert not Path("/outside-stackfix").exists()
    assert not [path for path in (tmp_path / "source").rglob("*") if path.is_symlink()]


@pytest.mark.parametrize(("content", "reason"), [
    (tar({"demo-1.0/setup.py": "x" * 200_000}), "unpacks to more than 100000 bytes"),
    (zipped({"demo-1.0/setup.py": "x" * 200_000}), "unpacks to more than 100000 bytes"),
    (tar({**SETUP, "demo-1.0/a": "x" * 60_000}, special("demo-1.0/b", tarfile.SYMTYPE, "a")),
     "unpacks to more than 100000 bytes"),
    (tar({f"demo-1.0/{number}": "" for number in range(51)}), "more than 50 files"),
    (tar({**SETUP, f"demo-1.0/{'d/' * 60}f": ""}), "more than 50 files"),
    (tar({**SETUP, "demo-1.0/d0/f": ""}, *(
        special(f"demo-1.0/d{number}/{name}", tarfile.SYMTYPE, f"../d{number - 1}")
        for number in range(1, 7) for name in "xy")), "links to more than 20 files"),
    (tar({**SETUP, **{f"demo-1.0/tree/{number}": "" for number in range(30)}}, special(
        "demo-1.0/b", tarfile.SYMTYPE, "tree")), "links to more than 20 files"),
    (tar({**SETUP, **{f"demo-1.0/{number}": "" for number in range(40)}}, *(
        special(f"demo-1.0/l{number}", tarfile.SYMTYPE, "0") for number in range(6))), "more than 50 files"),
])
def test_an_archive_that_grows_is_stopped(
    content: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sdist_build_unpack, "MOST_BYTES", 100_000)
    monkeypatch.setattr(sdist_build_unpack, "MOST_MEMBERS", 50)
    monkeypatch.setattr(sdist_build_unpack, "MOST_COPIES", 20)
    with pytest.raises(BadArchive, match=reason):
        unpack_sdist(content, "demo-1.0.zip" if content[:2] == b"PK" else "demo-1.0.tar.gz", tmp_path / "source")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 100_000
    assert len([*(tmp_path / "source").rglob("*")]) <= 50


@pytest.mark.parametrize(("links", "reason"), [(40, ""), (41, "more than 40 links that lead to one another")])
def test_links_lead_to_one_another_as_far_as_a_system_follows_them(tmp_path: Path, links: int, reason: str) -> None:
    content = tar({**SETUP, "demo-1.0/0": "x"}, *(
        special(f"demo-1.0/{number}", tarfile.SYMTYPE, f"{number - 1}") for number in range(1, links + 1)))
    with pytest.raises(BadArchive, match=reason) if reason else nullcontext():
        assert (unpack_sdist(content, "demo-1.0.tar.gz", tmp_path / "source") / "40").read_text() == "x"


@pytest.mark.parametrize(("further", "reason"), [
    (special("demo-1.0/setup.py/", tarfile.DIRTYPE), "'demo-1.0/setup.py': File exists"),
    (special("demo-1.0/src", tarfile.SYMTYPE, "setup.py"), "'demo-1.0/src': Is a directory"),
])
def test_names_that_clash_are_told_without_the_scratch_folder(
    further: tarfile.TarInfo, reason: str, tmp_path: Path,
) -> None:
    with pytest.raises(BadArchive) as fault:
        unpack_sdist(tar({**SETUP, "demo-1.0/src/a": ""}, further), "demo-1.0.tar.gz", tmp_path / "source")
    assert str(fault.value) == f"the sdist cannot be unpacked ({reason})"


@pytest.mark.parametrize("content", [tar(SETUP), zipped(SETUP), tar({"demo-1.0/a/setup.py": ""})])
def test_what_the_disk_does_is_no_fault_of_the_archive(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(path: Path, *how: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    into = tmp_path / "source"
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        unpack_sdist(content, "demo-1.0.zip" if content[:2] == b"PK" else "demo-1.0.tar.gz", into)
