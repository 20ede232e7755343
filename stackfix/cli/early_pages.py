"""Whether servers still answer as they did when an answer was kept: all asked at once, nothing parsed.

A page that comes byte for byte as it came before is the page that the answer rests on. One that does not leads to the
whole way, also where nothing in it matters: only the solver can tell.
"""

from __future__ import annotations

import os
import time
from collections import deque
from functools import partial
from pathlib import Path

from stackfix.cli.early import Answer
from stackfix.errors import StackfixError, Unreachable
from stackfix.quick import dataclass
from stackfix.sources.address import base_of, without_credentials
from stackfix.sources.answers import LIMITS, Response
from stackfix.sources.cache import Cache, KeptPage, usable_until
from stackfix.sources.records import IndexSettings
from stackfix.sources.sender import CAN_WAIT
from stackfix.sources.settings import read_settings
from stackfix.sources.transport import Transport
from stackfix.sources.wire import NOT_MODIFIED, NOT_THERE, OK, unpacked
from stackfix.sources.workers import Task, Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WORKERS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kept answer of a server."""

    url: str
    status: int
    until: float
    etag: str
    packed: str
    accept: str
    entry: str
    final: str
    kind: str


def still_the_same(kept: Answer) -> bool:
    """Whether all answers that must not be used unasked are as they were; their time is renewed then."""
    try:
        settings = settings_of(kept.asked.words)
    except StackfixError:
        return False            # the whole way says what is wrong
    if tuple(map(without_credentials, settings.indexes)) != tuple(base for base, in kept.of("index")):
        return False            # a file of requirements names others
    [[began, _]] = kept.of("fresh")
    now, cache = time.time(), Cache(Path(kept.asked.cache))
    rows = [row_of(row) for row in kept.of("answer")]
    stale = [row for row in rows if not float(began) <= now < row.until]
    usable = [row for row in rows if row not in stale]
    if not kept.pages_are_kept() and not all(holds(row, cache) for row in usable):
        return False
    answers = ask(stale, settings, cache)
    if answers is None:
        return False
    renew(kept, stale, answers, now)
    return True


def holds(row: Row, cache: Cache) -> bool:
    """Whether the cache has the page of a row, to be used unasked: it may have been renewed by another request."""
    page = cache.page(row.url) if row.entry else None
    return page is not None and page.fresh and page.packed == row.packed


def row_of(row: Sequence[str]) -> Row:
    """The row as it was kept."""
    url, status, until, *rest = row
    etag, packed, accept, entry, final, kind = rest
    return Row(url=url, status=int(status), until=float(until), etag=etag, packed=packed, accept=accept, entry=entry,
               final=final, kind=kind)


def settings_of(words: Sequence[str]) -> IndexSettings:
    """Where to look, as the command line, the environment and settings files have it."""
    return read_settings(index_url=next(iter(values_of(words, "--index-url")), None),
                         extra_index_urls=tuple(values_of(words, "--extra-index-url")), environ=os.environ,
                         home=Path.home(), project=Path.cwd())


def values_of(words: Sequence[str], option: str) -> list[str]:
    """The values of an option, the last first where only one counts."""
    found = [words[number + 1] for number, word in enumerate(words[:-1]) if word == option]
    found += [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    return found[::-1] if option == "--index-url" else found


def ask(rows: Sequence[Row], settings: IndexSettings, cache: Cache) -> list[Response] | None:
    """The answers, all as they were; None as soon as one is not."""
    transport = Transport(settings, LIMITS, retries=min(settings.retries, 1))
    asked = Asked(transport, cache)
    try:
        return asked.answers(rows)
    except StackfixError:
        return None
    finally:
        asked.workers.close(Unreachable("pages", "not needed any more"))
        transport.close()


class Asked:
    """Pages that are asked for all at once. No thread sends: there is nothing else to do meanwhile."""

    def __init__(self, transport: Transport, cache: Cache) -> None:
        self.transport, self.cache = transport, cache
        self.workers = Workers(WORKERS, "stackfix-pages")
        self.waited: set[Task[Response | None]] = set()
        self.here: deque[Task[Response | None]] = deque()

    def answers(self, rows: Sequence[Row]) -> list[Response] | None:
        """One for each row; None as soon as one is not as it was. Raises a StackfixError."""
        sender = self.transport.own_sender() if CAN_WAIT else None
        tasks = [Task(partial(same, row, self.transport, self.cache)) for row in rows]
        for row, task in zip(rows, tasks, strict=True):
            self.waited.add(task)
            if not self.transport.ask_ahead(row.url, headers=headers_of(row), then=partial(self.come, task)):
                self.come(task, False)  # noqa: FBT003
        while self.waited and sender is not None:
            sender.turn_to_all()
            while self.here:
                if self.here.popleft().result() is None:
                    return None
        found = [task.result() for task in tasks]
        return None if None in found else [answer for answer in found if answer is not None]

    def come(self, task: Task[Response | None], whole: bool) -> None:
        """What is whole is looked at in its turn; a thread sees to what may have to be waited for."""
        self.waited.discard(task)
        if whole:
            self.here.append(task)
        else:
            self.workers.submit(task)


def headers_of(row: Row) -> dict[str, str]:
    """What the page is asked for with."""
    return {"Accept": row.accept, **({"If-None-Match": row.etag} if row.etag else {})}


def same(row: Row, transport: Transport, cache: Cache) -> Response | None:
    """The answer where it is as it was."""
    answer = transport.get(row.url, limit=LIMITS.page, headers=headers_of(row), keep_packed=True)
    if row.status != OK:
        return answer if answer.status in NOT_THERE and row.status in NOT_THERE else None
    if answer.status == NOT_MODIFIED and row.etag:
        return answer
    if answer.status != OK or base_of(answer.url) != row.final or answer.headers.get("content-type", "") != row.kind:
        return None
    if answer.packed == row.packed:
        return answer
    content = unpacked(answer.headers, answer.body, LIMITS.page) if row.entry else None
    return answer if content is not None and content == content_of(cache.page(row.url)) else None


def content_of(page: KeptPage | None) -> bytes:
    return b"" if page is None else page.content


def renew(kept: Answer, rows: Sequence[Row], answers: Sequence[Response], now: float) -> None:
    """Lets what was asked for be used unasked for as long as its server allows now, where it does."""
    untils = {row.url: usable_until(answer.headers, now) for row, answer in zip(rows, answers, strict=True)}
    if not untils or min(untils.values()) <= now or any(not row.entry for row in rows):
        return
    cache = Cache(Path(kept.asked.cache))
    for row, answer in zip(rows, answers, strict=True):
        page = cache.page(row.url)
        if page is None:
            return
        cache.renew_page(row.url, page, answer.headers, now)
    if cache.problem is None:
        kept.renew(untils, now)
