"""An environment, opened by descriptor: every folder on the way is opened without following a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from types import TracebackType

from stackfix.apply.errors import LeavesPrefix
from stackfix.errors import BadInput, Unreachable

MAX_LINKS = 40                  # the kernel's own limit for one path
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """Paths are relative to the prefix, in POSIX form; "" is the prefix. A context manager that closes it.

    Nothing here follows a link, so nothing outside is reached, whoever swaps a folder for a link meanwhile;
    `resolve` alone reads links, and refuses those that lead out.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = os.path.realpath(prefix)
        try:
            self.descriptor = os.open(self.prefix, FOLDER)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise BadInput(str(prefix), "no such folder", "name an environment") from error
        except OSError as error:
            raise Unreachable(str(prefix), f"cannot be opened: {error.strerror}") from error

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        os.close(self.descriptor)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Descriptor of a folder. Raises OSError, with ENOTDIR also for a link."""
        here = os.dup(self.descriptor)
        try:
            for part in parts_of(path):
                deeper = os.open(part, FOLDER, dir_fd=here)
                os.close(here)
                here = deeper
            yield here
        finally:
            os.close(here)

    def status(self, path: str) -> os.stat_result | None:
        """Status of the name itself; None where it is not there, or a link is in the way."""
        if not path:
            return os.fstat(self.descriptor)
        parent, name = split(path)
        try:
            with self.folder(parent) as folder:
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                return None
            raise

    def exists(self, path: str) -> bool:
        """Whether the name is there, be it a link to nowhere."""
        return self.status(path) is not None

    def is_folder(self, path: str) -> bool:
        found = self.status(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def link_target(self, path: str) -> str | None:
        """What a link says, as written; None for all else."""
        found = self.status(path)
        if found is None or not stat.S_ISLNK(found.st_mode):
            return None
        parent, name = split(path)
        with self.folder(parent) as folder:
            return os.readlink(name, dir_fd=folder)

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted. Raises OSError."""
        with self.folder(path) as folder:
            return sorted(os.listdir(folder))       # noqa: PTH208 - by descriptor

    def read(self, path: str) -> bytes:
        """The bytes of a plain file. Raises OSError."""
        parent, name = split(path)
        with self.folder(parent) as folder:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a plain file", path)
            return stream.read()

    def resolve(self, path: str, *, last: bool = False) -> str:
        """`path` with the links on its way read; with `last` also one at its end. What is missing is taken as written.

        Raises LeavesPrefix where it does not stay inside.
        """
        ahead, here, links = parts_of(path)[::-1], list[str](), 0
        while ahead:
            part = ahead.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                if not here:
                    raise LeavesPrefix(path, f"leads out of {self.prefix}")
                here.pop()
                continue
            target = self.link_target("/".join([*here, part])) if ahead or last else None
            if target is None:
                here.append(part)
                continue
            links += 1
            if links > MAX_LINKS:
                raise LeavesPrefix(path, "is behind a link that leads round in a circle")
            if target.startswith("/"):
                here, target = [], self._inside(path, target)
            ahead += target.split("/")[::-1]
        return "/".join(here)

    def _inside(self, path: str, target: str) -> str:
        real = os.path.realpath(target)
        if real != self.prefix and not real.startswith(f"{self.prefix.rstrip('/')}/"):
            raise LeavesPrefix(path, f"is behind a link to {target}, out of {self.prefix}",
                               "what the link leads to is not part of this environment")
        return os.path.relpath(real, self.prefix)


def parts_of(path: str) -> list[str]:
    """The names of a path. Raises LeavesPrefix for one that is absolute or climbs, BadInput for what is no path."""
    parts = path.split("/") if path else []
    if path.startswith("/") or ".." in parts:
        raise LeavesPrefix(path, "is not a path inside of the environment")
    if "" in parts or "." in parts or "\0" in path:
        raise BadInput(repr(path), "is not a path relative to the environment")
    return parts


def split(path: str) -> tuple[str, str]:
    """Folder and name. Raises BadInput for the prefix itself."""
    parts = parts_of(path)
    if not parts:
        raise BadInput("the environment's folder", "is not something that a step may change")
    return "/".join(parts[:-1]), parts[-1]


def join(*parts: str) -> str:
    """One path of several; empty ones are left out."""
    return "/".join(part for part in parts if part)


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder`, or in it."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def suffix_of(path: str) -> str:
    return PurePosixPath(path).suffix
