"""Wheels that are brought into the cache, whole and with their hash, or not at all.

They are kept there: a dry run, and the repair after it, look into the same files.
"""

from __future__ import annotations

from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.inspect.places import reason_of
from stackfix.sources.download import Progress, Wanted, download, hash_of
from stackfix.sources.errors import NotAllowedOffline
from stackfix.sources.records import IndexFile
from stackfix.sources.transport import Transport

KEPT = "wheels-v1"              # below the cache folder


def fetch_file(file: IndexFile, transport: Transport, cache_dir: Path, progress: Progress, *, offline: bool) -> Path:
    """Where the file lies. Raises Unreachable, HashMismatch, NotAllowedOffline."""
    if file.sha256 is None:
        raise Unreachable(file.filename, "the index states no hash of it")
    path = cache_dir / KEPT / file.sha256 / file.filename
    try:
        if path.is_file() and hash_of(path) == file.sha256:
            return path
        if offline:
            raise NotAllowedOffline(file.filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        wanted = Wanted(name=file.filename, url=file.url, sha256=file.sha256, size=file.size)
        download(wanted, transport, path, progress)
    except OSError as error:
        raise Unreachable(str(path.parent), reason_of(error), "name another folder with --cache-dir") from error
    return path


__all__ = ["KEPT", "fetch_file"]
