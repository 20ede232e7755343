"""An sdist unpacked for a build: nothing outside its folder, no devices, no links, all bounded.

Not tarfile's own extraction: its filters leave links on the disk, and links are how archives got around them. A link
within the sdist becomes a copy of what it leads to; one that leads elsewhere is refused.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import IO

from stackfix.sources.archives import BROKEN, BadArchive, Bounded, short

MOST_BYTES = 1024 * 1024 * 1024
MOST_MEMBERS = 100_000
_LONGEST = 1024         # of a member's name
_PIECE = 1 << 16


def unpack_sdist(content: bytes, filename: str, into: Path) -> Path:
    """The folder of the sources in `into`. Raises BadArchive for what is no sdist, or would reach elsewhere."""
    into.mkdir()
    tree = _Tree(into)
    try:
        if filename.lower().endswith(".zip"):
            _read_zip(content, tree)
        else:
            _read_tar(content, tree)
        tree.copy_links()
    except BROKEN as fault:
        raise BadArchive(f"the sdist cannot be unpacked ({short(fault)})") from None
    found = [path for path in into.iterdir() if path.is_dir()]
    if len(found) != 1:
        raise BadArchive(f"the sdist has {len(found) or 'no'} folders at its top, where one holds the sources")
    if not any((found[0] / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise BadArchive("the sdist has neither pyproject.toml nor setup.py: nothing says how it is built")
    return found[0]


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
        self._links: dict[Path, Path] = {}

    def count(self, name: str, size: int) -> None:
        """Counts one member. Raises BadArchive beyond the bounds."""
        if len(name) > _LONGEST:
            raise BadArchive(f"the sdist holds a name of {len(name)} characters")
        self._members -= 1
        self._take(max(0, size))
        if self._members < 0:
            raise BadArchive(f"the sdist holds more than {MOST_MEMBERS} files")

    def _take(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            raise BadArchive(f"the sdist unpacks to more than {MOST_BYTES} bytes")

    def folder(self, name: str) -> None:
        self._place(name).mkdir(parents=True, exist_ok=True)

    def file(self, name: str, source: IO[bytes], size: int, *, runs: bool) -> None:
        """Writes one file of `size` bytes."""
        place = self._place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
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
        while waiting:
            ready = {place: target for place, target in waiting.items() if target not in waiting and target.exists()}
            for place, target in ready.items():
                files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
                self._take(sum(path.stat().st_size for path in files))
                place.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir() and (place == target or target in place.parents):
                    raise BadArchive(f"the sdist holds {place.name[:100]!r}, a link to a folder that it lies in")
                (shutil.copytree if target.is_dir() else shutil.copyfile)(target, place)
            waiting = {place: target for place, target in waiting.items() if place not in ready}
            if not ready:
                raise BadArchive(f"the sdist holds {next(iter(waiting)).name[:100]!r}, a link to what it does not hold")

    def _place(self, name: str) -> Path:
        """Where a member belongs. Raises BadArchive for one that lies elsewhere."""
        clean = posixpath.normpath(name)
        if clean.startswith(("/", "../")) or clean == ".." or "\0" in name or "\\" in name or ":" in name[:2]:
            raise BadArchive(f"the sdist holds {name[:100]!r}, which lies outside of it")
        return self._top / clean
