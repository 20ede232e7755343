"""An sdist unpacked for a build: nothing outside its folder, no devices, no links, all bounded.

Not tarfile's own extraction: its filters leave links on the disk, and links are how archives got around them. A link
within the sdist becomes a copy of what it leads to; one that leads elsewhere is refused.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import posixpath
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import IO

from stackfix.sources.archives import BROKEN, BadArchive, Bounded, short

MOST_BYTES = 1024 * 1024 * 1024
MOST_MEMBERS = 100_000  # files and folders
MOST_COPIES = 10_000    # of them in the place of links: some bytes of archive may ask for any number
MOST_LINKS = 40         # that lead to one another, as in Linux
_LONGEST = 1024         # of a member's name
_PIECE = 1 << 16
# What a name does to a disk. Any other fault of a file that is written is the disk's, not the sdist's.
_OF_NAMES = frozenset((errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ))


def unpack_sdist(content: bytes, filename: str, into: Path) -> Path:
    """The folder of the sources in `into`. Raises BadArchive for what is no sdist, or would reach elsewhere.

    OSError is left to be of the disk alone.
    """
    into.mkdir()
    tree = _Tree(into)
    try:
        if filename.lower().endswith(".zip"):
            _read_zip(content, tree)
        else:
            _read_tar(content, tree)
        tree.copy_links()
    except BROKEN as fault:
        told = short(fault)
        if isinstance(fault, OSError) and fault.errno is not None:
            if fault.errno not in _OF_NAMES:
                raise
            told = _clash(fault, into)
        raise BadArchive(f"the sdist cannot be unpacked ({told})") from None
    found = [path for path in into.iterdir() if path.is_dir()]
    if len(found) != 1:
        raise BadArchive(f"the sdist has {len(found) or 'no'} folders at its top, where one holds the sources")
    if not any((found[0] / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise BadArchive("the sdist has neither pyproject.toml nor setup.py: nothing says how it is built")
    return found[0]


def _clash(fault: OSError, into: Path) -> str:
    """What a name did, without a word of the folder that is gone afterwards."""
    name = str(fault.filename2 or fault.filename or "").removeprefix(f"{into}{os.sep}")
    return f"{name[:100]!r}: {fault.strerror}" if name else str(fault.strerror)


def _read_tar(content: bytes, tree: _Tree) -> None:
    stream = Bounded(gzip.GzipFile(fileobj=io.BytesIO(content)), MOST_BYTES)
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            tree.count(member.name, member.size)
            if member.isdir():
                tree.folder(member.name)
            elif member.issym():
                tree.link(member.name, posixpath.join(posixpath.dirname(member.name), member.linkname))
            elif member.islnk():
                tree.link(member.name, member.linkname)
            elif not member.isreg():
                raise BadArchive(f"the sdist holds {member.name[:100]!r}, which is no file, folder or link")
            elif (source := archive.extractfile(member)) is not None:
                tree.file(member.name, source, member.size, runs=bool(member.mode & 0o100))


def _read_zip(content: bytes, tree: _Tree) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            tree.count(info.filename, info.file_size)
            if info.is_dir():
                tree.folder(info.filename)
            elif (info.external_attr >> 28) not in {0, 8}:      # neither a plain file nor without a word of it
                raise BadArchive(f"the sdist holds {info.filename[:100]!r}, which is no file or folder")
            else:
                with archive.open(info) as source:
                    tree.file(info.filename, source, info.file_size, runs=bool(info.external_attr >> 16 & 0o100))


class _Tree:
    """The files of one archive below a folder that holds nothing else."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._members, self._bytes = MOST_MEMBERS, MOST_BYTES
        self._folders = {top}
        self._copies = MOST_COPIES
        self._links: dict[Path, Path] = {}

    def count(self, name: str, size: int) -> None:
        """Counts one member. Raises BadArchive beyond the bounds."""
        if len(name) > _LONGEST:
            raise BadArchive(f"the sdist holds a name of {len(name)} characters")
        self._take(1, max(0, size))

    def _take(self, members: int, size: int = 0) -> None:
        self._members -= members
        if self._members < 0:
            raise BadArchive(f"the sdist holds more than {MOST_MEMBERS} files")
        self._bytes -= size
        if self._bytes < 0:
            raise BadArchive(f"the sdist unpacks to more than {MOST_BYTES} bytes")

    def folder(self, name: str) -> None:
        self._make(self._place(name))

    def _make(self, folder: Path) -> None:
        """Makes a folder with those above it, each of them counted: one name may ask for hundreds."""
        new = []
        while folder not in self._folders:
            new.append(folder)
            folder = folder.parent
        self._take(len(new))
        for each in reversed(new):
            each.mkdir(exist_ok=True)
            self._folders.add(each)

    def file(self, name: str, source: IO[bytes], size: int, *, runs: bool) -> None:
        """Writes one file of `size` bytes."""
        place = self._place(name)
        self._make(place.parent)
        with place.open("wb") as file:
            while size >= 0 and (piece := source.read(_PIECE)):
                size -= len(piece)
                file.write(piece)
        if size < 0:
            raise BadArchive(f"the sdist holds {name[:100]!r}, which is larger than it says")
        place.chmod(0o755 if runs else 0o644)

    def link(self, name: str, target: str) -> None:
        """Notes a link; what it leads to may come later in the archive."""
        place = self._place(name)
        try:
            self._links[place] = self._place(target)
        except BadArchive:
            raise BadArchive(f"the sdist holds {name[:100]!r}, a link to {target[:100]!r} outside of it") from None

    def copy_links(self) -> None:
        """Puts a copy of what each link leads to in its place. Raises BadArchive for one that leads to nothing."""
        waiting = self._links
        for _ in range(MOST_LINKS):
            ready = {place: target for place, target in waiting.items() if target not in waiting and target.exists()}
            for place, target in ready.items():
                if target.is_dir() and (place == target or target in place.parents):
                    raise BadArchive(f"the sdist holds {place.name[:100]!r}, a link to a folder that it lies in")
                self._copy(target, place)
            waiting = {place: target for place, target in waiting.items() if place not in ready}
            if not waiting:
                return
            if not ready:
                raise BadArchive(f"the sdist holds {next(iter(waiting)).name[:100]!r}, a link to what it does not hold")
        raise BadArchive(f"the sdist holds more than {MOST_LINKS} links that lead to one another")

    def _copy(self, target: Path, place: Path) -> None:
        """Copies a file, or a folder with all in it, once all of it is counted."""
        found = [target, *(sorted(target.rglob("*")) if target.is_dir() else ())]
        self._copies -= len(found)
        if self._copies < 0:
            raise BadArchive(f"the sdist holds links to more than {MOST_COPIES} files")
        self._take(len(found), sum(path.stat().st_size for path in found if path.is_file()))
        self._make(place.parent)
        for path in found:
            new = place / path.relative_to(target)
            if path.is_dir():
                new.mkdir()
            else:
                shutil.copyfile(path, new)
                shutil.copymode(path, new)

    def _place(self, name: str) -> Path:
        """Where a member belongs. Raises BadArchive for one that lies elsewhere."""
        clean = posixpath.normpath(name)
        if clean.startswith(("/", "../")) or clean == ".." or "\0" in name or "\\" in name or ":" in name[:2]:
            raise BadArchive(f"the sdist holds {name[:100]!r}, which lies outside of it")
        return self._top / clean
