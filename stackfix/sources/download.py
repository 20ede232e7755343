"""Files that are brought to the disk whole and with their hash, or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stackfix.sources.answers import Sink, refused
from stackfix.sources.errors import HashMismatch
from stackfix.sources.transport import Transport
from stackfix.sources.wire import OK

LARGEST = 8 << 30               # bytes of one wheel
SLOWEST = 50_000                # bytes per second below which a download is given up
PATIENCE = 600.0                # seconds that any download may take

Progress = Callable[[str, int, int | None], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One file to be brought."""

    name: str                       # as progress and errors call it
    url: str
    sha256: str
    size: int | None                # None: nobody says


def download(wanted: Wanted, transport: Transport, path: Path, progress: Progress) -> None:
    """Brings the file to `path` by a rename. Raises OSError, HashMismatch and what a request raises."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as stream:
        part = Path(stream.name)
        try:
            arriving = Arriving(stream, wanted, progress)
            answer = transport.get(wanted.url, limit=wanted.size or LARGEST, unpack=False, open_sink=arriving.start,
                                   total=max(PATIENCE, (wanted.size or 0) / SLOWEST))
            if answer.status != OK:
                raise refused(answer, wanted.url)
            stream.flush()
            os.fsync(stream.fileno())
            found = hash_of(part)
            if found != wanted.sha256:
                raise HashMismatch(wanted.name, wanted.url, stated=wanted.sha256, found=found)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


class Arriving:
    """Bytes on their way into a file; a second try begins anew."""

    def __init__(self, stream: IO[bytes], wanted: Wanted, progress: Progress) -> None:
        self._stream, self._wanted, self._progress, self._done = stream, wanted, progress, 0

    def start(self) -> Sink:
        self._stream.seek(0)
        self._stream.truncate()
        self._done = 0
        return self._take

    def _take(self, piece: bytes) -> None:
        self._stream.write(piece)
        self._done += len(piece)
        self._progress(self._wanted.name, self._done, self._wanted.size)


def hash_of(path: Path) -> str:
    """sha256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


__all__ = ["Progress", "Wanted", "download", "hash_of"]
