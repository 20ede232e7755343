"""The client of every network edge: connections that are kept open and shared by a pool of threads.

Why not httpx: on HTTP/1.1 it takes three times as long for the pages of a lock, in wall and in processor time
(benchmarks/client.py; its pool is pure Python and is walked on every request), and 150 ms to import.

Why threads and not asyncio: the solver is synchronous and blocks on one answer while others arrive; asyncio imports
20 ms longer and would need a thread. What is known to be needed is sent by one thread for all (sender.py), since each
thread that reads waits for its turn at the interpreter again and again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from stackfix import __version__
from stackfix.errors import StackfixError
from stackfix.sources.address import Address, parse_address, shown, without_credentials
from stackfix.sources.ahead import Ahead, Awaited
from stackfix.sources.answers import (
    LIMITS,
    Failed,
    How,
    Limits,
    OpenSink,
    Response,
    backoff,
    collected,
    given_up,
    hashed,
    judged,
    next_hop,
    parsed_address,
)
from stackfix.sources.connect import CannotConnect, Dialer, is_loopback, leads_to_loopback, proxy_headers
from stackfix.sources.credentials import Credentials
from stackfix.sources.errors import Closed, IndexUnreachable, RequestFailed, TooLarge
from stackfix.sources.pool import Pool, PoolClosed
from stackfix.sources.records import CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.sender import CAN_WAIT, Sender
from stackfix.sources.wire import (
    Head,
    OverLimit,
    Socket,
    Stream,
    WireFault,
    body_pieces,
    read_head,
    render_request,
)

if TYPE_CHECKING:
    from stackfix.sources.asker import Asker

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5


class Transport:
    """GET, from any thread. Connections are kept per server and given back after each whole answer."""

    def __init__(self, settings: IndexSettings, limits: Limits = LIMITS, *, retries: int | None = None) -> None:
        self._settings, self._limits = settings, limits
        self._retries = settings.retries if retries is None else retries
        self._large = threading.Lock()
        self._dialer = Dialer(settings, min(limits.connect, settings.timeout))
        self._pool = Pool(self._dialer, plain=limits.connections, tls=limits.tls_connections)
        self.credentials = Credentials(settings)
        self._sent = 0              # roughly: threads may count two as one
        self._sender: Sender | None = None
        self.asker: Asker | None = None         # the process that asks ahead
        self._aheads: dict[tuple[object, ...], Awaited] = {}

    @property
    def sent(self) -> int:
        """How many requests went out, roughly."""
        return self._sent + (self._sender.sent if self._sender is not None else 0)

    @property
    def defect(self) -> Exception | None:
        """What ended the asking ahead, which nothing should: it is slower then, and the answers are the same."""
        return self._sender.defect if self._sender is not None else None

    def ask_ahead(self, url: str, *, then: Callable[[bool], object], headers: dict[str, str] | None = None,
                  packed: bool = True, page: tuple[str, str] | None = None, wheel: IndexFile | None = None) -> bool:
        """Has GET `url` sent soon; the next get() of the same takes the answer. Whether that can be done here.

        `then` is called once that get() can go on, from a thread that must not be kept: with True where all of its
        answer is here and it is no refusal. `packed`: the body may travel compressed. Another process may make a page
        of the body (`page`: of which project on which index), or metadata (`wheel`), which made() then gives.
        """
        if not CAN_WAIT or self._pool.closed:
            return False
        wanted = _wanted(headers, packed=packed)
        key = _key(url, wanted)
        if key in self._aheads:
            return False                # it is on its way for another
        if self.asker is not None:
            self._aheads[key] = awaited = Awaited(then, time.monotonic() + self._limits.total)
            awaited.may_be_made = wheel is not None
            if self.asker.ask(awaited, url, wanted, page, wheel):
                self._sent += 1
                return True
        ahead = self.prepared(url, wanted)
        if ahead is None:
            self._aheads.pop(key, None)
            return False                # said when it is wanted
        if self._sender is None:
            self._sender = Sender(self._pool, self._dialer, self._settings.timeout)
        ahead.then = then
        self._aheads[key] = ahead
        self._sender.send(ahead)
        return True

    def prepared(self, url: str, headers: dict[str, str]) -> Ahead | None:
        """The request, for a sender; None where there cannot be one."""
        try:
            address = parse_address(url)
            proxy = self._dialer.proxy_for(address)
            request = self._request(url, address, proxy, headers)
        except (ValueError, WireFault, StackfixError):
            return None
        return Ahead(address, proxy, request, lambda _: None, time.monotonic() + self._limits.total)

    def own_sender(self) -> Sender:
        """A sender without a thread, on the connections of this client."""
        self._sender = Sender(self._pool, self._dialer, self._settings.timeout, threaded=False)
        return self._sender

    def give_back(self, ahead: Ahead, *, whole: bool) -> None:
        """The connection of an answer that was read."""
        if ahead.sock is not None:
            self._pool.give_back(ahead.sock, ahead.address, ahead.proxy, whole=whole)

    def is_asked(self, url: str, headers: dict[str, str], *, packed: bool = True) -> bool:
        """Whether a get() of the same would find its answer on its way."""
        return _key(url, _wanted(headers, packed=packed)) in self._aheads

    def is_made(self, url: str, headers: dict[str, str], *, packed: bool = True) -> bool:
        """Whether made() gives something, at once."""
        awaited = self._aheads.get(_key(url, _wanted(headers, packed=packed)))
        return awaited is not None and awaited.metadata is not None

    def made(self, url: str, headers: dict[str, str], *, packed: bool = True) -> CoreMetadata | None:
        """What another process made of the answer, once it is here; else get() goes on with it."""
        key = _key(url, _wanted(headers, packed=packed))
        awaited = self._aheads.get(key)
        if awaited is None or not awaited.may_be_made:
            return None
        awaited.wait()
        if self._pool.closed:
            raise Closed(shown(url))
        if awaited.metadata is not None:
            self._aheads.pop(key, None)
        return awaited.metadata

    def forget(self, url: str, headers: dict[str, str], *, packed: bool = True) -> None:
        """The answer of what was asked ahead is not wanted any more."""
        ahead = self._aheads.pop(_key(url, _wanted(headers, packed=packed)), None)
        if isinstance(ahead, Ahead):
            if self._sender is not None:
                self._sender.drop(ahead)
        elif ahead is not None and self.asker is not None:
            self.asker.read(ahead)

    def get(self, url: str, *, limit: int, headers: dict[str, str] | None = None, unpack: bool = True,
            open_sink: OpenSink | None = None, total: float | None = None,
            keep_packed: bool = False) -> Response:
        """The answer to GET `url`, after redirects and retries; at most `limit` bytes (unpacked), else TooLarge.

        With `unpack` the body may travel compressed, with `keep_packed` it is given as it travelled. With `open_sink`
        the bytes of a 200 go there and not into `body`.
        Raises IndexUnreachable, RateLimited, TooLarge or RequestFailed.
        """
        deadline = time.monotonic() + (self._limits.total if total is None else total)
        wanted = _wanted(headers, packed=unpack or keep_packed)
        ahead = self._aheads.get(_key(url, wanted))
        if ahead is not None and (ahead.late or not ahead.is_done()):
            deadline = min(deadline, ahead.deadline)
        for hop in range(_MAX_REDIRECTS + 1):
            address = parsed_address(url)
            anonymous = self.credentials.header_for(address) is None
            how = How(limit=limit, deadline=deadline, open_sink=open_sink, unpack=unpack and not keep_packed,
                       followed=hop > 0)
            answer = self._persist(url, address, wanted, how)
            if answer.status in (401, 403) and anonymous and self.credentials.found_after_refusal(address):
                answer = self._persist(url, address, wanted, how)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            following = next_hop(url, answer.headers["location"])
            if self._is_ourselves(following) and not self._is_ourselves(url):
                raise RequestFailed(url, f"it redirects to this machine ({shown(following)})")
            url = following
        raise RequestFailed(url, f"more than {_MAX_REDIRECTS} redirects")

    def close(self) -> None:
        """Drop every connection; requests under way fail."""
        self._pool.close()
        if self._sender is not None:
            self._sender.close()
        if self.asker is not None:
            self.asker.close()

    def _persist(self, url: str, address: Address, headers: dict[str, str], how: How) -> Response:
        """One hop, tried until it gives an answer or trying is over."""
        waited, tries = 0.0, 0
        while True:
            try:
                return self._try(url, address, headers, how)
            except Failed as fault:
                failed = fault
            except OverLimit as over:
                size = "more" if over.size is None else f"{over.size} bytes"
                raise TooLarge(url, f"its answer has {size}, and at most {how.limit} are accepted here") from None
            tries += 1
            pause = backoff(tries) if failed.wait is None else failed.wait
            over_now = tries > self._retries or (not failed.dialled and tries >= self._limits.dial_tries)
            if over_now or waited + pause > self._limits.retry_wait or time.monotonic() + pause >= how.deadline:
                raise given_up(url, failed, tries)
            waited += pause
            time.sleep(pause)

    def _try(self, url: str, address: Address, headers: dict[str, str], how: How) -> Response:
        import hashlib  # 2 ms, while answers are on their way

        proxy = self._dialer.proxy_for(address)
        while True:
            # what was made of an answer is of use where it was asked for, and nowhere that leads there
            ahead = None if how.followed and self.asker is not None else self._taken(url, headers)
            if ahead is not None and ahead.page is not None and ahead.head is not None:
                return Response(url=without_credentials(url), status=ahead.head.status, headers=ahead.head.headers,
                                body=b"", packed=ahead.packed, page=ahead.page)
            if ahead is not None and ahead.stream is not None:
                sock, reused, stream = ahead.sock, ahead.reused, ahead.stream
            else:
                sock, reused = self._connection(url, address, proxy, how.deadline)
                stream, ahead = Stream(sock, self._settings.timeout, how.deadline), None
            whole = False
            try:
                if ahead is None:
                    stream.send(self._request(url, address, proxy, headers))
                    self._sent += 1
                head = _head_of(ahead, stream) if ahead is not None else read_head(stream)
                digest = hashlib.sha256() if "Range" not in headers else None
                pieces = body_pieces(head, how.limit)
                pieces = pieces if digest is None else hashed(pieces, digest.update)
                body = collected(pieces, head, how.limit, how.open_sink, self._large, packed=how.unpack)
                whole = not head.will_close and stream.drained()
            except WireFault as fault:
                if self._pool.closed:
                    raise Closed(shown(url)) from None
                if reused and fault.fresh:
                    continue  # the server had closed a kept connection: RFC 9112, section 9.3.1
                if fault.slow and time.monotonic() >= how.deadline:
                    raise IndexUnreachable(url, fault.reason) from None
                raise Failed(fault.reason) from None
            finally:
                if sock is not None:
                    self._pool.give_back(sock, address, proxy, whole=whole)
            return judged(url, head, body, None if digest is None else digest.hexdigest())

    def _is_ourselves(self, url: str) -> bool:
        """Whether an address is of this machine; what a name behind a proxy means is the proxy's to know."""
        address = parsed_address(url)
        proxied = self._dialer.proxy_for(address) is not None
        return is_loopback(address.host) if proxied else leads_to_loopback(address.host)

    def _taken(self, url: str, headers: dict[str, str]) -> Awaited | None:
        """What was asked ahead, once there is something to go on with; the next who asks gets nothing."""
        ahead = self._aheads.pop(_key(url, headers), None) if self._aheads else None
        if ahead is not None:
            ahead.wait()
            if not isinstance(ahead, Ahead):
                if self.asker is not None:
                    self.asker.read(ahead)
            elif self._sender is not None:
                self._sender.read(ahead)
            if self._pool.closed:
                raise Closed(shown(url))
        return ahead

    def _request(self, url: str, address: Address, proxy: Address | None, headers: dict[str, str]) -> bytes:
        target = address.target
        every = {"Host": address.netloc, "User-Agent": f"stackfix/{__version__}", "Accept": "*/*", **headers}
        login = self.credentials.header_for(address)
        if login is not None:
            every["Authorization"] = login
        elif self.credentials.required(address):
            raise RequestFailed(url, "its settings ask for a login (authenticate = always), and none is known",
                                hint="put it in the address or in netrc, or let the keyring be asked")
        if proxy is not None and address.scheme == "http":
            target = f"http://{address.netloc}{target}"
            every.update(proxy_headers(proxy))
        try:
            return render_request("GET", target, every)
        except WireFault as fault:
            raise RequestFailed(url, fault.reason) from None

    def _connection(self, url: str, address: Address, proxy: Address | None, deadline: float) -> tuple[Socket, bool]:
        try:
            return self._pool.take(address, proxy, deadline)
        except PoolClosed:
            raise Closed(shown(url)) from None
        except WireFault as fault:
            raise IndexUnreachable(url, fault.reason) from None
        except CannotConnect as fault:
            if fault.final:
                raise IndexUnreachable(url, fault.reason, hint=fault.hint) from None
            raise Failed(fault.reason, dialled=False, hint=fault.hint) from None


def _wanted(headers: dict[str, str] | None, *, packed: bool) -> dict[str, str]:
    return {"Accept-Encoding": "gzip" if packed else "identity", **(headers or {})}


def _key(url: str, headers: dict[str, str]) -> tuple[object, ...]:
    return url, *headers.items()


def _head_of(ahead: Awaited, stream: Stream) -> Head:
    """The head of what was asked ahead. Raises WireFault."""
    if ahead.fault is not None:
        raise ahead.fault
    return read_head(stream) if ahead.head is None else ahead.head
