"""Requests that are sent ahead of the need: one thread sends many, and reads until an answer is whole.

A thread per request waits for its turn at the interpreter after each read, up to 5 ms where another computes, and fifty
of them take twice the processor time of the work itself. Here one thread turns to all connections that have something.
It judges nothing: an answer whose head states a length is read to that length by it, any other goes with its connection
to the thread that wants it, which goes on where this one stopped, by the same code as without it.
"""

from __future__ import annotations

import os
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from stackfix.sources.address import Address
from stackfix.sources.connect import CannotConnect, Dialer
from stackfix.sources.pool import Pool, PoolClosed
from stackfix.sources.wire import OK, PARTIAL, Head, Socket, Stream, WireFault, plain, read_head

CAN_WAIT = hasattr(select, "poll")
_CHUNK = 64 * 1024
_LARGE = 8 * 1024 * 1024            # an answer that is larger is read by the thread that wants it
_UNREAD = 32 * 1024 * 1024          # of whole answers that wait for it: then no more is sent
_HEAD_END = re.compile(rb"\n\r?\n")
_LONGEST_HEAD = 65536
_ODD = ("SSLWantReadError", "SSLWantWriteError")


class _Unsettled(Exception):
    """More has to be received before this can be told."""


class _Dry:
    """In place of a socket, under a stream that holds all there is."""

    def recv(self, _: int) -> bytes:
        raise _Unsettled

    def settimeout(self, _: float | None) -> None:
        """Nothing waits here."""


class Ahead:
    """One request that was sent, or will be. Wanted once."""

    def __init__(self, address: Address, proxy: Address | None, request: bytes, then: Callable[[bool], object],
                 deadline: float) -> None:
        self.address, self.proxy, self.request, self.then = address, proxy, request, then
        self.deadline = deadline            # by the monotonic clock, for all of it
        self.late = False
        self.sock: Socket | None = None     # that whoever wants the answer has to give back
        self.stream: Stream | None = None   # what came of it; None: it was not sent
        self.head: Head | None = None       # where it was read; the stream then stands at the body
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
        """Returns once there is something to go on with."""
        self._done.wait()


class _Turn:
    """One connection with one request on it."""

    __slots__ = ("ahead", "connected", "head", "left", "parts", "since", "sock", "total")

    def __init__(self, ahead: Ahead, sock: Any, *, connected: bool) -> None:
        self.ahead, self.sock, self.connected = ahead, sock, connected
        self.parts: list[bytes] = []
        self.total, self.left = 0, -1
        self.head: Head | None = None
        self.since = time.monotonic()


class Sender:
    """The thread and its connections; they come from the pool, and go back to it."""

    def __init__(self, pool: Pool, dialer: Dialer, timeout: float) -> None:
        self._pool, self._dialer, self._timeout = pool, dialer, timeout
        self._new: deque[Ahead] = deque()
        self._waiting: deque[Ahead] = deque()
        self._turns: dict[int, _Turn] = {}
        self._dialled: deque[tuple[Ahead, Socket | None]] = deque()
        self._peers: dict[tuple[object, ...], Any] = {}
        self._dialling: set[tuple[object, ...]] = set()
        self._poll = select.poll()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._poll.register(self._wake_in, select.POLLIN)
        self._unread, self._lock = 0, threading.Lock()
        self._closed = self._woken = False
        self.sent = 0
        pool.on_free = self._freed
        threading.Thread(target=self._run, name="stackfix-ahead", daemon=True).start()

    def send(self, ahead: Ahead) -> None:
        """Have it sent when a connection is free."""
        self._new.append(ahead)
        self.wake()

    def read(self, ahead: Ahead) -> None:
        """Whoever wanted it has it: its bytes wait no longer."""
        with self._lock:
            full = self._unread >= _UNREAD
            self._unread -= ahead.size
        if full:
            self.wake()

    def drop(self, ahead: Ahead) -> None:
        """Nobody wants it any more: what it holds goes back as soon as it can."""
        with self._lock:
            ahead.dropped = True
            done = ahead.is_done()
        if done:
            self._release(ahead)

    def _release(self, ahead: Ahead) -> None:
        self.read(ahead)
        if ahead.sock is not None:
            self._pool.give_back(ahead.sock, ahead.address, ahead.proxy, whole=False)

    def wake(self) -> None:
        """Has the thread look at what is new. Once is enough: each call to the system gives others their turn."""
        if not self._woken:
            self._woken = True
            with suppress(OSError):
                os.write(self._wake_out, b"!")

    def close(self) -> None:
        """Ends the thread; what is under way is not sent, or fails."""
        self._closed = True
        self.wake()

    def _freed(self) -> None:
        """A connection is free that is not this thread's own: it looks for itself."""
        if self._waiting:
            self.wake()

    def _run(self) -> None:
        try:
            while not self._closed:
                self._begin()
                for fd, _ in self._poll.poll(500):
                    if fd == self._wake_in:
                        with suppress(OSError):
                            os.read(fd, 4096)
                        self._woken = False     # before what is new is looked at
                    elif fd in self._turns:
                        self._go_on(self._turns[fd])
                self._give_late_ones_up()
        finally:
            for ahead in (*self._new, *self._waiting, *(turn.ahead for turn in self._turns.values()),
                          *(ahead for ahead, _ in self._dialled)):
                ahead.finish(whole=False)

    def _begin(self) -> None:
        """Sends what has a connection, and opens those that may be opened."""
        while self._dialled:
            ahead, sock = self._dialled.popleft()
            self._dialling.discard(_key(ahead))
            if sock is not None:
                self._send(ahead, sock, reused=False)
                continue
            like = [other for other in self._waiting if _key(other) == _key(ahead)]
            for other in (ahead, *like):        # told by the threads that want them, when they find the same
                other.finish(whole=False)
            self._waiting = deque(other for other in self._waiting if other not in like)
        while self._new:
            self._waiting.append(self._new.popleft())
        full: set[tuple[object, ...]] = set()
        for ahead in tuple(self._waiting):
            if self._unread >= _UNREAD:
                break
            key = _key(ahead)
            if key not in full:
                if self._connect(ahead):
                    self._waiting.remove(ahead)
                else:
                    full.add(key)

    def _connect(self, ahead: Ahead) -> bool:
        """Whether a connection was found, or is being made, or cannot be had."""
        if ahead.dropped:
            ahead.finish(whole=False)
            return True
        key = _key(ahead)
        known = ahead.address.scheme == "https" or key in self._peers
        if not known and key in self._dialling:
            return False                # the first tells where the others go
        try:
            sock = self._pool.take_now(ahead.address, ahead.proxy)
        except PoolClosed:
            ahead.finish(whole=False)
            return True
        if sock is None:
            return False
        if sock is not True:
            self._send(ahead, sock, reused=True)
        elif ahead.address.scheme == "http" and known:
            self._open(ahead, self._peers[key])
        else:
            self._dialling.add(key)
            threading.Thread(target=self._dial, args=(ahead,), name="stackfix-dial", daemon=True).start()
        return True

    def _dial(self, ahead: Ahead) -> None:
        """In a thread of its own: a name is looked up, and TLS is agreed upon."""
        sock: Any = None
        try:
            sock = self._pool.dial(ahead.address, ahead.proxy, ahead.deadline)
            self._peers[_key(ahead)] = sock.family, sock.getpeername()
        except (CannotConnect, WireFault, PoolClosed, OSError):
            pass
        except Exception:  # noqa: BLE001, S110 - the thread that wants it will meet it, and can raise it
            pass
        self._dialled.append((ahead, sock))
        self.wake()

    def _open(self, ahead: Ahead, peer: tuple[int, Any]) -> None:
        """A connection to where one led before, without waiting for it."""
        sock = socket.socket(peer[0], socket.SOCK_STREAM)
        sock.setblocking(False)     # noqa: FBT003
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.connect(peer[1])
        except BlockingIOError:
            pass
        except OSError:
            sock.close()
            self._pool.not_made(ahead.address, ahead.proxy)
            ahead.finish(whole=False)
            return
        self._turns[sock.fileno()] = _Turn(ahead, sock, connected=False)
        self._poll.register(sock, select.POLLOUT)

    def _send(self, ahead: Ahead, sock: Any, *, reused: bool) -> None:
        """Writes the request; few are larger than what the system takes at once, and those are not sent here."""
        ahead.reused = reused
        turn = _Turn(ahead, sock, connected=True)
        try:
            sock.setblocking(False)     # noqa: FBT003
            complete = sock.send(ahead.request) == len(ahead.request)
        except (OSError, ValueError):
            complete = False
        if not complete:
            self._pool.give_back(sock, ahead.address, ahead.proxy, whole=False)
            ahead.finish(whole=False)
            return
        self.sent += 1
        self._turns[sock.fileno()] = turn
        self._poll.register(sock, select.POLLIN)

    def _go_on(self, turn: _Turn) -> None:
        """One connection can be read from, or is made now."""
        if not turn.connected:
            self._forget(turn)
            if turn.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or not self._pool.made(turn.sock):
                turn.sock.close()
                self._pool.not_made(turn.ahead.address, turn.ahead.proxy)
                turn.ahead.finish(whole=False)
            else:
                self._send(turn.ahead, turn.sock, reused=False)
            return
        try:
            data = turn.sock.recv(_CHUNK)
            while data and getattr(turn.sock, "pending", int)():    # TLS: what was decrypted already wakes nobody
                turn.parts.append(data)
                turn.total += len(data)
                data = turn.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except (OSError, ValueError) as fault:
            if type(fault).__name__ not in _ODD:
                reason = f"the connection broke ({plain(fault)})"
                turn.ahead.fault = WireFault(reason, fresh=not turn.total)
                self._hand_over(turn)
            return
        turn.since = time.monotonic()
        turn.parts.append(data)
        turn.total += len(data)
        if not data:
            head = turn.head
            self._hand_over(turn, whole=head is not None and head.length is None and not head.chunked)
        elif turn.total > _LARGE:
            self._hand_over(turn)
        else:
            self._judge(turn, len(data))

    def _judge(self, turn: _Turn, more: int) -> None:
        """Whether the answer is whole by now, or is none that can be told here."""
        if turn.head is not None:
            turn.left -= more if turn.head.length is not None else 0
        elif not self._read_head(turn):
            return
        head = turn.head
        if head is None or turn.left < 0 or turn.left > _LARGE:
            self._hand_over(turn)               # no head, or more than it should be
        elif head.length is None:
            if head.chunked and turn.parts[-1].endswith(b"0\r\n\r\n"):
                self._hand_over(turn, whole=True)   # most likely: where it is not, the thread waits for more
        elif not turn.left:
            self._keep(turn, head)

    def _read_head(self, turn: _Turn) -> bool:
        """Whether the end of the head is here; it is read where it can be."""
        content = b"".join(turn.parts)
        turn.parts = [content]
        if not _HEAD_END.search(content):
            return turn.total > _LONGEST_HEAD
        stream = Stream(_Dry(), self._timeout, turn.ahead.deadline, content)    # type: ignore[arg-type]
        try:
            head = read_head(stream)
        except (WireFault, _Unsettled):         # it is told by whoever wants it
            return True
        rest = stream.rest()
        turn.head, turn.parts = head, [rest]
        turn.left = 0 if head.length is None else head.length - len(rest)
        return True

    def _keep(self, turn: _Turn, head: Head) -> None:
        """A whole answer: its connection is free."""
        ahead = turn.ahead
        self._forget(turn)
        self._pool.give_back(turn.sock, ahead.address, ahead.proxy, whole=not head.will_close)
        head.stream.refill(_Dry(), turn.parts)                  # type: ignore[arg-type]
        self._finish(turn, whole=True)

    def _hand_over(self, turn: _Turn, *, whole: bool = False) -> None:
        """The thread that wants it goes on with the connection."""
        self._forget(turn)
        turn.ahead.sock = turn.sock
        if turn.head is not None:
            turn.head.stream.refill(turn.sock, turn.parts)
        self._finish(turn, whole=whole)

    def _finish(self, turn: _Turn, *, whole: bool) -> None:
        ahead = turn.ahead
        ahead.head, ahead.size = turn.head, turn.total
        ahead.stream = turn.head.stream if turn.head is not None else Stream(
            turn.sock, self._timeout, ahead.deadline, b"".join(turn.parts))
        with self._lock:
            self._unread += ahead.size
            dropped = ahead.dropped
            ahead.settle()
        if dropped:
            self._release(ahead)
        ahead.finish(whole=whole and turn.head is not None and turn.head.status in (OK, PARTIAL))

    def _forget(self, turn: _Turn) -> None:
        fd = turn.sock.fileno()
        if self._turns.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def _give_late_ones_up(self) -> None:
        """What has said nothing for as long as one may wait is told as the thread that wants it tells it."""
        now = time.monotonic()
        for turn in tuple(self._turns.values()):
            ahead = turn.ahead
            ahead.late = now >= ahead.deadline
            if not ahead.late and now - turn.since <= self._timeout:
                continue
            if turn.connected:
                if not ahead.late:
                    ahead.fault = WireFault(f"no answer within {self._timeout:g} s", slow=True)
                self._hand_over(turn)
            else:
                self._forget(turn)
                turn.sock.close()
                self._pool.not_made(ahead.address, ahead.proxy)
                ahead.finish(whole=False)


def _key(ahead: Ahead) -> tuple[object, ...]:
    return (*ahead.address.origin, ahead.proxy)
