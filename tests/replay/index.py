"""The loopback index: recorded (or local) projects over HTTP, in the form that a test or benchmark asks for."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.replay.faults import Fault, Faults, apply
from tests.replay.http import Answer, Request
from tests.replay.pages import HTML_TYPE, JSON_TYPE, Edit, local_page, render_html, render_json, served_page
from tests.replay.store import NotRecorded, RecordedFile, RecordedPage, Store, parse_page
from tests.replay.wheels import read_metadata

ADVERTISED = "advertised"       # PEP 714: each wheel has `.metadata`, and the page says so
UNADVERTISED = "unadvertised"   # `.metadata` answers as the live index does, the page says nothing of it
ABSENT = "absent"               # no `.metadata` at all


@dataclass(kw_only=True)
class LoopbackIndex:
    """Fills http.Site. `projects` are local ones (project -> file name -> bytes) and hide recorded ones."""

    store: Store
    metadata: str = UNADVERTISED
    delay: float = 0.0
    cache_headers: bool = False
    compress: bool = False
    html_only: bool = False
    projects: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    base: str = ""                          # own address, known once the port is
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, Range

    def __post_init__(self) -> None:
        self._faults = Faults(*self.faults)
        self._known: dict[tuple[str, str, bool], Answer] = {}
        self._pages: dict[str, RecordedPage | None] = {}
        self._said: dict[str, dict[str, str] | bool] = {}

    def ready(self, request: Request) -> Answer | None:
        """A kept answer; None where reading or asking may be needed."""
        if request.path == "/status":
            return self._status()
        self.requests.append((request.method, request.path, request.headers.get("range", "")))
        if self.faults or request.headers.get("range"):
            return None
        known = self._known.get(self._key(request))
        return None if known is None else self._revalidated(request, known)

    def fetch(self, request: Request) -> Answer:
        """The answer, asking the store and through it the live index."""
        fault = self._faults.take(request.path)
        if fault is not None and fault.status is not None:
            return apply(fault, Answer())
        try:
            answer = self._revalidated(request, self._answer(request))
        except NotRecorded as reason:
            answer = Answer(status=501, headers=(("Content-Type", "text/plain"),), body=f"{reason}\n".encode())
        return answer if fault is None else apply(fault, answer)

    def _status(self) -> Answer:
        """Counts for a benchmark that runs this server as another process."""
        body = json.dumps({"requests": len(self.requests), "asked_live": self.store.asked_live}).encode()
        return Answer(headers=(("Content-Type", "application/json"),), body=body)

    def _key(self, request: Request) -> tuple[str, str, bool]:
        kind = ""
        if request.path.startswith("/simple/"):
            kind = JSON_TYPE if self._wants_json(request) else HTML_TYPE
        return request.path, kind, self.compress and "gzip" in request.headers.get("accept-encoding", "")

    def _wants_json(self, request: Request) -> bool:
        return not self.html_only and JSON_TYPE in request.headers.get("accept", "")

    def _answer(self, request: Request) -> Answer:
        if request.method not in {"GET", "HEAD"}:
            return Answer(status=501)
        key = self._key(request)
        if request.path.startswith("/simple/"):
            return self._page_answer(request, key)
        if request.path.startswith("/files/"):
            return self._file_answer(request, key)
        return Answer(status=404)

    def _page_answer(self, request: Request, key: tuple[str, str, bool]) -> Answer:
        asked = request.path.removeprefix("/simple/")
        project = re.sub(r"[-_.]+", "-", asked.rstrip("/")).lower()
        if asked != f"{project}/":
            return Answer(status=301, headers=(("Location", f"{self.base}/simple/{project}/"),))
        page = self._page(project)
        if page is None:
            return Answer(status=404)
        content = served_page(page.content, project=project, base=self.base, files=page.files,
                              advertised=self._advertised, edits=self.edits.get(project, ()))
        body = render_json(content) if key[1] == JSON_TYPE else render_html(content)
        answer = self._finished(key, body, (("Content-Type", key[1]), ("Vary", "Accept, Accept-Encoding")), age=600)
        self._known[key] = answer
        return answer

    def _file_answer(self, request: Request, key: tuple[str, str, bool]) -> Answer:
        project, _, filename = request.path.removeprefix("/files/").partition("/")
        wheel = filename.removesuffix(".metadata")
        page = self._page(project)
        file = None if page is None else page.files.get(wheel)
        if file is None:
            return Answer(status=404)
        if filename != wheel:
            body = self._metadata(file)
            if body is None:
                return Answer(status=404)
            self._known[key] = self._finished(key, body, (("Content-Type", "application/octet-stream"),), age=365000000)
            return self._known[key]
        return self._bytes_answer(request, file)

    def _bytes_answer(self, request: Request, file: RecordedFile) -> Answer:
        size = self._size(file)
        headers = [("Accept-Ranges", "bytes"), ("Content-Type", "application/octet-stream")]
        if self.cache_headers:
            headers += [("ETag", f'"{file.key}"'), ("Cache-Control", "max-age=365000000, immutable, public")]
        bounds = parse_range(request.headers.get("range", ""), size)
        if bounds is None and request.headers.get("range"):
            return Answer(status=416, headers=(("Content-Range", f"bytes */{size}"),))
        start, stop = bounds or (0, size)
        if bounds is not None:
            headers.append(("Content-Range", f"bytes {start}-{stop - 1}/{size}"))
        status = 200 if bounds is None else 206
        if request.method == "HEAD":
            return Answer(status=status, headers=tuple(headers), length=stop - start)
        return Answer(status=status, headers=tuple(headers), body=self._span(file, start, stop, whole=bounds is None))

    def _finished(self, key: tuple[str, str, bool], body: bytes, headers: tuple[tuple[str, str], ...],
                  *, age: int) -> Answer:
        if self.cache_headers:
            tag = hashlib.sha256(body).hexdigest()[:32]
            headers += (("ETag", f'"{tag}"'), ("Cache-Control", f"max-age={age}, public"))
        if key[2]:
            body = gzip.compress(body, 6, mtime=0)
            headers += (("Content-Encoding", "gzip"),)
        return Answer(headers=headers, body=body)

    def _revalidated(self, request: Request, answer: Answer) -> Answer:
        tag = dict(answer.headers).get("ETag")
        if tag is not None and tag in request.headers.get("if-none-match", ""):
            return Answer(status=304, headers=tuple(pair for pair in answer.headers if pair[0] != "Content-Encoding"))
        return answer

    def _page(self, project: str) -> RecordedPage | None:
        if project not in self._pages:
            local = self.projects.get(project)
            made = None if local is None else parse_page(project, render_json(local_page(project, local)))
            self._pages[project] = made or self.store.page(project)
        return self._pages[project]

    def _local(self, file: RecordedFile) -> bytes | None:
        return self.projects.get(file.project, {}).get(file.filename)

    def _size(self, file: RecordedFile) -> int:
        return self.store.size(file)

    def _span(self, file: RecordedFile, start: int, stop: int, *, whole: bool) -> bytes:
        local = self._local(file)
        if local is not None:
            return local[start:stop]
        return self.store.whole(file) if whole else self.store.span(file, start, stop)

    def _metadata(self, file: RecordedFile) -> bytes | None:
        if self.metadata == ABSENT or not file.filename.endswith(".whl"):
            return None
        local = self._local(file)
        if local is not None:
            return read_metadata(lambda start, stop: local[start:stop], len(local))
        body = self.store.metadata(file)
        if body is None and self.metadata == ADVERTISED:
            body = self.store.extracted(file)
        if body is not None and self.metadata == ADVERTISED:
            self._learn(file, body)
        return body

    def _advertised(self, file: RecordedFile) -> dict[str, str] | bool:
        """What the page says of a wheel's metadata: its sha256 where known, else only that it is there."""
        if self.metadata != ADVERTISED:
            return False
        local = self._local(file)
        if local is not None:
            body = read_metadata(lambda start, stop: local[start:stop], len(local))
            return {"sha256": hashlib.sha256(body).hexdigest()}
        if file.key not in self._said:
            kept = self.store.known_metadata(file)
            self._said[file.key] = True if kept is None else {"sha256": hashlib.sha256(kept).hexdigest()}
        return self._said[file.key]

    def _learn(self, file: RecordedFile, body: bytes) -> None:
        said = {"sha256": hashlib.sha256(body).hexdigest()}
        if self._said.get(file.key) != said:
            self._said[file.key] = said
            for known in [key for key in self._known if key[0] == f"/simple/{file.project}/"]:
                del self._known[known]


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """(start, stop) of one `bytes=` range, stop exclusive; None where it cannot be met or is none."""
    bounds = re.fullmatch(r"bytes=([0-9]*)-([0-9]*)", text.replace(" ", ""))
    if bounds is None or not (bounds[1] or bounds[2]):
        return None
    if not bounds[1]:
        start, stop = max(0, size - int(bounds[2])), size
    else:
        start, stop = int(bounds[1]), min(size, int(bounds[2]) + 1) if bounds[2] else size
    return (start, stop) if start < stop else None
