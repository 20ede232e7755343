"""The client of every network edge: connections that are kept open and shared by a pool of threads.

Why not httpx: on HTTP/1.1 it takes three times as long for the pages of a lock, in wall and in processor time
(benchmarks/client.py; its pool is pure Python and is walked on every request), and 150 ms to import.

Why threads and not asyncio: the solver is synchronous and blocks on one answer while others arrive; asyncio imports
20 ms longer and would need a thread. What is known to be needed is sent by one thread for all (sender.py), since each
thread that reads waits for its turn at the interpreter again and again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from stackfix import __version__
from stackfix.errors import StackfixError
from stackfix.quick import dataclass
from stackfix.sources.address import Address, parse_address, shown, without_credentials
from stackfix.sources.ahead import Ahead, Awaited
from stackfix.sources.connect import CannotConnect, Dialer, is_loopback, leads_to_loopback, proxy_headers
from stackfix.sources.credentials import Credentials
from stackfix.sources.errors import Closed, IndexUnreachable, RateLimited, RequestFailed, TooLarge
from stackfix.sources.pool import Pool, PoolClosed
from stackfix.sources.records import CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.sender import CAN_WAIT, Sender
from stackfix.sources.wire import (
    OK,
    TOO_MANY,
    Head,
    OverLimit,
    Socket,
    Stream,
    WireFault,
    body_pieces,
    bounded,
    gunzipped,
    read_head,
    render_request,
)

if TYPE_CHECKING:
    from stackfix.sources.asker import Asker, MadePage

_REDIRECTS = (301, 302, 303, 307, 308)
_AGAIN = (TOO_MANY, 500, 502, 503, 504)
_MAX_REDIRECTS = 5
_LARGE = 8 * 1024 * 1024            # of an answer; of what is larger one at a time is taken into memory
_GZIP = ("gzip", "x-gzip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how large. A request ends at `total` seconds whatever the server does, retries included."""

    total: float = 120.0
    connect: float = 10.0
    retry_wait: float = 30.0        # seconds of waiting between tries, in all
    page: int = 64 * 1024 * 1024
    metadata: int = 16 * 1024 * 1024
    projects: int = 3000            # pages of one run: each may ask for one more, for ever
    pages: int = 512 * 1024 * 1024  # of all pages of one run, as they are held
    dial_tries: int = 3             # a name that does not resolve, or a shut port, seldom changes within a minute
    connections: int = 50           # per server, at once
    tls_connections: int = 12       # the same, where each costs a handshake


LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A final answer. Its status may be any that is neither a redirect nor worth a retry."""

    url: str                        # where it came from in the end, without credentials
    status: int
    headers: dict[str, str]
    body: bytes
    packed: str | None = None       # sha256 of the body as it was sent; not of a range
    page: MadePage | None = None    # in its body's place: what another process made of it


Sink = Callable[[bytes], object]
OpenSink = Callable[[], Sink]  # called once per try: a retry starts from nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """How one hop is to be taken."""

    limit: int
    deadline: float
    open_sink: OpenSink | None
    unpack: bool
    followed: bool                  # a redirect led here


class _Failed(Exception):
    """One try failed; another may not."""

    def __init__(self, reason: str, *, wait: float | None = None, status: int | None = None, dialled: bool = True,
                 hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.wait, self.status, self.dialled, self.hint = reason, wait, status, dialled, hint


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
            address = _parsed(url)
            anonymous = self.credentials.header_for(address) is None
            how = _How(limit=limit, deadline=deadline, open_sink=open_sink, unpack=unpack and not keep_packed,
                       followed=hop > 0)
            answer = self._persist(url, address, wanted, how)
            if answer.status in (401, 403) and anonymous and self.credentials.found_after_refusal(address):
                answer = self._persist(url, address, wanted, how)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            following = _next_hop(url, answer.headers["location"])
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

    def _persist(self, url: str, address: Address, headers: dict[str, str], how: _How) -> Response:
        """One hop, tried until it gives an answer or trying is over."""
        waited, tries = 0.0, 0
        while True:
            try:
                return self._try(url, address, headers, how)
            except _Failed as fault:
                failed = fault
            except OverLimit as over:
                size = "more" if over.size is None else f"{over.size} bytes"
                raise TooLarge(url, f"its answer has {size}, and at most {how.limit} are accepted here") from None
            tries += 1
            pause = _backoff(tries) if failed.wait is None else failed.wait
            over_now = tries > self._retries or (not failed.dialled and tries >= self._limits.dial_tries)
            if over_now or waited + pause > self._limits.retry_wait or time.monotonic() + pause >= how.deadline:
                raise _given_up(url, failed, tries)
            waited += pause
            time.sleep(pause)

    def _try(self, url: str, address: Address, headers: dict[str, str], how: _How) -> Response:
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
                pieces = pieces if digest is None else _hashed(pieces, digest.update)
                body = _collect(pieces, head, how.limit, how.open_sink, self._large, packed=how.unpack)
                whole = not head.will_close and stream.drained()
            except WireFault as fault:
                if self._pool.closed:
                    raise Closed(shown(url)) from None
                if reused and fault.fresh:
                    continue  # the server had closed a kept connection: RFC 9112, section 9.3.1
                if fault.slow and time.monotonic() >= how.deadline:
                    raise IndexUnreachable(url, fault.reason) from None
                raise _Failed(fault.reason) from None
            finally:
                if sock is not None:
                    self._pool.give_back(sock, address, proxy, whole=whole)
            return _judged(url, head, body, None if digest is None else digest.hexdigest())

    def _is_ourselves(self, url: str) -> bool:
        """Whether an address is of this machine; what a name behind a proxy means is the proxy's to know."""
        address = _parsed(url)
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
            raise _Failed(fault.reason, dialled=False, hint=fault.hint) from None


def _wanted(headers: dict[str, str] | None, *, packed: bool) -> dict[str, str]:
    return {"Accept-Encoding": "gzip" if packed else "identity", **(headers or {})}


def _key(url: str, headers: dict[str, str]) -> tuple[object, ...]:
    return url, *headers.items()


def _head_of(ahead: Awaited, stream: Stream) -> Head:
    """The head of what was asked ahead. Raises WireFault."""
    if ahead.fault is not None:
        raise ahead.fault
    return read_head(stream) if ahead.head is None else ahead.head


def _collect(pieces: Iterator[bytes], head: Head, limit: int, open_sink: OpenSink | None, turn: threading.Lock, *,
             packed: bool) -> bytes:
    """The body, unpacked when it was packed for the way; only what we asked for is undone."""
    pieces = bounded(pieces, limit)
    coding = _coding(head)
    if coding in _GZIP and packed:
        pieces = gunzipped(pieces, limit)
    elif coding not in ("", "identity") and packed:
        raise WireFault(f"the answer has the content coding {coding[:40]!r}")
    if open_sink is None or head.status != OK:
        return _joined(pieces, turn)
    sink = open_sink()
    for piece in pieces:
        sink(piece)
    return b""


def _joined(pieces: Iterator[bytes], turn: threading.Lock) -> bytes:
    """All pieces; fifty servers that each send as much as they may do not fill the memory together."""
    taken: list[bytes] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece)
        if size > _LARGE:
            with turn:
                taken.extend(pieces)
    return b"".join(taken)


def _coding(head: Head) -> str:
    return head.headers.get("content-encoding", "").strip().lower()


def _hashed(pieces: Iterator[bytes], update: Sink) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def _judged(url: str, head: Head, body: bytes, packed: str | None) -> Response:
    if head.status in _AGAIN:
        raise _Failed(f"it answered {head.status}", wait=retry_after(head.headers.get("retry-after")),
                      status=head.status)
    return Response(url=without_credentials(url), status=head.status, headers=head.headers, body=body, packed=packed)


def _backoff(tries: int) -> float:
    """Seconds before the next try, spread so that many clients do not come back together."""
    import random

    return min(8.0, 0.2 * 2.0 ** tries) * random.uniform(0.6, 1.0)  # noqa: S311


def _given_up(url: str, failed: _Failed, tries: int) -> RequestFailed:
    times = f", {tries} times" if tries > 1 else ""
    asked = f" and asks to wait {failed.wait:g} s" if failed.wait else ""
    if failed.status == TOO_MANY:
        return RateLimited(url, f"{failed.reason} (too many requests){times}{asked}", hint="try again later",
                           status=TOO_MANY)
    if failed.status is not None:
        return IndexUnreachable(url, f"{failed.reason}{times}{asked}", hint="try again later", status=failed.status)
    return IndexUnreachable(url, f"{failed.reason}{times}",
                            hint=failed.hint or "check the address, the network and the proxy settings")


def refused(answer: Response, url: str) -> RequestFailed:
    """The error for an answer that is final and is not what was asked for."""
    hint = "check the credentials for this server (in its address, or netrc)" if answer.status in (401, 403) else None
    return RequestFailed(url, f"it answered {answer.status}", status=answer.status, hint=hint)


def retry_after(text: str | None) -> float | None:
    """Seconds to wait as a Retry-After header says (RFC 9110, section 10.2.3), None where it says nothing usable."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _next_hop(url: str, location: str) -> str:
    try:
        following = without_credentials(urljoin(url, location))
        address = parse_address(following)
    except ValueError:
        raise RequestFailed(url, "it redirects to something that is no http(s) address") from None
    if address.scheme == "http" and url.startswith("https:"):
        raise RequestFailed(url, f"it redirects from https to http ({shown(following)})")
    return following


def _parsed(url: str) -> Address:
    try:
        return parse_address(url)
    except ValueError as fault:
        raise RequestFailed(url, str(fault)) from None
