"""Wheels that are brought into the cache, whole and with their hash, or not at all.

They are kept there: a dry run, and the repair after it, look into the same files.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from stackfix.errors import Unreachable
from stackfix.inspect.places import reason_of
from stackfix.sources.errors import HashMismatch, NotAllowedOffline
from stackfix.sources.records import IndexFile
from stackfix.sources.transport import Sink, Transport, refused
from stackfix.sources.wire import OK

KEPT = "wheels-v1"              # below the cache folder
LARGEST = 8 << 30               # bytes of one wheel
SLOWEST = 50_000                # bytes per second below which a download is given up
PATIENCE = 600.0                # seconds that any download may take

Progress = Callable[[str, int, int | None], object]


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
        download(file, transport, path, progress)
    except OSError as error:
        raise Unreachable(str(path.parent), reason_of(error), "name another folder with --cache-dir") from error
    return path


def download(file: IndexFile, transport: Transport, path: Path, progress: Progress) -> None:
    """Brings the file to `path` by a rename. Raises OSError and what a request raises."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as stream:
        part = Path(stream.name)
        try:
            arriving = Arriving(stream, file, progress)
            answer = transport.get(file.url, limit=file.size or LARGEST, unpack=False, open_sink=arriving.start,
                                   total=max(PATIENCE, (file.size or 0) / SLOWEST))
            if answer.status != OK:
                raise refused(answer, file.url)
            stream.flush()
            os.fsync(stream.fileno())
            found = hash_of(part)
            if found != file.sha256:
                raise HashMismatch(file.filename, file.url, stated=file.sha256 or "", found=found)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


class Arriving:
    """Bytes on their way into a file; a second try begins anew."""

    def __init__(self, stream: IO[bytes], file: IndexFile, progress: Progress) -> None:
        self._stream, self._file, self._progress, self._done = stream, file, progress, 0

    def start(self) -> Sink:
        self._stream.seek(0)
        self._stream.truncate()
        self._done = 0
        return self._take

    def _take(self, piece: bytes) -> None:
        self._stream.write(piece)
        self._done += len(piece)
        self._progress(self._file.filename, self._done, self._file.size)


def hash_of(path: Path) -> str:
    """sha256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
