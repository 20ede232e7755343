"""Requests that are sent ahead: the same answers as without, whatever the server does."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stackfix.sources.answers import LIMITS, Limits
from stackfix.sources.errors import Closed, IndexUnreachable, RequestFailed
from stackfix.sources.transport import Transport
from tests.sources_servers import RawServer, make_certificate, ok, path_of, settings_for, status

Connect = Callable[..., Transport]
HELLO = ok(b"hello")


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients, and closes them after the test; none may have met a defect of the sending thread."""
    clients: list[Transport] = []

    def make(limits: Limits = LIMITS, **settings: Any) -> Transport:
        clients.append(Transport(settings_for(**settings), limits))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        assert client.defect is None


def then_gone(answer: bytes) -> Iterator[bytes]:
    """The answer, and then the server hangs up."""
    yield answer
    raise OSError


class Told:
    """What was told of one request."""

    def __init__(self) -> None:
        self.whole: bool | None = None
        self._done = threading.Event()

    def __call__(self, whole: bool) -> None:
        self.whole = whole
        self._done.set()

    def wait(self) -> bool | None:
        assert self._done.wait(20)
        return self.whole


def ahead(client: Transport, url: str) -> Told:
    """Has `url` asked ahead."""
    told = Told()
    assert client.ask_ahead(url, then=told)
    return told


def test_what_is_asked_ahead_is_asked_once_and_taken_once(connect: Connect) -> None:
    with RawServer(lambda head: ok(path_of(head).encode())) as server:
        client = connect()
        told = [ahead(client, f"{server.url}/{number}") for number in range(80)]
        assert [one.wait() for one in told] == [True] * 80
        assert [client.get(f"{server.url}/{number}", limit=10).body for number in range(80)] == [
            f"/{number}".encode() for number in range(80)]
        assert len(server.heads) == 80
        assert server.connections <= LIMITS.connections
        assert client.get(f"{server.url}/0", limit=10).body == b"/0"
        assert len(server.heads) == 81


def test_an_answer_in_the_pieces_in_which_it_came(connect: Connect) -> None:
    packed = gzip.compress(b"x" * 1_000_000)
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    with RawServer(lambda head: [answer[:9], answer[9:40], answer[40:-3], answer[-3:]]) as server:
        client = connect()
        assert ahead(client, server.url).wait()
        assert client.get(server.url, limit=2_000_000).body == b"x" * 1_000_000


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO,
    b"HTTP/1.0 200 OK\n\nhello",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
], ids=["chunks", "interim", "bare line feeds", "to the end"])
def test_other_forms_of_an_answer(connect: Connect, answer: bytes) -> None:
    with RawServer(lambda head: then_gone(answer)) as server:
        client = connect()
        ahead(client, server.url).wait()
        assert client.get(server.url, limit=10).body == b"hello"
        assert len(server.heads) == 1


@pytest.mark.parametrize(("answer", "says"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "two lengths"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfoo\r\n", "malformed chunk"),
    (b"SPDY/1.1 200 OK\r\n\r\n", "not HTTP/1.1"),
    (b"not even a line", "not HTTP/1.1|closed the connection"),
], ids=["two lengths", "no chunk", "no HTTP", "no line"])
def test_what_is_malformed_is_told_as_without(connect: Connect, answer: bytes, says: str) -> None:
    with RawServer(lambda head: then_gone(answer)) as server:
        client = connect(retries=0)
        assert ahead(client, server.url).wait() is False
        with pytest.raises(IndexUnreachable, match=says):
            client.get(server.url, limit=10)
        assert len(server.heads) == 1


def test_an_answer_that_stops_is_left_to_who_wants_it(connect: Connect) -> None:
    go_on = threading.Event()

    def reply(head: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"
        assert go_on.wait(20)
        yield b"llo\r\n0\r\n\r\n"

    with RawServer(reply) as server:
        client = connect()
        assert ahead(client, server.url).wait() is False
        go_on.set()
        assert client.get(server.url, limit=10).body == b"hello"


def test_a_server_that_says_nothing_is_given_up_after_the_time_that_the_settings_allow(connect: Connect) -> None:
    over = threading.Event()

    def silent(head: str) -> bytes:
        over.wait(30)
        return b""

    with RawServer(silent) as server:
        client = connect(retries=0, timeout=0.5)
        assert ahead(client, server.url).wait() is False
        with pytest.raises(IndexUnreachable, match="no answer within"):
            client.get(server.url, limit=10)
        over.set()


def test_an_answer_that_drips_ends_at_the_deadline(connect: Connect) -> None:
    def drip(head: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
        for _ in range(5000):
            time.sleep(0.05)
            yield b"x"

    with RawServer(drip) as server:
        client = connect(Limits(total=1.0))
        ahead(client, server.url)
        with pytest.raises(IndexUnreachable, match="too long"):
            client.get(server.url, limit=10_000)
        assert len(server.heads) == 1


def test_refusals_and_redirects_are_not_whole(connect: Connect) -> None:
    def reply(head: str) -> bytes:
        if path_of(head) == "/moved":
            return b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
        return HELLO if path_of(head) == "/there" else status("503 Busy") if len(server.heads) == 1 else HELLO

    with RawServer(reply) as server:
        client = connect()
        assert ahead(client, f"{server.url}/busy").wait() is False
        assert client.get(f"{server.url}/busy", limit=10).body == b"hello"
        assert ahead(client, f"{server.url}/moved").wait() is False
        assert client.get(f"{server.url}/moved", limit=10).body == b"hello"


def test_a_port_where_nobody_listens_is_told_as_without(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        url = server.url
    client = connect(retries=0)
    told = [ahead(client, f"{url}/{number}") for number in range(3)]
    assert [one.wait() for one in told] == [False] * 3
    with pytest.raises(IndexUnreachable, match="no connection"):
        client.get(f"{url}/0", limit=10)


def test_over_tls(connect: Connect, tmp_path_factory: pytest.TempPathFactory) -> None:
    bundle, context = make_certificate(tmp_path_factory.mktemp("tls"))
    body = b"x" * 300_000
    with RawServer(lambda head: ok(body), tls=context) as server:
        client = connect(cert=str(bundle))
        told = [ahead(client, f"{server.url}/{number}") for number in range(30)]
        assert all(one.wait() for one in told)
        assert {client.get(f"{server.url}/{number}", limit=400_000).body for number in range(30)} == {body}
        assert len(server.heads) == 30
        assert server.connections <= LIMITS.tls_connections


def test_what_is_larger_than_allowed_is_refused(connect: Connect) -> None:
    with RawServer(lambda head: ok(b"hello")) as server:
        client = connect()
        ahead(client, server.url).wait()
        with pytest.raises(RequestFailed, match="5 bytes, and at most 4"):
            client.get(server.url, limit=4)


def test_closing_wakes_who_waits(connect: Connect) -> None:
    asked, over = threading.Event(), threading.Event()

    def reply(head: str) -> bytes:
        asked.set()
        over.wait(30)
        return HELLO

    with RawServer(reply) as server:
        client = connect()
        ahead(client, server.url)
        assert asked.wait(20)
        threading.Timer(0.2, client.close).start()
        with pytest.raises(Closed):
            client.get(server.url, limit=10)
        over.set()


def test_what_is_forgotten_gives_its_connection_back(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        client = connect(Limits(connections=1))
        for number in range(3):
            told = ahead(client, f"{server.url}/{number}")
            client.forget(f"{server.url}/{number}", {})
            told.wait()
        assert client.get(server.url, limit=10).body == b"hello"
