"""Recorded answers of a package index, kept in a folder; what is missing is asked from the live index once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from tests.replay.wheels import read_metadata

SPAN_TAIL = 65536       # a first read of a wheel's end keeps this much: it holds most directories and METADATA
SPAN_MIN = 16384
WHOLE_LIMIT = 64 << 20  # sdists and small wheels; nobody should pull gigabytes through a recording


class NotRecorded(Exception):
    """The folder does not hold it, and there is no live index to ask (or it is too large to keep)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFile:
    """One file of a recorded page."""

    project: str
    filename: str
    url: str                # on the live index
    sha256: str | None
    size: int | None

    @property
    def key(self) -> str:
        return self.sha256 or hashlib.sha256(self.url.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPage:
    """One project page as the live index gave it."""

    project: str
    content: Mapping[str, Any]
    files: Mapping[str, RecordedFile]


class Upstream(Protocol):
    """The live index."""

    def page(self, project: str) -> bytes | None:
        """PEP 691 JSON, or None where it has no such project."""

    def metadata(self, url: str) -> bytes | None:
        """`.metadata` beside the file, or None where there is none."""

    def span(self, url: str, start: int, stop: int) -> bytes:
        """Bytes start..stop (exclusive)."""

    def size(self, url: str) -> int:
        """Length of the file."""


class Store:
    """The folder. Several threads, and several processes, may share it: each answer is written whole, then renamed."""

    def __init__(self, folder: Path, upstream: Upstream | None = None) -> None:
        self._folder = folder
        self._upstream = upstream
        self._locks: dict[str, Lock] = {}
        self._guard = Lock()
        self.asked_live = 0
        self._pages: dict[str, RecordedPage | None] = {}
        self._metadata: dict[str, bytes | None] = {}

    def page(self, project: str) -> RecordedPage | None:
        """The page of a normalised project name, or None where the live index has none."""
        if project not in self._pages:
            raw = self._kept(f"pages/{_safe(project)}.json", lambda live: live.page(project))
            self._pages[project] = None if raw is None else parse_page(project, raw)
        return self._pages[project]

    def metadata(self, file: RecordedFile) -> bytes | None:
        """What the live index answers for `.metadata`; None for 404."""
        if file.key not in self._metadata:
            name = f"metadata/{file.key}"
            self._metadata[file.key] = self._kept(name, lambda live: live.metadata(file.url))
        return self._metadata[file.key]

    def known_metadata(self, file: RecordedFile) -> bytes | None:
        """The `.metadata`, or what was extracted, where the folder holds it already. Asks nobody."""
        for kind in ("metadata", "extracted"):
            path = self._folder / f"{kind}/{file.key}"
            if path.exists():
                return path.read_bytes()
        return None

    def extracted(self, file: RecordedFile) -> bytes:
        """METADATA read from the wheel itself, by ranges; kept."""
        path = self._folder / f"extracted/{file.key}"
        if not path.exists():
            write_whole(path, read_metadata(lambda start, stop: self.span(file, start, stop), self.size(file)))
        return path.read_bytes()

    def size(self, file: RecordedFile) -> int:
        if file.size is not None:
            return file.size
        raw = self._kept(f"sizes/{file.key}", lambda live: str(live.size(file.url)).encode())
        assert raw is not None
        return int(raw)

    def span(self, file: RecordedFile, start: int, stop: int) -> bytes:
        """Bytes start..stop (exclusive) of the file."""
        size = self.size(file)
        folder = self._folder / "spans" / file.key
        with self._lock(f"spans/{file.key}"):
            kept = _find_span(folder, start, stop)
            if kept is not None:
                return kept
            wide_start = max(0, min(start, size - SPAN_TAIL)) if stop == size else start
            wide_stop = min(size, max(stop, start + SPAN_MIN))
            live = self._live(f"bytes {start}-{stop} of {file.filename}")
            body = live.span(file.url, wide_start, wide_stop)
            write_whole(folder / f"{wide_start}-{wide_stop}", body)
        return body[start - wide_start : stop - wide_start]

    def whole(self, file: RecordedFile) -> bytes:
        """The file. Refuses large ones."""
        size = self.size(file)
        if size > WHOLE_LIMIT:
            raise NotRecorded(f"{file.filename} is {size} bytes: too large for a recording")
        return self.span(file, 0, size)

    def _kept(self, name: str, ask: Callable[[Upstream], bytes | None]) -> bytes | None:
        path, missing = self._folder / name, self._folder / f"{name}.404"
        with self._lock(name):
            if path.exists():
                return path.read_bytes()
            if missing.exists():
                return None
            body = ask(self._live(name))
            write_whole(missing if body is None else path, body or b"")
        return body

    def _live(self, name: str) -> Upstream:
        if self._upstream is None:
            raise NotRecorded(f"{name} is not recorded")
        self.asked_live += 1
        return self._upstream

    def _lock(self, name: str) -> Lock:
        with self._guard:
            return self._locks.setdefault(name, Lock())


def parse_page(project: str, raw: bytes) -> RecordedPage:
    """The page of PEP 691 JSON."""
    content = json.loads(raw)
    files = {
        row["filename"]: RecordedFile(
            project=project, filename=row["filename"], url=row["url"], sha256=row["hashes"].get("sha256"),
            size=row.get("size"),
        )
        for row in content["files"]
    }
    return RecordedPage(project=project, content=content, files=files)


def write_whole(path: Path, body: bytes) -> None:
    """Writes `path` whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(body)
    Path(temporary).replace(path)


def _safe(project: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", project):
        raise NotRecorded(f"{project!r} is no normalised project name")
    return project


def _find_span(folder: Path, start: int, stop: int) -> bytes | None:
    if not folder.is_dir():
        return None
    for path in folder.iterdir():
        bounds = re.fullmatch(r"([0-9]+)-([0-9]+)", path.name)
        if bounds and int(bounds[1]) <= start and stop <= int(bounds[2]):
            with path.open("rb") as stream:
                stream.seek(start - int(bounds[1]))
                return stream.read(stop - start)
    return None
