"""The package index: pages and metadata, asked early, waited for late.

Everything is fetched at most once per run, by a pool of threads; who needs an answer that nobody has begun to fetch
fetches it itself. Several indexes are asked in order and the first that has the project wins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from stackfix.sources.address import base_of, shown, without_credentials
from stackfix.sources.answers import LIMITS, Limits, Response, refused
from stackfix.sources.cache import Cache, KeptPage, etag_of, holds_secret, usable_until
from stackfix.sources.errors import (
    Closed,
    NoSuchProject,
    NotAllowedOffline,
    NotFromIndex,
    RequestFailed,
    TooLarge,
    TooManyProjects,
)
from stackfix.sources.metadata import MetadataSource
from stackfix.sources.page import ACCEPT, Page, normalise, parse_page
from stackfix.sources.records import Answered, CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.transport import Transport
from stackfix.sources.wire import NOT_MODIFIED, NOT_THERE, OK, unpacked
from stackfix.sources.workers import Task, Workers

if TYPE_CHECKING:
    from stackfix.sources.asker import Asker
    from stackfix.sources.sdist_build import Allowed

WORKERS = 50
READERS = 1             # of what is here already: two take half as much again of the processor, and end no sooner
TAILS = 8               # threads for wheels without a metadata file, some of which need another range
UNPACKED = 3            # pages that are unpacked and parsed at once: more are no faster, and take their memory together
T = TypeVar("T")


class Progress(Protocol):
    """Told what is going on. Called from any thread."""

    def __call__(self, done: int, asked: int, /) -> object:
        """`done` of `asked` pages and metadata are there."""


class PackageIndex:
    """Fills resolve.records.Index. Every method may be called from any thread."""

    def __init__(self, settings: IndexSettings, *, cache_dir: Path, offline: bool, refresh: bool = False,
                 progress: Progress | None = None, limits: Limits = LIMITS, workers: int = WORKERS,
                 builds: Allowed | None = None) -> None:
        self.cache = Cache(cache_dir)
        self.transport = Transport(settings, limits)
        self._indexes = _with_bases(settings.indexes)
        self._routes = {route.project: (_with_bases(route.indexes), route.why) for route in settings.routes}
        self._passed_over = {policy.base: policy.passed_over for policy in settings.policies if policy.passed_over}
        self._limits, self._offline, self._refresh, self._progress = limits, offline, refresh, progress
        self._settings, self._builds = settings, builds
        self._workers = Workers(workers, "stackfix-index")
        self._reader = Workers(READERS, "stackfix-read")
        self._tails = Workers(TAILS, "stackfix-tail")
        self._keeper = Workers(1, "stackfix-keep")
        self._metadata_source = MetadataSource(self.transport, self.cache, limits, self._start, self._keep,
                                               look=self._look)
        self._lock = threading.Lock()
        self._unpacking = threading.Semaphore(UNPACKED)
        self._pages: dict[str, Task[Page]] = {}
        self._metadata: dict[tuple[str, str], Task[CoreMetadata]] = {}
        self._keeping: list[Task[None]] = []
        self._done = self._held = 0
        self._answers: dict[str, dict[str, Answered]] = {}      # project -> address -> what was answered
        self._wanted: set[str] = set()
        self._on_page: Callable[[Page], None] | None = None
        self._on_metadata: Callable[[IndexFile, CoreMetadata], None] | None = None
        self._watcher_fault: Exception | None = None

    def ask_by(self, asker: Asker | None) -> None:
        """Has a process ask ahead, where there is one; it keeps what it read in the same folder."""
        self.transport.asker = asker

    def attend(self, *, progress: Progress | None, builds: Allowed | None) -> None:
        """Takes in what is known only after the first pages were asked for."""
        self._progress, self._builds = progress, builds

    def watch(self, *, on_page: Callable[[Page], None] | None = None,
              on_metadata: Callable[[IndexFile, CoreMetadata], None] | None = None) -> None:
        """Call these as soon as an answer is there, from whatever thread has it; a place to prefetch what follows.

        Pages that are there already are told at once; one that arrives meanwhile may be told twice. What the watchers
        raise is raised by the next page() or metadata().
        """
        self._on_page, self._on_metadata = on_page, on_metadata
        if on_page is not None:
            for task in tuple(self._pages.values()):
                if (page := task.value_if_ready()) is not None:
                    self._call_watcher(partial(on_page, page))

    def prefetch_pages(self, names: tuple[str, ...]) -> None:
        """Start fetching these projects' pages."""
        for name in names:
            self._page_task(normalise(name))

    def let_ask(self, seconds: float = 0.1) -> None:
        """Returns once what was prefetched so far is asked for (or here already), or after so many seconds.

        A thread that sends waits for its turn behind one that computes, 5 ms each time: fifty requests would go out
        over a quarter of a second.
        """
        asked = 0 if self._offline else min(len(self._pages), self._workers.limit) - 1
        until = time.monotonic() + seconds
        while self.transport.sent + self._done < asked and time.monotonic() < until:
            time.sleep(0.001)

    def prefetch_metadata(self, files: tuple[IndexFile, ...]) -> None:
        """Start fetching these files' metadata."""
        for file in files:
            self._metadata_task(file)

    def page_ready(self, name: str) -> bool:
        """Whether page() answers (or raises) at once; never starts anything."""
        task = self._pages.get(normalise(name))
        return task is not None and task.ready

    def metadata_ready(self, file: IndexFile) -> bool:
        """Whether metadata() answers (or raises) at once; never starts anything."""
        task = self._metadata.get((file.url, file.filename))
        return task is not None and task.ready

    def page(self, name: str) -> Page:
        """The page of `name`. Raises NoSuchProject, BadPage, NotAllowedOffline, or a RequestFailed."""
        name = normalise(name)
        self._wanted.add(name)
        found = self._page_task(name).result()
        self._raise_watchers_fault()
        return found

    def answers(self) -> tuple[Answered, ...]:
        """What servers answered that may have been used: all but of projects that are nowhere and were only guessed."""
        return tuple(
            answer for name, of in self._answers.items() for answer in of.values()
            if name in self._wanted or self._pages[name].value_if_ready() is not None)

    def metadata(self, file: IndexFile) -> CoreMetadata:
        """Metadata of `file`.

        Raises BadMetadata, HashMismatch, SdistNeedsBuild, NotAllowedOffline, or a RequestFailed.
        """
        found = self._metadata_task(file).result()
        self._raise_watchers_fault()
        return found

    def pinned_by(self, project: str) -> str | None:
        """What settings look a project up on indexes of its own, and on no other; None where none do."""
        route = self._routes.get(project)
        return None if route is None else route[1]

    def may_build(self, project: str) -> bool:
        """Whether the code of this project's sdists may run."""
        return self._builds is not None and project in self._builds

    def built_metadata(self, file: IndexFile, python: str) -> CoreMetadata:
        """What a build of an sdist that may be built says for a Python minor.

        Runs in the thread that asks, one after another: nothing is ever built ahead of the need. Raises
        SdistBuildFailed, HashMismatch, NotAllowedOffline, or a RequestFailed.
        """
        allowed = None if self._offline else self._builds
        return self._metadata_source.built(file, python, allowed=allowed, settings=self._settings)

    def close(self) -> None:
        """Cancel what is under way, drop all connections, and finish what is being kept."""
        for task in self._keeping:
            task.result()
        for workers in (self._workers, self._reader, self._tails, self._keeper):
            workers.close(Closed("index"))
        self.transport.close()
        if self.transport.asker is not None:
            self.cache.problem = self.cache.problem or self.transport.asker.problem

    def __enter__(self) -> PackageIndex:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _start(self, work: Callable[[], T]) -> Task[T]:
        task = Task(work)
        self._workers.submit(task)
        return task

    def _page_task(self, name: str) -> Task[Page]:
        task = self._pages.get(name)
        if task is not None:
            return task
        with self._lock:
            task = self._pages.get(name)
            if task is not None:
                return task
            if len(self._pages) >= self._limits.projects:
                raise TooManyProjects(name, self._limits.projects)
            task = self._pages[name] = Task(lambda: self._fetch_page(name))
        if self._offline or not self._ask_page_ahead(name, task):
            self._workers.submit(task)
        self._tell(0)
        return task

    def _metadata_task(self, file: IndexFile) -> Task[CoreMetadata]:
        key = file.url, file.filename
        task = self._metadata.get(key)
        if task is not None:
            return task
        with self._lock:
            task = self._metadata.get(key)
            if task is not None:
                return task
            task = self._metadata[key] = Task(lambda: self._fetch_metadata(file))
        if self._offline or not self._metadata_source.ask_ahead(
                file, partial(self._run_soon, task, short=True), task.run):
            self._workers.submit(task)
        self._tell(0)
        return task

    def _ask_page_ahead(self, name: str, task: Task[Page]) -> bool:
        """Whether the page is asked for, and the task runs when the answer is here; not where an old one is kept."""
        indexes, _ = self._routes.get(name, (self._indexes, None))
        if len(indexes) != 1 or self.cache.has_page(url := f"{indexes[0][0]}/{name}/"):
            return False
        return self.transport.ask_ahead(url, headers={"Accept": ACCEPT}, then=partial(self._run_soon, task),
                                        page=(name, indexes[0][1]))

    def _run_soon(self, task: Task[T], whole: bool, *, short: bool = False) -> None:  # noqa: FBT001
        """Has a task run whose answer is here, or (where it is not whole) whose thread may have to wait.

        Metadata goes first: it is short, and names what else is to be asked for.
        """
        (self._reader if whole else self._tails if short else self._workers).submit(task, 0 if short else 1)

    def _look(self, look: Callable[[], None]) -> None:
        """Has something looked at that is here, as short as metadata."""
        self._reader.submit(Task(look), 0)

    def _keep(self, keep: Callable[[], None]) -> None:
        """Has something kept by a thread of its own, which mostly waits for the disk; close() sees to what is left."""
        task = Task(keep)
        self._keeping.append(task)
        self._keeper.submit(task)

    def _fetch_metadata(self, file: IndexFile) -> CoreMetadata:
        found = self._metadata_source.kept(file)
        if found is None:
            if self._offline:
                raise NotAllowedOffline(f"metadata of {file.filename}")
            found = self._metadata_source.fetch(file)
        self._tell(1)
        if self._on_metadata is not None:
            self._call_watcher(partial(self._on_metadata, file, found))
        return found

    def _fetch_page(self, name: str) -> Page:
        indexes, why = self._routes.get(name, (self._indexes, None))
        if not indexes and why is not None:
            raise NotFromIndex(name, why)
        for url, base in indexes:
            page = self._page_unless_passed_over(name, f"{url}/{name}/", base)
            if page is not None:
                self._tell(1)
                if self._on_page is not None:
                    self._call_watcher(partial(self._on_page, page))
                return page
        raise NoSuchProject(name, tuple(base for _, base in indexes), why=why)

    def _page_unless_passed_over(self, name: str, url: str, base: str) -> Page | None:
        """The page on one index; None also for a status by which this index says so, as its settings have it."""
        codes = self._passed_over.get(base, ())
        if self._offline:
            return self._kept_page(name, url, base, (*NOT_THERE, *codes))
        try:
            return self._page_on(name, url, base)
        except RequestFailed as fault:
            if fault.status not in codes:
                raise
            self._absent(name, url, fault.status or 0, {})
            return None

    def _kept_page(self, name: str, url: str, base: str, absent: tuple[int, ...]) -> Page | None:
        """The page as it is kept, None where the index said by one of these statuses that there is none.

        What an index was never asked for is on no other: the first that has a name wins, and this one may have it.
        """
        kept = self.cache.page(url)
        if kept is not None:
            self._note(name, url, OK, kept.until, kept.etag, kept.packed, kept.url, kept.content_type)
            return _parse_kept(kept, name, base)
        status = self.cache.absence(url)
        if status in absent:
            self._note(name, url, status, 0.0)
            return None
        of_several = len(self._routes.get(name, (self._indexes, None))[0]) > 1
        raise NotAllowedOffline(f"index page of {name}{f' on {shown(base)}' if of_several else ''}")

    def _absent(self, name: str, url: str, status: int, headers: Mapping[str, str]) -> None:
        """Remembers that one index has no such project, in this run and for --offline."""
        self._keep(partial(self.cache.keep_absence, url, status, headers))
        self._note(name, url, status, 0.0)

    def _page_on(self, name: str, url: str, base: str) -> Page | None:
        """The page of `name` on one index, None where that index has no such project."""
        kept = self.cache.page(url)
        if kept is not None and kept.fresh and not self._refresh:
            self._note(name, url, OK, kept.until, kept.etag, kept.packed, kept.url, kept.content_type)
            return _parse_kept(kept, name, base)
        headers = {"Accept": ACCEPT}
        if kept is not None and kept.etag is not None:
            headers["If-None-Match"] = kept.etag
        answer = self.transport.get(url, limit=self._limits.page, headers=headers, keep_packed=True)
        now = time.time()
        if answer.status == NOT_MODIFIED and kept is not None and kept.etag is not None:
            self.cache.renew_page(url, kept, answer.headers, now)
            etag = etag_of(answer.headers) or kept.etag
            self._note(name, url, OK, usable_until(answer.headers, now), etag, kept.packed, kept.url, kept.content_type)
            return _parse_kept(kept, name, base)
        if answer.status in NOT_THERE:
            self._absent(name, url, answer.status, answer.headers)
            return None
        return self._accept(answer, name, url, base, now)

    def _note(self, name: str, url: str, status: int, until: float, etag: str | None = None, packed: str | None = None,
              final: str | None = None, kind: str = "") -> None:
        """Remembers what was answered for `url`."""
        self._answers.setdefault(name, {})[url] = Answered(
            url=without_credentials(url), status=status, until=until, etag=etag, packed=packed, accept=ACCEPT,
            entry=self.cache.page_entry(url) if status == OK or self._offline else None,
            final=None if final is None else base_of(final), kind=kind)

    def _accept(self, answer: Response, name: str, url: str, base: str, now: float) -> Page:
        if answer.status != OK:
            raise refused(answer, url)
        kind, etag = answer.headers.get("content-type", ""), etag_of(answer.headers)
        if answer.page is not None:
            self._make_room(url, answer.page.size)
            self._note(name, url, OK, usable_until(answer.headers, now), etag, answer.packed, answer.url, kind)
            return Page(name, base, answer.url, answer.page.entries, answer.page.groups)
        with self._unpacking:
            content = unpacked(answer.headers, answer.body, self._limits.page)
            if content is None:     # once more, with all that is tried there, and told in its words
                answer = self.transport.get(url, limit=self._limits.page, headers={"Accept": ACCEPT})
                content = answer.body
                if answer.status != OK:
                    raise refused(answer, url)
            packed = None if content is answer.body else answer.body
            self._make_room(url, len(packed) if packed is not None else len(content) * (1 if content.isascii() else 4))
            page = parse_page(content, kind, project=name, index=base, url=answer.url, packed=packed)
        if holds_secret(content):
            self._keep(partial(self.cache.drop_page, url))
        else:
            self._keep(partial(self.cache.keep_page, url, final=answer.url, headers=answer.headers, content=answer.body,
                               packed=answer.packed, now=now, gzipped=packed is not None))
        self._note(name, url, OK, usable_until(answer.headers, now), etag, answer.packed, answer.url, kind)
        return page

    def _make_room(self, url: str, size: int) -> None:
        """Counts what a page takes for as long as the run lasts. Raises TooLarge."""
        with self._lock:
            self._held += size
            if self._held > self._limits.pages:
                raise TooLarge(url, f"with it the pages of this run would take more than {self._limits.pages} bytes")

    def _tell(self, more: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done += more
            done, asked = self._done, len(self._pages) + len(self._metadata)
        self._progress(done, asked)

    def _call_watcher(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as fault:  # noqa: BLE001  # a defect of the watcher is no fault of the page
            self._watcher_fault = fault

    def _raise_watchers_fault(self) -> None:
        if self._watcher_fault is not None:
            fault, self._watcher_fault = self._watcher_fault, None
            raise fault


def _with_bases(urls: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each address, and the same without credentials."""
    return tuple((url, without_credentials(url)) for url in urls)


def _parse_kept(kept: KeptPage, name: str, base: str) -> Page:
    return parse_page(kept.content, kept.content_type, project=name, index=base, url=kept.url,
                      packed=None if kept.stored is kept.content else kept.stored)
