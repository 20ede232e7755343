"""HTTP/1.1 on a connected socket: one request out, one answer in, under a deadline and a size limit.

The deadline is over the whole answer, head included (a server that drips one byte before each socket timeout must end).
An answer whose length can be read in two ways is refused (RFC 9112, section 6.3), and a connection is not used again
once a byte came that nobody asked for. Not http.client: it takes 18 ms to import (email, ssl) and a quarter of a
millisecond for the head of each answer, of which a lock reads more than a hundred.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Protocol

from stackfix.quick import dataclass

NO_CONTENT = 204
OK, PARTIAL, NOT_MODIFIED, FORBIDDEN, TOO_MANY = 200, 206, 304, 403, 429
NOT_THERE = (404, 410)
_CHUNK = 64 * 1024                  # a larger buffer is mapped and unmapped by the system each time
_MAX_MEMBERS = 100
_MAX_DIGITS = 15                    # of a length
_MAX_INTERIM = 8
_LONGEST_LINE, _MAX_LINES = 65536, 100          # of a head, of trailers
_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_NO_CHUNK = "the answer has a malformed chunk, or the server closed the connection early"


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
    stream: Stream                  # stands at the body
    chunked: bool
    length: int | None              # of the body; None where chunks or the end of the connection tell
    will_close: bool                # whether the connection cannot be used again after this answer


class Stream:
    """Buffered reading: each wait lasts at most `per_read` seconds and never past `deadline` (monotonic clock)."""

    __slots__ = ("_at", "_buffer", "_socket", "deadline", "per_read", "seen")

    def __init__(self, sock: Socket, per_read: float, deadline: float, received: bytes = b"") -> None:
        self._socket, self.per_read, self.deadline = sock, per_read, deadline
        self._buffer, self._at = received, 0  # what was received, and how much of it was given out
        self.seen = bool(received)      # whether any byte of an answer came

    def rest(self) -> bytes:
        """What was received beyond what was given out; the stream is then empty."""
        rest, self._buffer, self._at = self._buffer[self._at:], b"", 0
        return rest

    def refill(self, sock: Socket, received: list[bytes]) -> None:
        """Go on with what was received meanwhile, and then from `sock`."""
        self._socket, self._buffer, self._at = sock, b"".join(received), 0

    def send(self, data: bytes) -> None:
        """Write all of `data`."""
        self._arm()
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise WireFault("timed out while sending", slow=True) from None
        except (OSError, ValueError) as fault:
            raise WireFault(f"the connection broke while sending ({plain(fault)})", fresh=True) from None

    def readline(self, limit: int) -> bytes:
        """Bytes up to and with the next line feed; fewer at the end, or at `limit` bytes."""
        while True:
            end = self._buffer.find(b"\n", self._at) + 1
            have = len(self._buffer) - self._at
            if end or limit <= have:
                return self._take(min(end - self._at if end else have, limit))
            more = self._receive()
            if not more:
                return self._take(have)
            self._buffer, self._at = self._buffer[self._at:] + more, 0

    def read(self, size: int) -> bytes:
        """What is there of the next `size` bytes, at least one; none at the end."""
        if self._at == len(self._buffer):
            self._buffer, self._at = self._receive(), 0
        return self._take(size)

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
        self.seen = self.seen or bool(data)
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
        version, status = _status_line(stream)
        headers = _headers(stream)
        if status >= OK:
            return _head(stream, version, status, headers, method)
    raise WireFault("the server sent only interim answers")


def _status_line(stream: Stream) -> tuple[int, int]:
    """Minor version and status."""
    line = _line(stream)
    version, _, rest = line.partition(b" ")
    status = rest.strip().partition(b" ")[0]
    minor = version[7:]
    if version[:7] != b"HTTP/1." or not (minor.isdigit() and status.isdigit()) or len(status) != 3 or status < b"100":
        raise WireFault("the answer's head is not HTTP/1.1 (its first line)")
    return int(minor[:3]), int(status)


def _headers(stream: Stream) -> dict[str, str]:
    """Headers by lower-case name. Raises WireFault where the length can be read in two ways."""
    headers: dict[str, str] = {}
    name = ""
    for _ in range(_MAX_LINES + 1):
        line = _line(stream)
        if not line:
            return _checked(headers)
        text = line.decode("latin-1")
        if line[:1] in b" \t" and name:         # a folded line (RFC 9112, section 5.2)
            headers[name] = f"{headers[name]} {text.strip()}"
            continue
        key, colon, value = text.partition(":")
        if not colon or not key or not _TOKEN.issuperset(line[:len(key)]):
            raise WireFault("the answer has a malformed header")
        name, value = key.lower(), value.strip()
        if name == "content-length" and headers.get(name, value) != value:
            raise WireFault("the answer states two lengths")
        known = headers.get(name)
        headers[name] = value if known is None or name == "content-length" else f"{known}, {value}"
    raise WireFault("the answer's head is not HTTP/1.1 (too many headers)")


def _line(stream: Stream) -> bytes:
    """The next line of a head, without its end."""
    line = stream.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        if len(line) >= _LONGEST_LINE:
            raise WireFault("the answer's head is not HTTP/1.1 (a line without end)")
        raise WireFault("the server closed the connection early", fresh=not stream.seen)
    return line.rstrip(b"\r\n")


def _checked(headers: dict[str, str]) -> dict[str, str]:
    coding, stated = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and coding.lower() != "chunked":
        raise WireFault(f"the answer uses the transfer coding {coding[:40]!r}")
    if stated is not None and (not (stated.isascii() and stated.isdigit()) or len(stated) > _MAX_DIGITS):
        raise WireFault("the answer states no valid length")
    return headers


def _head(stream: Stream, version: int, status: int, headers: dict[str, str], method: str) -> Head:
    chunked = "transfer-encoding" in headers
    length: int | None = None
    if status in (NO_CONTENT, NOT_MODIFIED) or method == "HEAD":
        chunked, length = False, 0
    elif not chunked and "content-length" in headers:
        length = int(headers["content-length"])
    said = headers.get("connection", "").lower()
    stays = "close" not in said if version else "keep-alive" in said
    return Head(status, headers, stream, chunked, length, not stays or (length is None and not chunked))


def body_pieces(head: Head, limit: int) -> Iterator[bytes]:
    """The body as sent, in pieces. Raises OverLimit before reading when the stated length is over `limit`."""
    if head.length is not None and head.length > limit:
        raise OverLimit(head.length)
    if head.chunked:
        return _chunks(head.stream)
    return _to_the_end(head.stream) if head.length is None else _so_many(head.stream, head.length)


def _so_many(stream: Stream, length: int) -> Iterator[bytes]:
    left = length
    while left:
        piece = stream.read(min(left, _CHUNK))
        if not piece:
            raise WireFault(f"the server closed the connection with {left} bytes still to come")
        left -= len(piece)
        yield piece


def _to_the_end(stream: Stream) -> Iterator[bytes]:
    while piece := stream.read(_CHUNK):
        yield piece


def _chunks(stream: Stream) -> Iterator[bytes]:
    while True:
        size = stream.readline(_LONGEST_LINE).partition(b";")[0].strip()
        if not size or not _HEX.issuperset(size) or len(size) > _MAX_DIGITS:
            raise WireFault(_NO_CHUNK)
        left = int(size, 16)
        if not left:
            break
        while left:
            piece = stream.read(min(left, _CHUNK))
            if not piece:
                raise WireFault(_NO_CHUNK)
            left -= len(piece)
            yield piece
        if stream.readline(3) != b"\r\n":
            raise WireFault(_NO_CHUNK)
    for _ in range(_MAX_LINES + 1):                 # trailers
        line = stream.readline(_LONGEST_LINE)
        if line in (b"\r\n", b"\n"):
            return
        if not line.endswith(b"\n"):
            break
    raise WireFault(_NO_CHUNK)


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


def unpacked(headers: dict[str, str], body: bytes, limit: int) -> bytes | None:
    """The body of an answer as it was before it travelled; None where that cannot be had from it."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return body
    try:
        return b"".join(gunzipped(iter((body,)), limit)) if coding in ("gzip", "x-gzip") else None
    except (WireFault, OverLimit):
        return None


def plain(fault: OSError | ValueError) -> str:
    """The fault in a few words, without addresses."""
    return (fault.strerror if isinstance(fault, OSError) else None) or type(fault).__name__
