"""A small HTTP/1.1 server: keep-alive, one answer at a time per connection, no request bodies.

Written over asyncio.Protocol since it must never be what a benchmark measures: several thousand small answers a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    from typing_extensions import Self

REASONS = {
    200: "OK", 206: "Partial Content", 301: "Moved Permanently", 304: "Not Modified", 400: "Bad Request",
    403: "Forbidden", 404: "Not Found", 416: "Range Not Satisfiable", 429: "Too Many Requests",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
}
MAX_HEAD = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request line with its headers (names in lower case). `path` is unquoted and has no query."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response. `length` overrides Content-Length; `drip` sends the body a byte at a time, `drip` seconds apart."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    length: int | None = None
    drip: float | None = None
    close: bool = False


class Site(Protocol):
    """What the server asks. `ready` answers from memory at once or says None; `fetch` may block (own thread)."""

    delay: float

    def ready(self, request: Request) -> Answer | None: ...

    def fetch(self, request: Request) -> Answer: ...


def parse_head(head: bytes) -> Request:
    """The request of one head, without its blank line. Raises ValueError."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return Request(method=method, path=unquote(target.partition("?")[0]), headers=headers)


def render_head(answer: Answer, *, method: str) -> bytes:
    """Status line and headers."""
    length = len(answer.body) if answer.length is None else answer.length
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.status != 304 or method == "HEAD":
        lines.append(f"Content-Length: {length}")
    if answer.close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._busy = False
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def _advance(self) -> None:
        while not self._busy and self._transport is not None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    self.abort()
                return
            head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            try:
                request = parse_head(head)
            except ValueError:
                self.abort()
                return
            self._serve(request)

    def _serve(self, request: Request) -> None:
        site = self._server.site
        answer = site.ready(request)
        if answer is not None and not site.delay and answer.drip is None:
            self._write(request, answer)
            return
        self._busy = True
        self._task = asyncio.get_running_loop().create_task(self._serve_later(request, answer))

    async def _serve_later(self, request: Request, answer: Answer | None) -> None:
        site = self._server.site
        if site.delay:
            await asyncio.sleep(site.delay)
        if answer is None:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._server.pool, site.fetch, request)
        if answer.drip is None:
            self._write(request, answer)
        else:
            await self._drip(request, answer, answer.drip)
        self._task = None
        self._busy = False
        self._advance()

    def _write(self, request: Request, answer: Answer) -> None:
        if self._transport is None:
            return
        head = render_head(answer, method=request.method)
        self._transport.write(head if request.method == "HEAD" else head + answer.body)
        short = answer.length is not None and answer.length != len(answer.body) and request.method != "HEAD"
        if answer.close or short or request.headers.get("connection", "").lower() == "close":
            self._transport.close()
            self._transport = None

    async def _drip(self, request: Request, answer: Answer, pause: float) -> None:
        if self._transport is not None:
            self._transport.write(render_head(answer, method=request.method))
        for position in range(len(answer.body)):
            if self._transport is None:
                return
            self._transport.write(answer.body[position : position + 1])
            await asyncio.sleep(pause)


@dataclass(eq=False)
class HttpServer:
    """Serves `site` on a free port of 127.0.0.1 from a thread of its own, between `__enter__` and `__exit__`."""

    site: Site
    port: int = 0
    connections: set[Connection] = field(default_factory=set)

    def __enter__(self) -> Self:
        self.pool = ThreadPoolExecutor(max_workers=32)
        self._loop = asyncio.new_event_loop()
        self._started = Event()
        self._thread = Thread(target=self._run, name="loopback-http", daemon=True)
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the loopback server did not start within 10 s")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self.pool.shutdown(wait=False, cancel_futures=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def join(self) -> None:
        """Waits until the server ends."""
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: Connection(self), "127.0.0.1", self.port, backlog=512)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        try:
            self._loop.run_forever()
        finally:
            for connection in tuple(self.connections):
                connection.abort()
            server.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(server.wait_closed())
            self._loop.close()
