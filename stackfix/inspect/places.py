"""A folder as the root of a machine: `/` itself, an unpacked image, or a tree that stands for a machine."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stackfix.errors import BadInput, Unreachable

MAX_LINKS = 40              # the kernel's own limit for one path
KIB, MIB = 1 << 10, 1 << 20
TEXT_LIMIT = 256 * KIB      # facts of a machine are small files


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder, links not followed."""

    name: str
    kind: str               # "file", "folder", "link" or "other"
    size: int               # of the name itself: a link's own size for a link


@dataclass(frozen=True, slots=True)
class Root:
    """Reads below `folder` as if it were `/`.

    Paths are absolute and inside the root. A link's absolute target starts at the root, `..` ends there, and more
    than 40 links are a loop, so nothing outside the folder is ever opened. Only plain files are read, and never more
    than a limit: a FIFO, a device or an endless file in a hostile tree is an OSError, not a hang. Nothing is run.
    """

    folder: str = "/"       # on our disk, absolute, no slash at its end

    @property
    def live(self) -> bool:
        """Whether this is the running machine, so that its processes, kernel and programs may be asked."""
        return self.folder == "/"

    def resolve(self, path: str) -> str:
        """`path` without links, inside the root. Raises OSError where it does not exist or does not end."""
        must_be_usable(path)
        return os.path.realpath(path, strict=True) if self.live else self._walk(path)

    def _walk(self, path: str) -> str:
        ahead, here, links = path.split("/")[::-1], list[str](), 0
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del here[-1:]
                continue
            mode = os.lstat(self.host("/" + "/".join([*here, part]))).st_mode
            if stat.S_ISLNK(mode):
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(self.host("/" + "/".join([*here, part])))  # noqa: PTH115 - text, not a Path
                here = [] if target.startswith("/") else here
                ahead += target.split("/")[::-1]
                continue
            if ahead and not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            here.append(part)
        return "/" + "/".join(here)

    def host(self, resolved: str) -> str:
        """Where a path without links lies on our disk."""
        return resolved if self.live else self.folder + resolved

    def find(self, path: str) -> str | None:
        """`path` without links, or None where nothing can be reached under it."""
        try:
            return self.resolve(path)
        except OSError:
            return None

    def status(self, path: str) -> os.stat_result | None:
        """Status of what `path` leads to, or None."""
        try:
            return os.lstat(self.host(self.resolve(path)))
        except OSError:
            return None

    def is_folder(self, path: str) -> bool:
        found = self.status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def is_file(self, path: str) -> bool:
        found = self.status(path)
        return found is not None and stat.S_ISREG(found.st_mode)

    def exists(self, path: str) -> bool:
        return self.status(path) is not None

    def lexists(self, path: str) -> bool:
        """Whether the name is there, be it a link to nowhere."""
        return self.link_target(path) is not None or self.exists(path)

    def link_target(self, path: str) -> str | None:
        """What the link `path` says, or None where it is no link."""
        parent, _, name = path.rstrip("/").rpartition("/")
        try:
            must_be_usable(path)
            return os.readlink(self.host(f"{self.resolve(parent or '/').rstrip('/')}/{name}"))  # noqa: PTH115 - text
        except OSError:
            return None

    def open(self, path: str) -> int:
        """Descriptor of a plain file, for reading. Raises OSError also for a folder, a FIFO or a device."""
        # The kernel follows the links of the live root; elsewhere our walk did, and one that appeared since is refused.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if self.live else os.O_NOFOLLOW)
        must_be_usable(path)
        place = path if self.live else self.host(self._walk(path))
        # opening a device can do something, so it is looked at first
        if not stat.S_ISREG(os.stat(place).st_mode):     # noqa: PTH116 - text, not a Path
            raise OSError(errno.EINVAL, "not a plain file", path)
        return os.open(place, flags)

    def read_head(self, path: str, limit: int) -> bytes:
        """The first `limit` bytes. Raises OSError."""
        with os.fdopen(self.open(path), "rb", buffering=0) as stream:
            parts, left = [], limit
            while left > 0 and (part := stream.read(min(left, MIB))):
                parts.append(part)
                left -= len(part)
        return b"".join(parts)

    def read_bytes(self, path: str, limit: int) -> bytes:
        """All bytes. Raises OSError, with EFBIG where the file is longer than `limit`."""
        content = self.read_head(path, limit + 1)
        if len(content) > limit:
            raise OSError(errno.EFBIG, f"longer than {limit} bytes", path)
        return content

    def find_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """The head of a text file, bytes that are no UTF-8 replaced; None where it cannot be read."""
        try:
            return self.read_head(path, limit).decode("utf-8", "replace")
        except OSError:
            return None

    def entries(self, folder: str) -> tuple[Entry, ...]:
        """Names in a folder, sorted. Raises OSError."""
        with os.scandir(self.host(self.resolve(folder))) as found:
            return tuple(sorted((as_entry(each) for each in found), key=lambda each: each.name))

    def find_entries(self, folder: str) -> tuple[Entry, ...]:
        """Names in a folder, sorted; none where it cannot be read."""
        try:
            return self.entries(folder)
        except OSError:
            return ()

    def first_folders(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those `paths` that are folders, one for each real folder (`/lib` and `/usr/lib` are often one)."""
        seen: dict[str, str] = {}
        for path in paths:
            real = self.find(path)
            if real is not None and real not in seen and self.is_folder(real):
                seen[real] = path
        return tuple(seen.values())


def must_be_usable(path: str) -> None:
    """Raises OSError for a path that no system call takes: relative, with a NUL, or with text that is no file name."""
    try:
        if path.startswith("/") and "\0" not in path and os.fsencode(path):
            return
    except UnicodeEncodeError:
        pass
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def as_entry(found: os.DirEntry[str]) -> Entry:
    kind = ("link" if found.is_symlink() else "folder" if found.is_dir(follow_symlinks=False)
            else "file" if found.is_file(follow_symlinks=False) else "other")
    try:
        size = found.stat(follow_symlinks=False).st_size
    except OSError:         # gone since, or a stale network file
        size = 0
    return Entry(name=found.name, kind=kind, size=size)


def open_root(folder: Path | str, option: str = "--root") -> Root:
    """The root at a folder on our disk. Raises BadInput where there is none."""
    path = os.path.realpath(folder)
    if not os.path.isdir(path):     # noqa: PTH112 - `realpath` gave text
        raise BadInput(f"{option} {folder}", "no such folder", "give the folder that stands for /")
    return Root(path)


def reason_of(error: OSError) -> str:
    """Why a file could not be read, in words, without our disk's own path."""
    return error.strerror or "cannot be read"


def why_unreached(root: Root, path: str, error: OSError) -> str | None:
    """Why a path leads nowhere although its name is there, in words; None where the name is not there."""
    if error.errno == errno.ELOOP:
        return "is a link that leads round in a circle"
    here, target = path, root.link_target(path)
    if target is None:
        return None
    while target is not None:       # what ends in no circle ends
        here = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        target = root.link_target(here)
    return f"is a link to {here}, where nothing is"


def must_list(root: Root, folder: str) -> tuple[Entry, ...]:
    """Names in a folder without which nothing can be said. Raises Unreachable."""
    try:
        return root.entries(folder)
    except OSError as error:
        raise Unreachable(folder, reason_of(error), "run the check as a user who may read the environment") from error


def list_or_note(root: Root, folder: str) -> tuple[tuple[Entry, ...], str | None]:
    """Names in a folder, and why there are none where it is there and cannot be read."""
    try:
        return root.entries(folder), None
    except FileNotFoundError:
        return (), None
    except OSError as error:
        return (), reason_of(error)
