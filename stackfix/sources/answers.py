"""Answers, and what becomes of them: how large and how late they may be, when to try again, how a failure is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from stackfix.quick import dataclass
from stackfix.sources.address import Address, parse_address, shown, without_credentials
from stackfix.sources.errors import IndexUnreachable, RateLimited, RequestFailed
from stackfix.sources.wire import OK, TOO_MANY, Head, WireFault, bounded, gunzipped

if TYPE_CHECKING:
    from stackfix.sources.asker import MadePage

_AGAIN = (TOO_MANY, 500, 502, 503, 504)
_LARGE = 8 * 1024 * 1024            # of an answer; of what is larger one at a time is taken into memory
_GZIP = ("gzip", "x-gzip")
Sink = Callable[[bytes], object]
OpenSink = Callable[[], Sink]  # called once per try: a retry starts from nothing


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


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How one hop is to be taken."""

    limit: int
    deadline: float
    open_sink: OpenSink | None
    unpack: bool
    followed: bool                  # a redirect led here


class Failed(Exception):
    """One try failed; another may not."""

    def __init__(self, reason: str, *, wait: float | None = None, status: int | None = None, dialled: bool = True,
                 hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.wait, self.status, self.dialled, self.hint = reason, wait, status, dialled, hint


def collected(pieces: Iterator[bytes], head: Head, limit: int, open_sink: OpenSink | None, turn: threading.Lock, *,
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


def hashed(pieces: Iterator[bytes], update: Sink) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def judged(url: str, head: Head, body: bytes, packed: str | None) -> Response:
    if head.status in _AGAIN:
        raise Failed(f"it answered {head.status}", wait=retry_after(head.headers.get("retry-after")),
                      status=head.status)
    return Response(url=without_credentials(url), status=head.status, headers=head.headers, body=body, packed=packed)


def backoff(tries: int) -> float:
    """Seconds before the next try, spread so that many clients do not come back together."""
    import random

    return min(8.0, 0.2 * 2.0 ** tries) * random.uniform(0.6, 1.0)  # noqa: S311


def given_up(url: str, failed: Failed, tries: int) -> RequestFailed:
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


def next_hop(url: str, location: str) -> str:
    try:
        following = without_credentials(urljoin(url, location))
        address = parse_address(following)
    except ValueError:
        raise RequestFailed(url, "it redirects to something that is no http(s) address") from None
    if address.scheme == "http" and url.startswith("https:"):
        raise RequestFailed(url, f"it redirects from https to http ({shown(following)})")
    return following


def parsed_address(url: str) -> Address:
    try:
        return parse_address(url)
    except ValueError as fault:
        raise RequestFailed(url, str(fault)) from None
