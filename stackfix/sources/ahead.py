"""Requests that are sent ahead of the need: one thread sends many, and reads until an answer is whole.

A thread per request waits for its turn at the interpreter after each read, up to 5 ms where another computes, and fifty
of them take twice the processor time of the work itself. Here one thread turns to all connections that have something.
It judges nothing: an answer whose head states a length is read to that length by it, any other goes with its connection
to the thread that wants it, which goes on where this one stopped, by the same code as without it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from stackfix.sources.address import Address
from stackfix.sources.wire import Head, Socket, Stream, WireFault, read_head

if TYPE_CHECKING:
    from stackfix.sources.asker import MadePage
    from stackfix.sources.records import CoreMetadata

_LARGE = 8 * 1024 * 1024            # an answer that is larger is read by the thread that wants it
_HEAD_END = re.compile(rb"\n\r?\n")
_LONGEST_HEAD = 65536
_GRACE = 2.0                        # seconds beyond the deadline in which it is told as late by who asked
# keep: the answer is whole, and its connection is free; whole: the answer is here, but its end has to be found; leave:
# it goes with its connection to the thread that wants it
Verdict = Literal["more", "keep", "whole", "leave"]


class Unsettled(Exception):
    """More has to be received before this can be told."""


class _Dry:
    """In place of a socket, under a stream that holds all there is. `ended`: the server closed the connection."""

    def __init__(self, *, ended: bool) -> None:
        self._ended = ended

    def recv(self, _: int) -> bytes:
        if self._ended:
            return b""
        raise Unsettled

    def settimeout(self, _: float | None) -> None:
        """Nothing waits here."""


DRY: Any = _Dry(ended=False)
ENDED: Any = _Dry(ended=True)


class Awaited:
    """One answer that is on its way. Wanted once."""

    def __init__(self, then: Callable[[bool], object], deadline: float) -> None:
        self.then = then
        self.deadline = deadline            # by the monotonic clock, for all of it
        self.late = False
        self.sock: Socket | None = None     # that whoever wants the answer has to give back
        self.stream: Stream | None = None   # what came of it; None: it was not sent
        self.head: Head | None = None       # where it was read; the stream then stands at the body
        self.complete = False               # whether all of it is here, as far as that can be told
        self.page: MadePage | None = None   # what was made of it in its body's place
        self.may_be_made = False            # whether metadata may come of it
        self.metadata: CoreMetadata | None = None       # the same, of a wheel
        self.packed: str | None = None      # with a page: sha256 of the body as it was sent
        self.fault: WireFault | None = None
        self.reused = False
        self.size = 0                       # of what waits in memory
        self.dropped = False                # nobody wants it any more
        self._done = threading.Event()

    def finish(self, *, whole: bool) -> None:
        """There is an answer to go on with. `whole`: nobody has to wait for more of it, or to ask once more."""
        self.settle()
        self.then(whole)

    def settle(self) -> None:
        """Lets those go on who wait."""
        self._done.set()

    def is_done(self) -> bool:
        """Whether there is something to go on with."""
        return self._done.is_set()

    def wait(self) -> None:
        """Returns once there is something to go on with, or it is too late."""
        if not self._done.wait(max(0.0, self.deadline - time.monotonic()) + _GRACE):
            self.late = True


class Ahead(Awaited):
    """One request that was sent, or will be."""

    def __init__(self, address: Address, proxy: Address | None, request: bytes, then: Callable[[bool], object],
                 deadline: float) -> None:
        super().__init__(then, deadline)
        self.address, self.proxy, self.request = address, proxy, request

    @property
    def key(self) -> tuple[object, ...]:
        """The server, and the way to it."""
        return (*self.address.origin, self.proxy)


class Turn:
    """One connection with one request on it."""

    __slots__ = ("ahead", "connected", "fd", "head", "left", "parts", "since", "sock", "total")

    def __init__(self, ahead: Ahead, sock: Any, *, connected: bool) -> None:
        self.ahead, self.sock, self.connected, self.fd = ahead, sock, connected, sock.fileno()
        self.parts: list[bytes] = []
        self.total, self.left = 0, -1
        self.head: Head | None = None
        self.since = time.monotonic()

    def take(self, data: bytes, timeout: float) -> Verdict:
        """What is to be done now that more was received; no bytes: the server closed the connection."""
        self.since = time.monotonic()
        self.parts.append(data)
        self.total += len(data)
        if not data:
            to_the_end = self.head is not None and self.head.length is None and not self.head.chunked
            return "whole" if to_the_end else "leave"
        if self.total > _LARGE:
            return "leave"
        if self.head is not None:
            self.left -= len(data) if self.head.length is not None else 0
        elif not self._read_head(timeout):
            return "more"
        return self._judge()

    def _judge(self) -> Verdict:
        head = self.head
        if head is None or self.left < 0 or self.left > _LARGE:
            return "leave"                      # no head, or more than there should be
        if head.length is None:
            # Whole most likely where the end of chunks looks so, with trailers or without; else only who reads them all
            # can tell, and waits for more: here, or in the thread that wants it once nothing comes.
            end = b"".join(part[-4:] for part in self.parts[-4:])
            return "whole" if head.chunked and end.endswith(b"\r\n\r\n") else "more"
        return "more" if self.left else "keep"

    def _read_head(self, timeout: float) -> bool:
        """Whether the end of the head is here; it is read where it can be."""
        content = b"".join(self.parts)
        self.parts = [content]
        if not _HEAD_END.search(content):
            return self.total > _LONGEST_HEAD
        stream = Stream(DRY, timeout, self.ahead.deadline, content)
        try:
            head = read_head(stream)
        except (WireFault, Unsettled):         # it is told by whoever wants it
            return True
        rest = stream.rest()
        self.head, self.parts = head, [rest]
        self.left = 0 if head.length is None else head.length - len(rest)
        return True
