"""Whether a file in a prefix is one that a package placed: by its inode or its bytes, never by its name."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from stackfix.sync.conda_archive import CHUNK

LARGEST = 256 * 1024 * 1024     # bytes of a file that names its prefix


def is_from(place: Path, folder: Path, path: str, prefix: Path, *, part: bool = False) -> bool:
    """Whether `place` is what linking `path` of the package unpacked in `folder` writes into `prefix`.

    `part`: a beginning of it is enough, as a killed process leaves it.
    """
    source = folder / path
    try:
        found, stated = place.lstat(), source.lstat()
        if stat.S_ISLNK(found.st_mode) and stat.S_ISLNK(stated.st_mode):
            return place.readlink() == source.readlink()
        if not (stat.S_ISREG(found.st_mode) and stat.S_ISREG(stated.st_mode)):
            return False
        return os.path.samestat(found, stated) or has_its_bytes(place, folder, path, prefix, part=part)
    except OSError:
        return False


def has_its_bytes(place: Path, folder: Path, path: str, prefix: Path, *, part: bool) -> bool:
    """The same of two files. Raises OSError."""
    source = folder / path
    size, stated = place.stat().st_size, source.stat().st_size
    named = placeholders(folder).get(path)
    if named is None:
        return (size == stated or (part and size < stated)) and same_beginning(place, source)
    if max(size, stated) > LARGEST:
        return False
    whole, found = with_prefix(source.read_bytes(), *named, str(prefix).encode()), place.read_bytes()
    return whole.startswith(found) if part else whole == found


def same_beginning(place: Path, source: Path) -> bool:
    """Whether `source` begins with the bytes of `place`."""
    with place.open("rb") as one, source.open("rb") as other:
        while chunk := one.read(CHUNK):
            if chunk != other.read(len(chunk)):
                return False
    return True


def with_prefix(content: bytes, placeholder: bytes, mode: str, prefix: bytes) -> bytes:
    """The content for this prefix: in a binary every text keeps its length."""
    if mode != "binary":
        return content.replace(placeholder, prefix)
    return re.sub(re.escape(placeholder) + rb"[^\0]*\0",
                  lambda text: text[0].replace(placeholder, prefix).ljust(len(text[0]), b"\0"), content)


@lru_cache(maxsize=4096)
def placeholders(folder: Path) -> Mapping[str, tuple[bytes, str]]:
    """Path -> (placeholder of the prefix, "text" or "binary") of those files that name it."""
    try:
        rows: Any = json.loads((folder / "info" / "paths.json").read_bytes())["paths"]
        return {row["_path"]: (row["prefix_placeholder"].encode(), str(row.get("file_mode")))
                for row in rows if row.get("prefix_placeholder")}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
