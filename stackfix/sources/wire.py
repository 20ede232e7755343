"""HTTP/1.1 on a connected socket: one request out, one answer in, under a deadline and a size limit.

Written out rather than taken from http.client for three things it does not give: a deadline over the whole answer,
head included (a server that drips one byte before each socket timeout must end); no import of the email package
(about 20 ms); and half the processor time per small answer. Framing follows RFC 9112, section 6.3.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

OK, PARTIAL, NOT_MODIFIED, FORBIDDEN, TOO_MANY = 200, 206, 304, 403, 429
NOT_THERE = (404, 410)
MAX_HEAD = 64 * 1024
_CHUNK = 256 * 1024
_MAX_MEMBERS = 100
_MAX_DIGITS = 15                    # of a length
_STATUS = re.compile(r"[1-5][0-9]{2}(?: |$)")


class WireFault(Exception):
    """The exchange failed. `fresh`: no byte of an answer was seen, so it may be asked again on a new connection."""

    def __init__(self, reason: str, *, fresh: bool = False, slow: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.fresh, self.slow = reason, fresh, slow


class OverLimit(Exception):
    """The answer is larger than allowed. `size`: what it said of itself, if it did."""

    def __init__(self, size: int | None) -> None:
        super().__init__(size)
        self.size = size


class Socket(Protocol):
    """What is used of a socket."""

    def settimeout(self, value: float | None, /) -> None: ...
    def sendall(self, data: bytes, /) -> None: ...
    def recv(self, bufsize: int, /) -> bytes: ...
    def fileno(self) -> int: ...
    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers. Names in lower case; repeated headers joined by ", "."""

    status: int
    headers: dict[str, str]
    keep_alive: bool


class Stream:
    """Buffered reading: each wait lasts at most `per_read` seconds and never past `deadline` (monotonic clock)."""

    __slots__ = ("_at", "_buffer", "_seen", "_socket", "deadline", "per_read")

    def __init__(self, sock: Socket, per_read: float, deadline: float) -> None:
        self._socket, self.per_read, self.deadline = sock, per_read, deadline
        self._buffer, self._at = b"", 0  # what was received, and how much of it was given out
        self._seen = False

    def send(self, data: bytes) -> None:
        """Write all of `data`."""
        self._arm()
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WireFault("timed out while sending", slow=True) from None
        except (OSError, ValueError) as fault:
            raise WireFault(f"the connection broke while sending ({plain(fault)})", fresh=True) from None

    def some(self) -> bytes:
        """At least one byte; b"" where the server closed."""
        if self._at < len(self._buffer):
            data, self._buffer, self._at = self._buffer[self._at:], b"", 0
            return data
        return self._receive()

    def until(self, mark: bytes, limit: int) -> bytes:
        """Bytes up to `mark`, which is taken out and left out."""
        while True:
            end = self._buffer.find(mark, self._at)
            if end >= 0:
                data, self._at = self._buffer[self._at:end], end + len(mark)
                return data
            if len(self._buffer) - self._at > limit:
                raise WireFault("the answer's head is too long")
            more = self._receive()
            if not more:
                raise WireFault("the server closed the connection early", fresh=not self._seen)
            self._buffer, self._at = self._buffer[self._at:] + more, 0

    def exactly(self, size: int) -> Iterator[bytes]:
        """`size` bytes in pieces."""
        while size:
            if self._at == len(self._buffer):
                self._buffer, self._at = self._receive(), 0
                if not self._buffer:
                    raise WireFault(f"the server closed the connection with {size} bytes still to come")
            data = self._buffer[self._at:self._at + size]
            self._at += len(data)
            size -= len(data)
            yield data

    def drained(self) -> bool:
        """Whether nothing was received beyond what was asked for."""
        return self._at == len(self._buffer)

    def _receive(self) -> bytes:
        self._arm()
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            self._arm()  # says so if it was the whole deadline
            raise WireFault(f"no answer within {self.per_read:g} s", slow=True) from None
        except (OSError, ValueError) as fault:  # ValueError: a TLS socket that another thread closed
            raise WireFault(f"the connection broke ({plain(fault)})", fresh=not self._seen) from None
        self._seen = self._seen or bool(data)
        return data

    def _arm(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise WireFault("the answer took too long in all", slow=True)
        self._socket.settimeout(min(self.per_read, left))


def render_request(method: str, target: str, headers: dict[str, str]) -> bytes:
    """The request's bytes. No header can smuggle a line: control characters are refused."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any(not line.isprintable() for line in lines):
        raise WireFault("the request would hold control characters")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def read_head(stream: Stream) -> Head:
    """The final status line and headers; interim 1xx answers are passed over."""
    for _ in range(8):
        head = parse_head(stream.until(b"\r\n\r\n", MAX_HEAD))
        if head.status >= OK:
            return head
    raise WireFault("the server sent only interim answers")


def parse_head(raw: bytes) -> Head:
    """Status and headers out of the bytes before the empty line."""
    lines = raw.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not _STATUS.match(rest):
        raise WireFault("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WireFault("the answer has a malformed header")
        name, value = name.lower(), value.strip()
        if name == "content-length" and headers.get(name, value) != value:
            raise WireFault("the answer states two lengths")
        headers[name] = f"{headers[name]}, {value}" if name in headers and name != "content-length" else value
    connection = headers.get("connection", "").lower()
    keep = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
    return Head(int(rest[:3]), headers, keep)


def body_pieces(stream: Stream, head: Head, limit: int) -> tuple[Iterator[bytes], bool]:
    """The body as sent, in pieces, and whether the connection can be used again after it.

    Raises OverLimit before reading when the stated length is over `limit`.
    """
    if head.status in (204, NOT_MODIFIED):
        return iter(()), head.keep_alive
    coding = head.headers.get("transfer-encoding")
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise WireFault(f"the answer uses the transfer coding {coding[:40]!r}")
        return _chunked(stream), head.keep_alive
    stated = head.headers.get("content-length")
    if stated is None:
        return _until_closed(stream), False
    if not (stated.isascii() and stated.isdigit()) or len(stated) > _MAX_DIGITS:
        raise WireFault("the answer states no valid length")
    if int(stated) > limit:
        raise OverLimit(int(stated))
    return stream.exactly(int(stated)), head.keep_alive


def _chunked(stream: Stream) -> Iterator[bytes]:
    while True:
        size_text = stream.until(b"\r\n", 4096).partition(b";")[0].strip()
        if not size_text or len(size_text) > _MAX_DIGITS or size_text.strip(b"0123456789abcdefABCDEF"):
            raise WireFault("the answer has a malformed chunk")
        size = int(size_text, 16)
        if size == 0:
            break
        yield from stream.exactly(size)
        if b"".join(stream.exactly(2)) != b"\r\n":
            raise WireFault("the answer has a malformed chunk")
    for _ in range(100):  # trailers
        if not stream.until(b"\r\n", MAX_HEAD):
            return
    raise WireFault("the answer's trailer is too long")


def _until_closed(stream: Stream) -> Iterator[bytes]:
    while data := stream.some():
        yield data


def bounded(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """`pieces`, or OverLimit once they are more than `limit` bytes."""
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limit:
            raise OverLimit(None)
        yield piece


def gunzipped(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """`pieces` decompressed, never more than `limit` bytes however well they were packed.

    Raises OverLimit, and WireFault if they are damaged.
    """
    left = limit
    unpack = zlib.decompressobj(31)
    complete, members = False, 1
    for packed in pieces:
        piece = packed
        while piece:
            if complete:  # another member follows (RFC 1952, section 2.2)
                unpack, complete, members = zlib.decompressobj(31), False, members + 1
                if members > _MAX_MEMBERS:
                    raise WireFault("the compressed answer has too many parts")
            try:
                data = unpack.decompress(piece, left + 1)
            except zlib.error:
                raise WireFault("the compressed answer is damaged") from None
            left -= len(data)
            if left < 0:
                raise OverLimit(None)
            if data:
                yield data
            complete = unpack.eof
            piece = unpack.unused_data if complete else unpack.unconsumed_tail
    if not complete:
        raise WireFault("the compressed answer ends early")


def plain(fault: OSError | ValueError) -> str:
    """The fault in a few words, without addresses."""
    return (fault.strerror if isinstance(fault, OSError) else None) or type(fault).__name__
