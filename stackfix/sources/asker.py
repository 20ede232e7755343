"""The process beside this one that asks and reads ahead, as this one sees it.

A third of a lock's work is to ask, to unpack pages and to search them. Threads of one interpreter do that in turns with
the solver, never beside it; another process does it on another processor. What it does is what sender.py and index.py
do without it, by the same code (asking.py), and whatever is unusual it leaves to this process: an answer that is not
whole, a page that is none, a fault. Where it cannot be begun, or ends early, all is asked for from here.
"""

from __future__ import annotations

import marshal
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stackfix.quick import filled, names_of
from stackfix.sources.ahead import DRY, Awaited
from stackfix.sources.arena import Arena
from stackfix.sources.page_json import Found
from stackfix.sources.page_text import PageText
from stackfix.sources.records import CoreMetadata, IndexFile
from stackfix.sources.sender import CAN_WAIT
from stackfix.sources.wire import OK, PARTIAL, Head, Stream, WireFault

if TYPE_CHECKING:
    from pathlib import Path

    from stackfix.sources.page_text import HeldText
    from stackfix.sources.records import IndexSettings

ARENA = 64 * 1024 * 1024            # bytes of pages' texts; of what is beyond, the packed page is sent
LARGE = 4 * 1024                    # bytes of an answer: those that are as large are counted until they are read
_LENGTH = 8                         # bytes before each message, which hold its length
_CHUNK = 256 * 1024
_FIRST_OWN = 3                      # file descriptor behind those of the terminal; where these are shut, it is left
_PATIENCE = 10.0                    # seconds in which the other process may finish what it keeps
_LEFT: list[int] = []               # processes that ended, or are about to


class MadePage:
    """A page that was unpacked and searched. `size`: bytes that it counts for."""

    def __init__(self, size: int, groups: dict[str, list[str]], entries: Found) -> None:
        self.size, self.groups, self.entries = size, groups, entries


class Asker:
    """Asks in another process. ask() may be called from any thread."""

    def __init__(self, link: socket.socket, arena: Arena, pid: int, timeout: float) -> None:
        self._link, self._arena, self._pid, self._timeout = link, arena, pid, timeout
        self._awaited: dict[int, Awaited] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._reader: threading.Thread | None = None
        self._ended = self._finished = False
        self.problem: str | None = None     # why it kept nothing

    def ask(self, awaited: Awaited, url: str, headers: dict[str, str], page: tuple[str, str] | None,
            wheel: IndexFile | None) -> bool:
        """Have `url` asked for; False where that cannot be.

        `page`: it is the page of this project on this index. `wheel`: metadata of this file may be made of the answer.
        """
        about = None if wheel is None else tuple(getattr(wheel, name) for name in names_of(IndexFile))
        with self._lock:
            if self._ended:
                return False
            if self._reader is None:
                self._reader = threading.Thread(target=self._collect, name="stackfix-asker", daemon=True)
                self._reader.start()
            self._number += 1
            self._awaited[self._number] = awaited
            try:
                self._link.sendall(framed((self._number, url, headers, page, about)))
            except OSError:
                del self._awaited[self._number]
                return False
        return True

    def read(self, awaited: Awaited) -> None:
        """Whoever wanted an answer has it, or wants it no more: the other process may send others."""
        with self._lock:
            awaited.dropped = True          # where it is not here yet
            size, awaited.size = awaited.size, 0
            if size >= LARGE:
                with suppress(OSError):
                    self._link.sendall(framed((0, "", {}, None, (size,))))

    def close(self) -> None:
        """Nothing more is wanted: returns once the other process has finished what it keeps."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
        if self._reader is None:
            self._link.settimeout(_PATIENCE)
            self._collect()
        else:
            self._reader.join(_PATIENCE)
        if not self._finished:
            import signal

            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
        _LEFT.append(self._pid)

    def _collect(self) -> None:
        """Passes on what is told until the other process ends; what is left then is asked for from here."""
        messages = Messages()
        try:
            while data := self._link.recv(_CHUNK):
                for message in messages.of(data):
                    self._told(*message)
        except OSError:
            pass
        finally:
            with self._lock:
                self._ended = True
                left, self._awaited = self._awaited, {}
            self._link.close()
            for awaited in left.values():
                awaited.finish(whole=False)

    def _told(self, number: int, what: str, *rest: Any) -> None:
        if what == "kept":
            self.problem, = rest
            self._finished = True
            return
        with self._lock:
            awaited = self._awaited.pop(number, None)
        if awaited is None:
            return
        status, body = 0, b""
        if what == "late":
            awaited.late = True
        elif what == "fault":
            reason, fresh, slow, awaited.reused = rest
            awaited.fault = WireFault(reason, fresh=fresh, slow=slow)
            awaited.stream = Stream(DRY, self._timeout, awaited.deadline)
        elif what == "answer":
            status, headers, awaited.reused, body = rest
            self._answer(awaited, status, headers, body)
        elif what == "metadata":
            awaited.metadata, status = filled(CoreMetadata, *rest), OK
        elif what == "page":
            status, headers, awaited.packed, size, page = rest
            awaited.page = MadePage(size, *self._made(*page))
            self._answer(awaited, status, headers, b"")
            body = page[-1] or b""
        with self._lock:
            awaited.size, dropped = len(body), awaited.dropped
            awaited.settle()
        if dropped:
            self.read(awaited)
        awaited.finish(whole=status in (OK, PARTIAL))

    def _answer(self, awaited: Awaited, status: int, headers: dict[str, str], body: bytes) -> None:
        awaited.stream = Stream(DRY, self._timeout, awaited.deadline)
        awaited.stream.refill(DRY, [body])
        awaited.head = Head(status, headers, awaited.stream, chunked=False, length=len(body), will_close=False)

    def _made(self, groups: dict[str, list[str]], mark: str, counts: dict[str, int], size: int, begin: int | None,
              packed: bytes | None) -> tuple[dict[str, list[str]], Found]:
        text: HeldText = PageText(None, packed, size) if begin is None else self._arena.text(begin, size)
        return groups, Found(text, mark, counts=counts)


def begin_asker(settings: IndexSettings, cache_dir: Path) -> Asker | None:
    """The process; None where there cannot be one, or it would gain nothing."""
    if not can_begin() or settings.keyring:     # a keyring is asked once, and may ask back
        return None
    reap()
    try:
        arena = Arena(ARENA)
        ours, theirs = socket.socketpair()
    except OSError:
        return None
    if theirs.fileno() < _FIRST_OWN:
        ours.close()
        theirs.close()
        return None
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})       # until the other one ignores it
    try:
        pid = os.fork()
        if not pid:
            _be_the_other(ours, theirs, arena, settings, cache_dir)
    except OSError:
        ours.close()
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs.close()
    return Asker(ours, arena, pid, settings.timeout)


def can_begin() -> bool:
    """Whether this process may be divided (no thread of it may hold a lock), and there is a processor for the other."""
    return (sys.platform == "linux" and CAN_WAIT and threading.active_count() == 1
            and len(os.sched_getaffinity(0)) > 1)


def reap() -> None:
    """Waits for the processes that were closed."""
    while _LEFT:
        with suppress(OSError):
            os.waitpid(_LEFT.pop(), 0)


def _be_the_other(ours: socket.socket, theirs: socket.socket, arena: Arena, settings: IndexSettings,
                  cache_dir: Path) -> None:
    """The other process, to its end. It says nothing, and an interrupt is the first one's to see to."""
    status = 1
    try:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        ours.close()
        from stackfix.sources.asking import Asking

        Asking(theirs, arena, settings, cache_dir).serve()
        status = 0
    finally:
        os._exit(status)


class Messages:
    """Messages put together from what is received."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def of(self, data: bytes) -> list[tuple[Any, ...]]:
        """Those that are whole now."""
        self._parts += data
        found: list[tuple[Any, ...]] = []
        at = 0
        while len(self._parts) - at >= _LENGTH:
            end = at + _LENGTH + int.from_bytes(self._parts[at:at + _LENGTH], "big")
            if len(self._parts) < end:
                break
            found.append(marshal.loads(memoryview(self._parts)[at + _LENGTH:end]))  # noqa: S302 - from our own process
            at = end
        del self._parts[:at]
        return found


def framed(message: Any) -> bytes:
    """A message as it is sent."""
    content = marshal.dumps(message)
    return len(content).to_bytes(_LENGTH, "big") + content
