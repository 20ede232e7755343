"""All that can be told of a tree of files, to find that it is the same again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of a tree."""

    kind: int
    mode: int
    owner: tuple[int, int]
    inode: int
    links: int
    changed: int | None             # modification time; None of folders, which every name in them changes
    content: str | None             # sha256 of a file, where a link leads


def tree_of(*folders: Path) -> Mapping[Path, Entry]:
    """Every name in and below folders. Names of one file are read once."""
    digests: dict[tuple[int, int], str] = {}
    return {path: entry_of(path, digests) for folder in folders for path in names(folder)}


def names(folder: Path) -> Iterator[Path]:
    """The folder itself and all below it; links are not followed."""
    yield folder
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in sorted([*folders, *files]))


def entry_of(path: Path, digests: dict[tuple[int, int], str]) -> Entry:
    status = path.lstat()
    content, key = None, (status.st_dev, status.st_ino)
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode):
        content = digests.get(key) or digests.setdefault(key, digest_of(path))
    is_folder = stat.S_ISDIR(status.st_mode)
    return Entry(kind=stat.S_IFMT(status.st_mode), mode=stat.S_IMODE(status.st_mode), inode=status.st_ino,
                 owner=(status.st_uid, status.st_gid), links=status.st_nlink, content=content,
                 changed=None if is_folder else status.st_mtime_ns)


def digest_of(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def differences(before: Mapping[Path, Entry], after: Mapping[Path, Entry]) -> list[str]:
    """Names that came, went or are otherwise, in words."""
    return [f"{path}: {before.get(path)} became {after.get(path)}" for path in sorted({*before, *after})
            if before.get(path) != after.get(path)]
