"""Open connections, kept per server and shared by the threads.

A server gets only so many: 50 where a connection costs nothing, 12 where each costs a TLS handshake. More is no faster
there (the 52 pages of a lock took 0.3 to 0.5 s over TLS with 4 connections and with 16), and some servers and proxies
let the requests of further connections wait: the same pages took 5 to 10 s with 32.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from stackfix.quick import dataclass, field
from stackfix.sources.address import Address
from stackfix.sources.connect import Dialer
from stackfix.sources.wire import Socket, WireFault


class PoolClosed(Exception):
    """The pool was closed."""


@dataclass(slots=True)
class _Server:
    idle: list[Socket] = field(default_factory=list)
    open: int = 0                   # connections there are, idle or not, and those being made


class Pool:
    """Connections to all servers. Used from many threads."""

    def __init__(self, dialer: Dialer, *, plain: int, tls: int) -> None:
        self._dialer, self._most = dialer, {"http": plain, "https": tls}
        self._servers: dict[tuple[object, ...], _Server] = {}
        self._sockets: set[Socket] = set()
        self._change = threading.Condition()
        self.closed = False
        self.on_free: Callable[[], object] | None = None    # called when a connection becomes free

    def take(self, address: Address, proxy: Address | None, deadline: float) -> tuple[Socket, bool]:
        """A connection, and whether it was used before.

        Raises PoolClosed, CannotConnect, or WireFault where none becomes free until `deadline`.
        """
        while True:
            sock = self._idle_or_place(address, proxy, deadline)
            if sock is None:
                return self.dial(address, proxy, deadline), False
            if _alive(sock):
                return sock, True
            self.give_back(sock, address, proxy, whole=False)

    def take_now(self, address: Address, proxy: Address | None) -> Socket | Literal[True] | None:
        """An idle connection, True for the right to make one (made() or not_made() must follow), None for neither.

        Raises PoolClosed.
        """
        while True:
            with self._change:
                if self.closed:
                    raise PoolClosed
                server = self._servers.setdefault(_key(address, proxy), _Server())
                if not server.idle:
                    if server.open >= self._most[address.scheme]:
                        return None
                    server.open += 1
                    return True
                sock = server.idle.pop()
            if _alive(sock):
                return sock
            self.give_back(sock, address, proxy, whole=False)

    def made(self, sock: Socket) -> bool:
        """Counts a connection that was made; False where the pool was closed meanwhile."""
        with self._change:
            if not self.closed:
                self._sockets.add(sock)
            return not self.closed

    def not_made(self, address: Address, proxy: Address | None) -> None:
        """The right to make a connection came to nothing."""
        with self._change:
            self._servers[_key(address, proxy)].open -= 1
            self._change.notify()

    def give_back(self, sock: Socket, address: Address, proxy: Address | None, *, whole: bool) -> None:
        """Keep the connection for the next request after a whole answer, drop it otherwise."""
        with self._change:
            server = self._servers[_key(address, proxy)]
            keep = whole and not self.closed
            if keep:
                server.idle.append(sock)
            else:
                server.open -= 1
                self._sockets.discard(sock)
            self._change.notify()
        if not keep:
            _shut(sock)
        if self.on_free is not None:
            self.on_free()

    def close(self) -> None:
        """Drop every connection; who reads from one is woken."""
        with self._change:
            self.closed = True
            sockets = list(self._sockets)
            self._sockets.clear()
            self._change.notify_all()
        for sock in sockets:
            _shut(sock)

    def _idle_or_place(self, address: Address, proxy: Address | None, deadline: float) -> Socket | None:
        """An idle connection; None for the right to make a new one."""
        with self._change:
            server = self._servers.setdefault(_key(address, proxy), _Server())
            while not self.closed:
                if server.idle:
                    return server.idle.pop()
                if server.open < self._most[address.scheme]:
                    server.open += 1
                    return None
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WireFault("no connection became free in time", slow=True)
                self._change.wait(left)
        raise PoolClosed

    def dial(self, address: Address, proxy: Address | None, deadline: float) -> Socket:
        """A connection in the place of one that take_now() gave the right to. Raises CannotConnect, PoolClosed."""
        try:
            sock = self._dialer.dial(address, proxy, deadline)
        except BaseException:
            self.not_made(address, proxy)
            raise
        if self.made(sock):
            return sock
        _shut(sock)
        raise PoolClosed


def _key(address: Address, proxy: Address | None) -> tuple[object, ...]:
    return (*address.origin, proxy)


def _alive(sock: Socket) -> bool:
    """Whether an idle connection is still open: a readable one was closed, or says what nobody asked."""
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False


def _shut(sock: Socket) -> None:
    """Close, waking a thread that reads from it: close() alone leaves a blocked recv waiting."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
