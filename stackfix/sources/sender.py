"""The thread that sends requests ahead of the need, and its connections (ahead.py)."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from stackfix.sources.ahead import DRY, Ahead, Turn
from stackfix.sources.connect import CannotConnect, Dialer
from stackfix.sources.pool import Pool, PoolClosed
from stackfix.sources.wire import OK, PARTIAL, Head, Socket, Stream, WireFault, plain

CAN_WAIT = hasattr(select, "poll")
_CHUNK = 64 * 1024
_UNREAD = 32 * 1024 * 1024          # bytes of whole answers that wait to be read: then no more is sent
_AT_ONCE = 8                        # connections that are opened before it is looked at what came
_STUCK = 1.0                        # seconds after which an answer that stopped is left to the thread that wants it
_ODD = ("SSLWantReadError", "SSLWantWriteError")


class Sender:
    """The thread and its connections; they come from the pool, and go back to it."""

    def __init__(self, pool: Pool, dialer: Dialer, timeout: float, *, threaded: bool = True) -> None:
        """`threaded`: in a thread of its own; else turn_to_all() is to be called again and again."""
        self._pool, self._dialer, self._timeout = pool, dialer, timeout
        self._new: deque[Ahead] = deque()
        self._waiting: deque[Ahead] = deque()
        self._turns: dict[int, Turn] = {}
        self._dialled: deque[tuple[Ahead, Socket | None]] = deque()
        self._peers: dict[tuple[object, ...], Any] = {}
        self._dialling: set[tuple[object, ...]] = set()
        self._poll = select.poll()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)  # noqa: FBT003
        self._poll.register(self._wake_in, select.POLLIN)
        self._unread, self._lock = 0, threading.Lock()
        self._closed = self._woken = self._ended = False
        self.sent = 0
        self.defect: Exception | None = None
        pool.on_free = self._freed
        self._others: dict[int, Callable[[], object]] = {}
        self._threaded = threaded
        self.patient = False        # nobody goes on with what stops: it is waited for where it is known how much comes
        if threaded:
            threading.Thread(target=self._run, name="stackfix-ahead", daemon=True).start()

    def attend(self, fd: int, call: Callable[[], object], *, writing: bool = False) -> None:
        """Has this called, too, when there is something to read from `fd`, or (`writing`) when it takes something."""
        self._others[fd] = call
        self._poll.register(fd, select.POLLIN | select.POLLOUT if writing else select.POLLIN)

    def send(self, ahead: Ahead) -> None:
        """Have it sent when a connection is free."""
        self._new.append(ahead)
        self.wake()
        if self._ended:
            self._drop_all()

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
                self._wake_out.send(b"!")

    def close(self) -> None:
        """Ends the thread; what is under way is not sent, or fails."""
        self._closed = True
        if self._threaded:
            self.wake()
        else:
            self._end()

    def _freed(self) -> None:
        """A connection is free that is not this thread's own: it looks for itself."""
        if self._waiting:
            self.wake()

    def _run(self) -> None:
        try:
            while not self._closed:
                self.turn_to_all()
        except Exception as fault:  # noqa: BLE001 - a defect here: all is asked for by the threads that want it
            self.defect = fault
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._drop_all()
        for end in (self._wake_in, self._wake_out):
            end.close()

    def turn_to_all(self, patience: int = 500) -> bool:
        """Sends what can be sent, waits until something comes (so many ms at most), and sees to all that came.

        Whether there was something: then there may be more by now.
        """
        more = self._begin()
        wake = self._wake_in.fileno()
        came = self._poll.poll(0 if more else patience)
        for fd, _ in came:
            if fd == wake:
                with suppress(OSError):
                    self._wake_in.recv(4096)
                self._woken = False             # before what is new is looked at
            elif fd in self._turns:
                self._go_on(self._turns[fd])
            elif fd in self._others:
                self._others[fd]()
        self._give_late_ones_up()
        return more or bool(came)

    def _drop_all(self) -> None:
        """Whatever was not sent, or not answered, is asked for by the thread that wants it."""
        for turn in self._turns.values():
            if not turn.connected:
                turn.sock.close()       # the pool has not counted it yet
        left = [*self._waiting, *(turn.ahead for turn in self._turns.values()), *(one for one, _ in self._dialled)]
        while self._new:
            with suppress(IndexError):
                left.append(self._new.popleft())
        for ahead in left:
            if not ahead.is_done():
                ahead.finish(whole=False)

    def _begin(self) -> bool:
        """Sends what has a connection, and opens some that may be opened: whether there are more."""
        while self._dialled:
            ahead, sock = self._dialled.popleft()
            self._dialling.discard(ahead.key)
            if sock is not None:
                self._send(ahead, sock, reused=False)
                continue
            like = [other for other in self._waiting if other.key == ahead.key]
            for other in (ahead, *like):        # told by the threads that want them, when they find the same
                other.finish(whole=False)
            self._waiting = deque(other for other in self._waiting if other not in like)
        while self._new:
            self._waiting.append(self._new.popleft())
        full: set[tuple[object, ...]] = set()
        before = len(self._turns)
        for ahead in tuple(self._waiting):
            if self._unread >= _UNREAD:
                break
            if len(self._turns) - before >= _AT_ONCE:
                return True             # the first requests do not wait until the last connection is made
            key = ahead.key
            if key not in full:
                if self._connect(ahead):
                    self._waiting.remove(ahead)
                else:
                    full.add(key)
        return False

    def _connect(self, ahead: Ahead) -> bool:
        """Whether a connection was found, or is being made, or cannot be had."""
        if ahead.dropped:
            ahead.finish(whole=False)
            return True
        key = ahead.key
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
            self._peers[ahead.key] = sock.family, sock.getpeername()
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
        self._watch(Turn(ahead, sock, connected=False), select.POLLOUT)

    def _watch(self, turn: Turn, what: int) -> None:
        self._turns[turn.fd] = turn
        self._poll.register(turn.fd, what)

    def _send(self, ahead: Ahead, sock: Any, *, reused: bool) -> None:
        """Writes the request; few are larger than what the system takes at once, and those are not sent here."""
        ahead.reused = reused
        turn = Turn(ahead, sock, connected=True)
        try:
            sock.setblocking(False)     # noqa: FBT003
            complete = sock.send(ahead.request) == len(ahead.request)
        except (OSError, ValueError):
            complete = False
        if not complete or turn.fd < 0:         # the pool was closed meanwhile
            self._pool.give_back(sock, ahead.address, ahead.proxy, whole=False)
            ahead.finish(whole=False)
            return
        self.sent += 1
        self._watch(turn, select.POLLIN)

    def _go_on(self, turn: Turn) -> None:
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
            verdict = turn.take(data, self._timeout)
            while verdict == "more" and data and getattr(turn.sock, "pending", int)():
                data = turn.sock.recv(_CHUNK)   # TLS: what was decrypted already wakes nobody
                verdict = turn.take(data, self._timeout)
        except BlockingIOError:
            return
        except (OSError, ValueError) as fault:
            if type(fault).__name__ not in _ODD:
                turn.ahead.fault = WireFault(f"the connection broke ({plain(fault)})", fresh=not turn.total)
                self._hand_over(turn)
            return
        if verdict == "keep" and turn.head is not None:
            self._keep(turn, turn.head)
        elif verdict != "more":
            self._hand_over(turn, whole=verdict == "whole")

    def _keep(self, turn: Turn, head: Head) -> None:
        """A whole answer: its connection is free."""
        ahead = turn.ahead
        self._forget(turn)
        self._pool.give_back(turn.sock, ahead.address, ahead.proxy, whole=not head.will_close)
        head.stream.refill(DRY, turn.parts)
        self._finish(turn, whole=True)

    def _hand_over(self, turn: Turn, *, whole: bool = False) -> None:
        """The thread that wants it goes on with the connection."""
        self._forget(turn)
        turn.ahead.sock = turn.sock
        if turn.head is not None:
            turn.head.stream.refill(turn.sock, turn.parts)
        self._finish(turn, whole=whole)

    def _finish(self, turn: Turn, *, whole: bool) -> None:
        ahead = turn.ahead
        ahead.head, ahead.size, ahead.complete = turn.head, turn.total, whole
        ahead.stream = turn.head.stream if turn.head is not None else Stream(
            turn.sock, self._timeout, ahead.deadline, b"".join(turn.parts))
        with self._lock:
            self._unread += ahead.size
            dropped = ahead.dropped
            ahead.settle()
        if dropped:
            self._release(ahead)
        ahead.finish(whole=whole and turn.head is not None and turn.head.status in (OK, PARTIAL))

    def _forget(self, turn: Turn) -> None:
        if self._turns.pop(turn.fd, None) is not None:
            self._poll.unregister(turn.fd)      # by its number: another thread may have closed it

    def _give_late_ones_up(self) -> None:
        """What has said nothing for as long as one may wait is told as the thread that wants it tells it."""
        now = time.monotonic()
        for ahead in [ahead for ahead in self._waiting if now >= ahead.deadline]:
            self._waiting.remove(ahead)
            ahead.late = True
            ahead.finish(whole=False)
        for turn in tuple(self._turns.values()):
            ahead = turn.ahead
            ahead.late = now >= ahead.deadline
            silent = now - turn.since
            known = self.patient and turn.head is not None and turn.head.length is not None
            if not ahead.late and silent <= (_STUCK if turn.total and not known else self._timeout):
                continue
            if turn.connected:
                if not ahead.late and silent > self._timeout:
                    ahead.fault = WireFault(f"no answer within {self._timeout:g} s", slow=True)
                self._hand_over(turn)
            else:
                self._forget(turn)
                turn.sock.close()
                self._pool.not_made(ahead.address, ahead.proxy)
                ahead.finish(whole=False)
