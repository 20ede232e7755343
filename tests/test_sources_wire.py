"""HTTP/1.1 framing, against a socket that gives its bytes in any pieces."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.sources.wire import (
    OverLimit,
    Stream,
    WireFault,
    body_pieces,
    bounded,
    gunzipped,
    read_head,
    render_request,
)


class Pieces:
    """Fills wire.Socket: what it receives is given beforehand."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.timeouts: list[float | None] = []

    def settimeout(self, value: float | None, /) -> None:
        self.timeouts.append(value)

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, bufsize: int, /) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def fileno(self) -> int:
        return -1

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


def read(*pieces: bytes, limit: int = 1000) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection may be used again."""
    stream = Stream(Pieces(*pieces), 5.0, time.monotonic() + 5)
    head = read_head(stream)
    body = b"".join(bounded(body_pieces(head, limit), limit))
    return head.status, body, not head.will_close and stream.drained()


def cut_up(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[at:at + size] for at in range(0, len(raw), size))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("raw", "expected"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, b"hello", True)),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", (200, b"hello", False)),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", (200, b"hello", False)),
    (b"HTTP/1.1 200\r\n\r\nuntil the end", (200, b"until the end", False)),
    (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", True)),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", (304, b"", True)),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
     (200, b"x", True)),
    (CHUNKED + b"5;ext=1\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", (200, b"hello0123456789", True)),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     (200, b"x", True)),
])
def test_answers_are_read_however_they_arrive(raw: bytes, expected: tuple[int, bytes, bool], size: int) -> None:
    assert read(*cut_up(raw, size)) == expected


@pytest.mark.parametrize(("raw", "reason"), [
    (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
    (b"HTTP/2 200\r\n\r\n", "not HTTP"),
    (b"HTTP/1.1 2x0 OK\r\n\r\n", "not HTTP"),
    (b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", "malformed header"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n continued\r\n\r\nhello", "no valid length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "no valid length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "two lengths"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer coding"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "malformed chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX", "malformed chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "closed the connection"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "4 bytes still to come"),
    (b"HTTP/1.1 200 OK\r\nConte", "closed the connection early"),
    (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000, "not HTTP"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "not HTTP"),
    (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20, "only interim"),
])
def test_broken_answers_are_refused_with_the_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(WireFault, match=reason):
        read(raw)


def test_only_a_silent_end_may_be_asked_again() -> None:
    with pytest.raises(WireFault) as silent:
        read()
    with pytest.raises(WireFault) as broken:
        read(b"HTTP/1.1 200 OK\r\n")
    assert silent.value.fresh
    assert not broken.value.fresh


def test_a_stated_length_over_the_limit_is_refused_before_a_byte_is_read() -> None:
    stream = Stream(Pieces(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), 5.0, time.monotonic() + 5)
    with pytest.raises(OverLimit) as over:
        body_pieces(read_head(stream), 1000)
    assert over.value.size == 99999999999


@pytest.mark.parametrize("head", [b"Transfer-Encoding: chunked\r\n", b""])
def test_an_endless_body_ends_at_the_limit(head: bytes) -> None:
    piece = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    with pytest.raises(OverLimit):
        read(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", *[piece] * 50, limit=20_000)


def test_bytes_that_nobody_asked_for_end_the_use_of_a_connection() -> None:
    assert read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n") == (200, b"x", False)


def test_no_wait_goes_past_the_deadline() -> None:
    pieces = Pieces(b"H", b"T")
    stream = Stream(pieces, 100.0, time.monotonic() + 3)
    assert stream.readline(100) == b"HT"
    assert all(timeout is not None and timeout <= 3 for timeout in pieces.timeouts)
    over = Stream(Pieces(b"HTTP/1.1 200 OK\r\n\r\n"), 100.0, time.monotonic() - 1)
    with pytest.raises(WireFault, match="too long in all") as late:
        read_head(over)
    assert late.value.slow


@given(body=st.binary(max_size=3000), size=st.integers(1, 500), parts=st.integers(1, 3))
def test_gzip_is_undone_in_any_pieces(body: bytes, size: int, parts: int) -> None:
    packed = gzip.compress(body) * parts
    assert b"".join(gunzipped(cut_up(packed, size), 10_000)) == body * parts


def test_a_gzip_bomb_ends_at_the_limit() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    unpacked: list[bytes] = []
    with pytest.raises(OverLimit):
        unpacked.extend(gunzipped(iter([bomb]), 1_000_000))
    assert sum(map(len, unpacked)) <= 1_000_000
    with pytest.raises(WireFault, match="too many parts"):
        list(gunzipped(iter([gzip.compress(b"") * 5000]), 1_000_000))


@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"x" * 1000)[:-9], zlib.compress(b"x"), b""])
def test_damaged_gzip_is_refused(packed: bytes) -> None:
    with pytest.raises(WireFault, match="compressed answer"):
        list(gunzipped(iter([packed]), 1000))


@pytest.mark.parametrize(("target", "value"), [("/x\r\nEvil: 1", "a"), ("/", "a\r\nEvil: 1"), ("/\x00", "a")])
def test_no_request_smuggles_a_line(target: str, value: str) -> None:
    with pytest.raises(WireFault):
        render_request("GET", target, {"Accept": value})
