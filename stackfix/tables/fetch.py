"""Wheels that are downloaded once, reduced to tables and thrown away; some at a time."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.inspect.places import reason_of
from stackfix.prove.records import NotFetched, PlannedWheel, Progress
from stackfix.sources.cache import Cache
from stackfix.sources.download import Wanted, download, hash_of
from stackfix.sources.errors import HashMismatch, NotAllowedOffline
from stackfix.sources.workers import Task, Workers
from stackfix.tables.kept import KIND, SHA256, keep, read_kept
from stackfix.tables.records import ReducedWheel
from stackfix.tables.reduce import reduce_wheel
from stackfix.tables.work import sweep, work_folder

if TYPE_CHECKING:
    from stackfix.sources.transport import Transport

AT_ONCE = 4                     # wheels: more do not come faster, and each takes its size on the disk
READING = threading.Semaphore(2)    # wheels that are unpacked at a time: each library takes its own size on the disk
WHEELS = "wheels-v1"            # wheels that a repair has downloaded lie here in the cache folder
PATIENCE = 2.0                  # seconds that an ended fetch waits for what is under way


class Ended(StackfixError):
    """The fetch was ended while this wheel was under way."""

    reference = "ended"

    def what(self) -> str:
        return "the download was ended"


class Fetching:
    """One fetch of several wheels. What is done stays in the cache, whatever becomes of the rest."""

    def __init__(self, cache: Cache, open_transport: Callable[[], Transport], progress: Progress, *,
                 offline: bool) -> None:
        self._cache, self._open_transport, self._progress, self._offline = cache, open_transport, progress, offline
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self, wheels: Sequence[PlannedWheel]) -> tuple[Mapping[str, ReducedWheel], tuple[NotFetched, ...]]:
        """What was read of the wheels, by sha256, and those of which nothing could be read."""
        workers = Workers(AT_ONCE, "wheel-tables")
        tasks = [(wheel, Task(partial(self._one, wheel))) for wheel in wheels]
        found, failed = dict[str, ReducedWheel](), list[NotFetched]()
        try:
            if not self._offline:
                sweep(self._cache.directory / KIND)
            for _, task in tasks:
                workers.submit(task)
            for wheel, task in tasks:
                try:
                    found[wheel.sha256] = task.result()
                except StackfixError as error:
                    failed.append(NotFetched(wheel=wheel, code=error.reference, reason=error.what(),
                                             next_step=error.next_step()))
        finally:
            self._end(workers, [task for _, task in tasks])
        return found, tuple(failed)

    def _end(self, workers: Workers, tasks: Sequence[Task[ReducedWheel]]) -> None:
        """Has what is under way stop and clean up after itself; waits for that, but not for ever."""
        self._over.set()
        workers.close(Ended())
        until = time.monotonic() + PATIENCE
        while not all(task.ready for task in tasks) and time.monotonic() < until:
            time.sleep(0.02)
        if self._transport is not None:
            self._transport.close()

    def _go_on(self) -> None:
        """Raises Ended where nobody waits for an answer any more."""
        if self._over.is_set():
            raise Ended

    def _told(self, name: str, done: int, total: int | None) -> None:
        self._go_on()
        self._progress(name, done, total)

    def _one(self, wheel: PlannedWheel) -> ReducedWheel:
        """One wheel, of the cache if another process has brought it there meanwhile."""
        self._go_on()
        if not SHA256.fullmatch(wheel.sha256):      # it becomes the name of a folder
            raise BadInput(wheel.file, f"{wheel.sha256[:80]!r} is no sha256")
        if self._offline and not is_at_hand(wheel, self._cache.directory):
            raise NotAllowedOffline(wheel.file)
        with work_folder(self._cache.directory / KIND, wheel.sha256, self._go_on) as folder:
            found = read_kept(self._cache, wheel.sha256)
            if found is None:
                path = self._brought(wheel, folder)
                with READING:
                    found = reduce_wheel(path, wheel, partial(self._told, f"{wheel.file}: reading"), folder)
                keep(self._cache, found)
            return found

    def _brought(self, wheel: PlannedWheel, folder: Path) -> Path:
        """Where a file with the planned hash lies: a repair's, a local one, or one that was downloaded."""
        repairs = of_repair(wheel, self._cache.directory)
        if repairs is not None and hash_of(repairs) == wheel.sha256:
            return repairs
        path = folder / "wheel.whl"         # no name of a lock becomes a path
        if wheel.url is None:
            raise BadInput(wheel.file, "nothing says where it can be downloaded from")
        if is_local(wheel):
            return self._copied(wheel, path)
        if self._offline:
            raise NotAllowedOffline(wheel.file)
        download(Wanted(name=wheel.file, url=wheel.url, sha256=wheel.sha256, size=wheel.size), self._shared_transport(),
                 path, self._told)
        return path

    def _copied(self, wheel: PlannedWheel, path: Path) -> Path:
        """A wheel of this machine: copied first, so that what was hashed is what is read."""
        source = Path(unquote(urlsplit(wheel.url or "").path))
        try:
            shutil.copyfile(source, path)
        except OSError as error:
            raise Unreachable(str(source), reason_of(error)) from error
        found = hash_of(path)
        if found != wheel.sha256:
            raise HashMismatch(wheel.file, wheel.url or "", stated=wheel.sha256, found=found)
        return path

    def _shared_transport(self) -> Transport:
        with self._lock:
            if self._transport is None:
                self._transport = self._open_transport()
            return self._transport


def is_local(wheel: PlannedWheel) -> bool:
    return wheel.url is not None and urlsplit(wheel.url).scheme == "file"


def of_repair(wheel: PlannedWheel, cache_dir: Path) -> Path | None:
    """The wheel as a repair has downloaded it. Its name comes from a lock: none leads out of the folder."""
    if "/" in wheel.file or "\0" in wheel.file or not SHA256.fullmatch(wheel.sha256):
        return None
    path = cache_dir / WHEELS / wheel.sha256 / wheel.file
    return path if path.is_file() else None


def is_at_hand(wheel: PlannedWheel, cache_dir: Path) -> bool:
    """Whether the wheel lies on this machine, so that nothing has to be asked for it."""
    return is_local(wheel) or of_repair(wheel, cache_dir) is not None


def fetch_tables(wheels: Sequence[PlannedWheel], cache: Cache, open_transport: Callable[[], Transport],
                 progress: Progress, *, offline: bool) -> tuple[Mapping[str, ReducedWheel], tuple[NotFetched, ...]]:
    """Wheels reduced, by sha256, and those that could not be had. Each is asked for once."""
    once = tuple({wheel.sha256: wheel for wheel in reversed(wheels)}.values())[::-1]
    return Fetching(cache, open_transport, progress, offline=offline).run(once)


__all__ = ["fetch_tables", "is_at_hand"]
