"""The client against servers that are slow, broken, hostile or behind something."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from stackfix.errors import BadInput, StackfixError
from stackfix.sources.answers import LIMITS, Limits, retry_after
from stackfix.sources.errors import Closed, IndexUnreachable, RateLimited, RequestFailed, TooLarge
from stackfix.sources.records import IndexSettings
from stackfix.sources.transport import Transport
from tests.sources_servers import (
    RawServer,
    header_of,
    make_certificate,
    ok,
    path_of,
    settings_for,
    status,
)

HELLO = ok(b"hello")
Connect = Callable[..., Transport]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients, and closes them after the test."""
    clients: list[Transport] = []

    def make(settings: IndexSettings, limits: Limits = LIMITS) -> Transport:
        clients.append(Transport(settings, limits))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_connections_are_kept_and_shared(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        client = connect(settings_for())
        assert [client.get(server.url, limit=10).body for _ in range(5)] == [b"hello"] * 5
        assert server.connections == 1
        assert server.header("host") == [f"127.0.0.1:{server.port}"] * 5
        client.close()


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(connect: Connect) -> None:
    replies = iter([HELLO, b"", HELLO])
    with RawServer(lambda head: next(replies)) as server:
        client = connect(settings_for(retries=0))
        client.get(server.url, limit=10)
        assert client.get(server.url, limit=10).body == b"hello"
        assert server.connections == 2


def test_a_server_gets_no_more_connections_than_allowed(connect: Connect) -> None:
    def slowly(head: str) -> Iterator[bytes]:
        time.sleep(0.02)
        yield HELLO

    with RawServer(slowly) as server:
        client = connect(settings_for(), Limits(connections=3))
        threads = [threading.Thread(target=client.get, args=(server.url,), kwargs={"limit": 10}) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.heads) == 20
        assert server.connections == 3


def test_a_connection_that_could_not_be_made_leaves_its_place(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        url = server.url
    client = connect(settings_for(retries=0), Limits(connections=1))
    for _ in range(3):
        with pytest.raises(IndexUnreachable, match="refused"):
            client.get(url, limit=10)


def test_waiting_for_a_connection_ends_with_the_deadline(connect: Connect) -> None:
    with RawServer(silence) as server:
        client = connect(settings_for(retries=0), Limits(connections=1, total=0.3))
        faults: list[str] = []

        def ask() -> None:
            try:
                client.get(server.url, limit=10)
            except IndexUnreachable as fault:
                faults.append(str(fault))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(faults) == 3


@pytest.mark.parametrize("first", [
    status("429 Too Many", "Retry-After: 0"), status("503 Busy"), status("502 Bad"), status("504 Late"), b"",
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nConnection: close\r\n\r\nshort", b"nonsense\r\n\r\n",
])
def test_a_passing_fault_is_tried_again(first: bytes, connect: Connect) -> None:
    with RawServer(lambda head: HELLO if len(server.heads) > 1 else hang_up_after(first)) as server:
        assert connect(settings_for()).get(server.url, limit=100).body == b"hello"
        assert len(server.heads) == 2


def hang_up_after(data: bytes) -> Iterator[bytes]:
    yield data
    raise OSError


@pytest.mark.parametrize(("reply", "kind", "text"), [
    (status("429 Too Many"), RateLimited, "429 (too many requests), 3 times"),
    (status("503 Busy"), IndexUnreachable, "answered 503, 3 times"),
    (b"", IndexUnreachable, "closed the connection early, 3 times"),
])
def test_a_lasting_fault_ends_after_the_retries(
    reply: bytes, kind: type[StackfixError], text: str, connect: Connect,
) -> None:
    with RawServer(lambda head: reply) as server, pytest.raises(kind) as fault:
        connect(settings_for()).get(f"{server.url}/simple/x/", limit=100)
    assert text in str(fault.value)
    assert f"http://127.0.0.1:{server.port}/simple/x/" in str(fault.value)
    assert fault.value.next_step()
    assert fault.value.exit_status == 3
    assert len(server.heads) == 3


def test_a_retry_after_that_is_too_long_is_not_waited_for(connect: Connect) -> None:
    with RawServer(lambda head: status("429 No", "Retry-After: 3600")) as server, pytest.raises(RateLimited) as fault:
        connect(settings_for()).get(server.url, limit=100)
    assert "asks to wait 3600 s" in str(fault.value)
    assert len(server.heads) == 1


def test_retry_after_is_read_in_both_forms() -> None:
    assert retry_after("7") == 7.0
    in_a_minute = retry_after(formatdate(time.time() + 60, usegmt=True))
    assert in_a_minute is not None
    assert 55 < in_a_minute <= 61
    assert retry_after(formatdate(0, usegmt=True)) == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None


def test_a_server_that_says_nothing_ends_with_the_read_timeout(connect: Connect) -> None:
    with RawServer(silence) as server, pytest.raises(IndexUnreachable, match=r"no answer within 0.2 s"):
        connect(settings_for(timeout=0.2, retries=0)).get(server.url, limit=100)


def silence(head: str) -> Iterator[bytes]:
    threading.Event().wait(30)
    yield b""


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b""])
def test_a_slow_drip_ends_with_the_deadline(head: bytes, connect: Connect) -> None:
    def drip(_: str) -> Iterator[bytes]:
        yield head
        for _number in range(1000):
            time.sleep(0.05)
            yield b"x"

    with RawServer(drip) as server, pytest.raises(IndexUnreachable, match="too long in all"):
        connect(settings_for(), Limits(total=0.6)).get(server.url, limit=10_000)
    assert len(server.heads) == 1   # not tried again: it would only take as long again


def test_large_answers_are_refused_unread(connect: Connect) -> None:
    huge = b"HTTP/1.1 200 OK\r\nContent-Length: 800000000000\r\n\r\n"
    with RawServer(lambda head: huge) as server, pytest.raises(TooLarge, match="800000000000 bytes"):
        connect(settings_for()).get(server.url, limit=100)
    assert len(server.heads) == 1


def test_an_endless_answer_is_cut_off(connect: Connect) -> None:
    def endless(head: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield bytes(65536)

    with RawServer(endless) as server, pytest.raises(TooLarge, match="more"):
        connect(settings_for()).get(server.url, limit=1_000_000)


def test_gzip_is_undone_only_where_it_was_asked_for(connect: Connect) -> None:
    packed = gzip.compress(b"hello" * 100)
    with RawServer(lambda head: ok(packed, headers=("Content-Encoding: gzip",))) as server:
        client = connect(settings_for())
        assert client.get(server.url, limit=1000).body == b"hello" * 100
        assert client.get(server.url, limit=1000, unpack=False).body == packed
        assert server.header("accept-encoding") == ["gzip", "identity"]
        with pytest.raises(TooLarge):
            client.get(server.url, limit=400)


def test_an_unknown_coding_is_refused(connect: Connect) -> None:
    with RawServer(lambda head: ok(b"x", headers=("Content-Encoding: br",))) as server, \
            pytest.raises(RequestFailed, match="content coding 'br'"):
        connect(settings_for(retries=0)).get(server.url, limit=100)


def test_redirects_are_followed_and_counted(connect: Connect) -> None:
    def hop(head: str) -> bytes:
        number = int(path_of(head).strip("/"))
        return HELLO if number == 5 else status("302 Found", f"Location: /{number + 1}")

    with RawServer(hop) as server:
        client = connect(settings_for())
        answer = client.get(f"{server.url}/0", limit=100)
        assert (answer.body, answer.url) == (b"hello", f"{server.url}/5")
        server.reply = lambda head: status("301 Moved", "Location: /again")
        with pytest.raises(RequestFailed, match="more than 5 redirects"):
            client.get(server.url, limit=100)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://", "http://[", "//\x01"])
def test_a_redirect_leads_only_to_web_addresses(location: str, connect: Connect) -> None:
    with RawServer(lambda head: status("302 Found", f"Location: {location}")) as server, \
            pytest.raises(RequestFailed):
        connect(settings_for()).get(server.url, limit=100)


def test_credentials_do_not_follow_a_redirect_to_another_server(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as other:
        with RawServer(lambda head: status("302 Found", f"Location: http://u:p@127.0.0.1:{other.port}/x")) as server:
            index = server.url.replace("http://", "http://me:s3cret@") + "/simple"
            answer = connect(settings_for(index)).get(f"{server.url}/simple/x/", limit=100)
            assert server.header("authorization") == ["Basic " + b64encode(b"me:s3cret").decode()]
        assert other.header("authorization") == [None]
        assert answer.url == f"{other.url}/x"


def test_credentials_of_an_index_and_of_netrc_go_to_their_servers(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as one, RawServer(lambda head: HELLO) as two:
        index = one.url.replace("http://", "http://a%40b:p%3Aq@") + "/simple"
        client = connect(settings_for(index, netrc=(("127.0.0.1", "net", "rc"), ("elsewhere", "x", "y"))))
        client.get(f"{one.url}/simple/x/", limit=100)
        client.get(f"{one.url}/files/x.whl", limit=100)
        client.get(f"{two.url}/x", limit=100)
        decoded = [b64decode(str(value).removeprefix("Basic ")) for value in one.header("authorization")]
        assert decoded == [b"a@b:p:q", b"a@b:p:q"]
        assert two.header("authorization") == ["Basic " + b64encode(b"net:rc").decode()]
        client.get(two.url.replace("127.0.0.1", "localhost"), limit=100)
        assert two.header("authorization")[-1] is None


def test_two_indexes_on_one_server_keep_their_own_credentials(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        base = server.url.removeprefix("http://")
        client = connect(settings_for(f"http://a:1@{base}/one/simple", f"http://b:2@{base}/two/simple"))
        client.get(f"{server.url}/two/simple/x/", limit=100)
        client.get(f"{server.url}/one/simple/x/", limit=100)
        assert [b64decode(str(value)[6:]) for value in server.header("authorization")] == [b"b:2", b"a:1"]


def test_no_error_shows_a_credential(connect: Connect) -> None:
    with RawServer(lambda head: status("401 No")) as server:
        index = server.url.replace("http://", "http://me:s3cret@")
        server.reply = lambda head: status("503 Busy")
        with pytest.raises(RequestFailed) as fault:
            connect(settings_for(index, retries=0)).get(f"{index}/x?sig=s3cret", limit=100)
    assert "s3cret" not in f"{fault.value!s} {fault.value!r} {fault.value.next_step()}"


def test_a_shut_port_and_an_unknown_name_are_told_apart(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        url = server.url
    with pytest.raises(IndexUnreachable, match="refused"):
        connect(settings_for(retries=0)).get(url, limit=100)
    with pytest.raises(IndexUnreachable, match=r"host name no\.such\.host\.invalid cannot be resolved"):
        connect(settings_for(retries=0)).get("http://no.such.host.invalid/", limit=100)


@pytest.mark.parametrize("url", ["ftp://x/", "x", "http://", "http://a b/", "http://[::1", "http://x:99999/"])
def test_what_is_no_web_address_is_never_asked(url: str, connect: Connect) -> None:
    with pytest.raises(RequestFailed):
        connect(settings_for()).get(url, limit=100)


def test_unsafe_letters_in_an_address_are_encoded(connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        connect(settings_for()).get(f'{server.url}/a b/é?q="x"#f', limit=100)
        assert path_of(server.heads[0]) == "/a%20b/%C3%A9?q=%22x%22"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_tls_is_verified(certificate: tuple[Path, ssl.SSLContext], connect: Connect) -> None:
    bundle, context = certificate
    with RawServer(lambda head: HELLO, tls=context) as server:
        trusting = connect(settings_for(cert=str(bundle)))
        assert [trusting.get(server.url, limit=100).body for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 1
        with pytest.raises(IndexUnreachable, match="certificate is not trusted") as fault:
            connect(settings_for()).get(server.url, limit=100)
        assert "SSL_CERT_FILE" in str(fault.value.next_step())
        assert server.connections == 2  # once: trying again cannot help
        with pytest.raises(BadInput, match="CA bundle"):
            connect(settings_for(cert=str(bundle) + ".none")).get(server.url, limit=100)


def test_https_never_becomes_http(certificate: tuple[Path, ssl.SSLContext], connect: Connect) -> None:
    bundle, context = certificate
    with RawServer(lambda head: HELLO) as plain:
        with RawServer(lambda head: status("302 Found", f"Location: {plain.url}/"), tls=context) as server, \
                pytest.raises(RequestFailed, match="from https to http"):
            connect(settings_for(cert=str(bundle))).get(server.url, limit=100)
        assert not plain.heads


def test_a_plain_request_goes_through_the_proxy(connect: Connect) -> None:
    with RawServer(lambda head: ok(b"proxied")) as proxy:
        through = f"http://pu:pp@127.0.0.1:{proxy.port}"
        client = connect(settings_for(proxies=(("http", through),)))
        assert client.get("http://index.invalid/simple/x/", limit=100).body == b"proxied"
        assert path_of(proxy.heads[0]) == "http://index.invalid/simple/x/"
        assert header_of(proxy.heads[0], "proxy-authorization") == "Basic " + b64encode(b"pu:pp").decode()


def test_tls_goes_through_a_tunnel(certificate: tuple[Path, ssl.SSLContext], connect: Connect) -> None:
    bundle, context = certificate
    with RawServer(lambda head: HELLO, tls=context) as server, TunnelProxy() as proxy:
        client = connect(settings_for(cert=str(bundle), proxies=(("all", f"127.0.0.1:{proxy.port}"),)))
        assert [client.get(server.url, limit=100).body for _ in range(2)] == [b"hello"] * 2
        assert [head.split("\r\n")[0] for head in proxy.heads] == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]
        assert header_of(server.heads[0], "proxy-authorization") is None


def test_a_proxy_that_refuses_is_named(connect: Connect) -> None:
    with RawServer(lambda head: status("407 Login")) as proxy:
        client = connect(settings_for(proxies=(("https", proxy.url),)))
        with pytest.raises(IndexUnreachable, match=r"proxy 127\.0\.0\.1:[0-9]+ answered 407 to CONNECT"):
            client.get("https://index.invalid/", limit=100)
        assert len(proxy.heads) == 1


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "*", "10.0.0.0/8, 127.0.0.0/8", "x,127.0.0.1:{port}"])
def test_no_proxy_goes_straight(no_proxy: str, connect: Connect) -> None:
    with RawServer(lambda head: HELLO) as server:
        client = connect(settings_for(proxies=(("http", "http://127.0.0.1:9"),),
                                        no_proxy=no_proxy.format(port=server.port)))
        assert client.get(server.url, limit=100).body == b"hello"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "socks5h://x", "https://127.0.0.1:1"])
def test_a_kind_of_proxy_that_is_not_known_is_said(proxy: str, connect: Connect) -> None:
    with pytest.raises(BadInput, match="proxy"):
        connect(settings_for(proxies=(("http", proxy),))).get("http://index.invalid/", limit=100)


def test_close_ends_what_is_under_way(connect: Connect) -> None:
    with RawServer(silence) as server:
        client = connect(settings_for(timeout=60.0))
        faults: list[BaseException] = []

        def ask() -> None:
            try:
                client.get(server.url, limit=100)
            except StackfixError as fault:
                faults.append(fault)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.heads:
            time.sleep(0.01)
        client.close()
        thread.join(10)
        assert [type(fault) for fault in faults] == [Closed]
        with pytest.raises(Closed):
            client.get(server.url, limit=100)


def test_a_retry_starts_the_sink_from_nothing(connect: Connect) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
    with RawServer(lambda head: whole if len(server.heads) > 1 else hang_up_after(whole[:-4])) as server:
        taken: list[list[bytes]] = []

        def start() -> Callable[[bytes], None]:
            taken.append([])
            return taken[-1].append

        connect(settings_for()).get(server.url, limit=100, open_sink=start)
        assert [b"".join(pieces) for pieces in taken] == [b"012345", b"0123456789"]


class TunnelProxy(RawServer):
    """A proxy that knows CONNECT only."""

    def __init__(self) -> None:
        super().__init__(lambda head: b"")

    def _serve(self, plain: object) -> None:
        import socket

        assert isinstance(plain, socket.socket)
        head = b""
        while b"\r\n\r\n" not in head:
            head += plain.recv(1)
        self.heads.append(head.decode())
        host, _, port = path_of(self.heads[-1]).rpartition(":")
        beyond = socket.create_connection((host, int(port)))
        self._open.append(beyond)
        plain.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=pump, args=(beyond, plain), daemon=True).start()
        pump(plain, beyond)


def pump(source: object, target: object) -> None:
    """Bytes from one socket to the other until either ends."""
    import socket

    assert isinstance(source, socket.socket)
    assert isinstance(target, socket.socket)
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
