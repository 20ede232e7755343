"""HTTP/1.1 on a connected socket: one request out, one answer in, under a deadline and a size limit.

Answers are parsed by http.client. What it does not give is around it: a deadline over the whole answer, head included
(a server that drips one byte before each socket timeout must end), the refusal of answers whose length can be read in
two ways (RFC 9112, section 6.3), and a connection that is not used again once a byte came that nobody asked for.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import Protocol

from stackfix.quick import dataclass

OK, PARTIAL, NOT_MODIFIED, FORBIDDEN, TOO_MANY = 200, 206, 304, 403, 429
NOT_THERE = (404, 410)
_CHUNK = 256 * 1024
_MAX_MEMBERS = 100
_MAX_DIGITS = 15                    # of a length
_MAX_INTERIM = 8


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
    response: HTTPResponse          # stands at the body


class Stream:
    """Buffered reading: each wait lasts at most `per_read` seconds and never past `deadline` (monotonic clock).

    For http.client it is the socket (`makefile`) and the file that is read.
    """

    __slots__ = ("_at", "_buffer", "_socket", "deadline", "ended", "per_read", "seen")

    def __init__(self, sock: Socket, per_read: float, deadline: float) -> None:
        self._socket, self.per_read, self.deadline = sock, per_read, deadline
        self._buffer, self._at = b"", 0  # what was received, and how much of it was given out
        self.seen = self.ended = False  # whether any byte of an answer came, and whether the server closed

    def send(self, data: bytes) -> None:
        """Write all of `data`."""
        self._arm()
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WireFault("timed out while sending", slow=True) from None
        except (OSError, ValueError) as fault:
            raise WireFault(f"the connection broke while sending ({plain(fault)})", fresh=True) from None

    def makefile(self, *_: object) -> Stream:
        """This stream: what http.client asks a socket for."""
        return self

    def readline(self, limit: int = -1, /) -> bytes:
        """Bytes up to and with the next line feed; fewer at the end, or at `limit` bytes."""
        while True:
            end = self._buffer.find(b"\n", self._at) + 1
            have = len(self._buffer) - self._at
            if end or 0 <= limit <= have:
                return self._take(min(end - self._at if end else have, limit if limit >= 0 else have))
            more = self._receive()
            if not more:
                return self._take(have)
            self._buffer, self._at = self._buffer[self._at:] + more, 0

    def read(self, size: int = -1, /) -> bytes:
        """`size` bytes, fewer at the end."""
        if size < 0:
            raise WireFault("the answer has a malformed chunk")     # http.client asks so for a negative chunk size
        pieces, left = [], size
        while left:
            if self._at == len(self._buffer):
                self._buffer, self._at = self._receive(), 0
                if not self._buffer:
                    break
            pieces.append(self._take(left))
            left -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def flush(self) -> None:
        """Nothing: of what http.client asks a file for."""

    def close(self) -> None:
        """Nothing: the pool closes sockets."""

    def _take(self, size: int) -> bytes:
        if self._at == 0 and size >= len(self._buffer):     # no copy: bodies come this way
            data, self._buffer = self._buffer, b""
            return data
        data = self._buffer[self._at:self._at + size]
        self._at += len(data)
        return data

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
            raise WireFault(f"the connection broke ({plain(fault)})", fresh=not self.seen) from None
        self.seen, self.ended = self.seen or bool(data), not data
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


def read_head(stream: Stream, method: str = "GET") -> Head:
    """The final status line and headers; interim 1xx answers are passed over."""
    for _ in range(_MAX_INTERIM):
        # a Stream is all that http.client uses of a socket
        response = HTTPResponse(stream, method=method)  # type: ignore[arg-type]
        try:
            response.begin()
        except RemoteDisconnected:
            raise WireFault("the server closed the connection early", fresh=not stream.seen) from None
        except (HTTPException, ValueError) as fault:
            raise WireFault(f"the answer's head is not HTTP/1.1 ({type(fault).__name__})") from None
        if stream.ended:
            raise WireFault("the server closed the connection early")
        if response.status >= OK:
            return Head(response.status, _joined(response), response)
    raise WireFault("the server sent only interim answers")


def _joined(response: HTTPResponse) -> dict[str, str]:
    """Headers by lower-case name. Raises WireFault where the length can be read in two ways."""
    if response.headers.defects:
        raise WireFault("the answer has a malformed header")
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key, text = name.lower(), str(value).strip()
        if key == "content-length" and headers.get(key, text) != text:
            raise WireFault("the answer states two lengths")
        headers[key] = f"{headers[key]}, {text}" if key in headers and key != "content-length" else text
    coding, stated = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and coding.lower() != "chunked":
        raise WireFault(f"the answer uses the transfer coding {coding[:40]!r}")
    if stated is not None and (not (stated.isascii() and stated.isdigit()) or len(stated) > _MAX_DIGITS):
        raise WireFault("the answer states no valid length")
    return headers


def body_pieces(head: Head, limit: int) -> Iterator[bytes]:
    """The body as sent, in pieces. Raises OverLimit before reading when the stated length is over `limit`."""
    length = head.response.length
    if length is not None and length > limit:
        raise OverLimit(length)
    return _pieces(head.response, min(_CHUNK, limit + 1))


def _pieces(response: HTTPResponse, size: int) -> Iterator[bytes]:
    try:
        while piece := response.read(size):
            yield piece
    except IncompleteRead:
        raise WireFault("the answer has a malformed chunk, or the server closed the connection early") from None
    except (HTTPException, ValueError) as fault:
        raise WireFault(f"the answer's body is malformed ({type(fault).__name__})") from None
    if response.length:
        raise WireFault(f"the server closed the connection with {response.length} bytes still to come")


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
