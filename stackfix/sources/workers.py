"""A pool of daemon threads and the tasks they run.

Not concurrent.futures: that waits for its threads when the interpreter ends (a hung server would hold Ctrl-C for its
whole timeout), imports logging (10 ms), and cannot run a waiting task in the thread that needs it now.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """Work that is done once, by whoever comes first: a worker, or the one who waits for the result."""

    __slots__ = ("_claim", "_done", "_fault", "_value", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._claim = threading.Lock()
        self._done = threading.Event()
        self._value: T | None = None
        self._fault: BaseException | None = None

    def run(self) -> None:
        """Do the work unless someone has begun it. Never raises."""
        if not self._claim.acquire(blocking=False):
            return
        work, self._work = self._work, None
        try:
            self._value = None if work is None else work()
        except BaseException as fault:  # noqa: BLE001  # kept for the one who asks
            self._fault = fault
        finally:
            self._done.set()

    def drop(self, fault: BaseException) -> None:
        """Let it fail with `fault` unless someone has begun it."""
        if self._claim.acquire(blocking=False):
            self._work = None
            self._fault = fault
            self._done.set()

    @property
    def ready(self) -> bool:
        """Whether result() returns (or raises) at once."""
        return self._done.is_set()

    def value_if_ready(self) -> T | None:
        """The value, or None where it is not there yet or there is none. Never waits, never raises."""
        return self._value if self._done.is_set() and self._fault is None else None

    def result(self) -> T:
        """The value; done here and now when nobody has begun it. Raises what the work raised."""
        self.run()
        self._done.wait()
        if self._fault is not None:
            raise self._fault
        return self._value  # type: ignore[return-value]


class Workers:
    """Up to `limit` daemon threads, started as they are needed."""

    def __init__(self, limit: int, name: str) -> None:
        self.limit, self._name = limit, name
        self._queue: SimpleQueue[None] = SimpleQueue()              # one for each task, and for each thread to end
        self._tasks: tuple[deque[Task[Any]], ...] = (deque(), deque(), deque())         # by rank
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self.closed = False

    def submit(self, task: Task[Any], rank: int = 1) -> None:
        """Have `task` run soon; those of rank 0 go before others, those of rank 2 after them."""
        self._tasks[rank].append(task)
        self._queue.put(None)
        with self._lock:
            if self.closed or self._idle >= self._queue.qsize() or self._threads >= self.limit:
                return
            self._threads += 1
            number = self._threads
        threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True).start()

    def close(self, fault: BaseException) -> None:
        """Let waiting tasks fail with `fault` and the threads end after what they are doing."""
        with self._lock:
            self.closed = True
            threads = self._threads
        while (waiting := self._next()) is not None:
            waiting.drop(fault)
        for _ in range(threads):
            self._queue.put(None)

    def _next(self) -> Task[Any] | None:
        for waiting in self._tasks:
            with suppress(IndexError):
                return waiting.popleft()
        return None

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            self._queue.get()
            with self._lock:
                self._idle -= 1
            task = self._next()
            if task is None:            # closed: each task comes with an entry of the queue
                return
            task.run()
            del task  # keeps no page alive while it waits for the next
