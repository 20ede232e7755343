"""The process that asks ahead for another, from within (asker.py is how that one sees it).

One loop: connections first, since each answer that waits keeps the other process waiting; then metadata, which is short
and names what else is wanted; then one page; and the cache when there is nothing else to do.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from stackfix.quick import filled, names_of
from stackfix.sources.address import without_credentials
from stackfix.sources.ahead import DRY, ENDED, Ahead, Unsettled
from stackfix.sources.answers import LIMITS, Response
from stackfix.sources.asker import LARGE, Messages, framed
from stackfix.sources.asking_wheels import metadata_beside, metadata_inside, part_before
from stackfix.sources.cache import Cache, holds_secret
from stackfix.sources.errors import BadPage
from stackfix.sources.metadata import keep_metadata
from stackfix.sources.page import JSON_KINDS, parse_page
from stackfix.sources.page_json import Found
from stackfix.sources.page_text import HELD
from stackfix.sources.records import CoreMetadata, IndexFile
from stackfix.sources.transport import Transport
from stackfix.sources.wire import OK, PARTIAL, OverLimit, WireFault, body_pieces, unpacked

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from stackfix.sources.arena import Arena
    from stackfix.sources.records import IndexSettings

    Made = Callable[[int, Response], bool]

_CHUNK = 256 * 1024
_LARGEST = 16 * 1024 * 1024         # of an answer; the sender leaves those that are larger
_TURNS = 8                          # that connections have before a page: what is large comes in many parts
_UNREAD = 32 * 1024 * 1024
_TO_KEEP = 4 * 1024 * 1024          # bytes of pages that wait to be written


class Asking:
    """Serves one link until its other end closes it."""

    def __init__(self, link: socket.socket, arena: Arena, settings: IndexSettings, cache_dir: Path) -> None:
        self._link, self._arena = link, arena
        self._cache = Cache(cache_dir)
        self._transport = Transport(settings, LIMITS)
        self._sender = self._transport.own_sender()
        self._sender.patient = True
        self._messages = Messages()
        self._over = False
        self._out = bytearray()     # messages that are not sent yet
        self._short: deque[Callable[[], None]] = deque()
        self._pages: deque[Callable[[], None]] = deque()
        self._keeps: deque[tuple[int, Callable[[], None]]] = deque()
        self._to_keep = 0           # bytes
        self._unread = 0            # bytes of large answers that the other process has not looked at
        HELD.limit(0)

    def serve(self) -> None:
        """Asks for what it is told, and tells what was answered."""
        self._link.setblocking(False)  # noqa: FBT003
        self._send()
        while not self._over:
            more = self._sender.turn_to_all(0 if self._can_go_on() else 500)
            for _ in range(_TURNS):
                more = more and self._sender.turn_to_all(0)
            while self._short and self._unread < _UNREAD:
                self._short.popleft()()
            if self._to_keep > _TO_KEEP or not self._pages:
                self._keep_one()
            elif self._unread < _UNREAD:
                self._pages.popleft()()
        while self._keeps:
            self._keep_one()
        self._link.setblocking(True)  # noqa: FBT003
        self._link.sendall(self._out + framed((0, "kept", self._cache.problem)))
        self._link.close()

    def _can_go_on(self) -> bool:
        """Whether there is something to do that waits for nobody."""
        return bool(self._keeps or ((self._short or self._pages) and self._unread < _UNREAD))

    def _keep_one(self) -> None:
        if self._keeps:
            size, keep = self._keeps.popleft()
            self._to_keep -= size
            keep()

    def _keep(self, size: int, keep: Callable[[], None]) -> None:
        """Has something of so many bytes written, when there is time for it."""
        self._to_keep += size
        self._keeps.append((size, keep))

    def _hear(self) -> None:
        self._send()
        try:
            data = self._link.recv(_CHUNK)
        except BlockingIOError:
            return
        self._over = not data
        for number, url, headers, page, wheel in self._messages.of(data):
            if not number:
                self._unread -= wheel[0]
                continue
            of = partial(self._tell_page, *page) if page else None if wheel is None else partial(
                self._tell_wheel, filled(IndexFile, wheel), headers)
            if not self._ask(url, headers, partial(self._tell, number, url, of), page=page is not None):
                self._say(number, "none")

    def _ask(self, url: str, headers: dict[str, str], tell: Callable[[Ahead], None], *, page: bool = False) -> bool:
        """Whether it is asked for. `tell` is called in its turn, of a page after all that is short."""
        ahead = self._transport.prepared(url, headers)
        if ahead is None:
            return False
        turn = self._pages if page else self._short
        ahead.then = lambda _: turn.append(partial(tell, ahead))
        self._sender.send(ahead)
        return True

    def _tell(self, number: int, url: str, of: Made | None, ahead: Ahead) -> None:
        """Says what came of one request, or (`of`) what is made of it."""
        body = self._body_of(ahead)
        self._sender.read(ahead)
        head = ahead.head
        if ahead.late:
            self._say(number, "late")
        elif ahead.fault is not None:
            self._say(number, "fault", ahead.fault.reason, ahead.fault.fresh, ahead.fault.slow, ahead.reused)
        elif body is None or head is None:
            self._say(number, "none")
        elif of is None or not of(number, Response(
                url=without_credentials(url), status=head.status, headers=head.headers, body=body)):
            self._say_answer(number, head.status, head.headers, ahead.reused, body)

    def _body_of(self, ahead: Ahead) -> bytes | None:
        """The body as it travelled; None where not all of it is here. The connection goes back."""
        head, body, whole = ahead.head, None, False
        if head is not None and ahead.complete:
            to_the_end = head.length is None and not head.chunked
            head.stream.refill(ENDED if to_the_end else DRY, [head.stream.rest()])
            try:
                body = b"".join(body_pieces(head, _LARGEST))
                whole = not head.will_close and head.stream.drained()
            except (WireFault, OverLimit, Unsettled):
                body = None
        if ahead.sock is not None:
            self._transport.give_back(ahead, whole=whole)
        return body

    def _tell_page(self, project: str, base: str, number: int, answer: Response) -> bool:
        """Whether the page is as most are, and was told."""
        url, headers, body = answer.url, answer.headers, answer.body
        kind = headers.get("content-type", "")
        if answer.status != OK or kind.partition(";")[0].strip().lower() not in JSON_KINDS:
            return False
        content = unpacked(headers, body, LIMITS.page)
        if content is None or not content.isascii():
            return False
        packed = None if content is body else body
        try:
            page = parse_page(content, kind, project=project, index=base, url=url, packed=packed)
        except BadPage:
            return False
        entries = page.entries
        if not isinstance(entries, Found):
            return False
        begin = self._arena.put(content)
        if begin is None and packed is None:
            return False
        digest = hashlib.sha256(body).hexdigest()
        if begin is None and len(body) >= LARGE:
            self._unread += len(body)
        self._say(number, "page", OK, headers, digest, len(body), (
            page.groups, entries.mark, entries.counts, len(content), begin, packed if begin is None else None))
        if holds_secret(content):
            self._keep(0, partial(self._cache.drop_page, url))
        else:
            self._keep(len(body), partial(
                self._cache.keep_page, url, final=url, headers=headers, content=body, packed=digest, now=time.time(),
                gzipped=packed is not None))
        return True

    def _tell_wheel(self, file: IndexFile, headers: dict[str, str], number: int, answer: Response) -> bool:
        """Whether the metadata is as most is, and was told, or will be."""
        if answer.url != file.url:
            return self._tell_metadata(number, file, metadata_beside(file, answer))
        part = part_before(file, answer, LIMITS.metadata) if answer.status == PARTIAL else None
        if part == "":
            return self._tell_metadata(number, file, metadata_inside(file, answer))
        return bool(part) and self._ask(file.url, {**headers, "Range": str(part)}, partial(
            self._tell, number, file.url, partial(self._tell_both_parts, file, answer)))

    def _tell_both_parts(self, file: IndexFile, end: Response, number: int, before: Response) -> bool:
        """As _tell_wheel. What is here is of the end then, as it was asked for."""
        if not self._tell_metadata(number, file, metadata_inside(file, end, before)):
            self._say_answer(number, end.status, end.headers, False, end.body)  # noqa: FBT003
        return True

    def _tell_metadata(self, number: int, file: IndexFile, found: CoreMetadata | None) -> bool:
        if found is None:
            return False
        self._say(number, "metadata", tuple(getattr(found, name) for name in names_of(CoreMetadata)))
        self._keep(0, partial(keep_metadata, self._cache, file, found))
        return True

    def _say_answer(self, number: int, status: int, headers: dict[str, str], reused: bool, body: bytes) -> None:  # noqa: FBT001
        """An answer as it came. What is large is counted until it is read: more is not sent meanwhile."""
        if len(body) >= LARGE:
            self._unread += len(body)
        self._say(number, "answer", status, headers, reused, body)

    def _say(self, *message: object) -> None:
        """Never waits: the other process may be waiting to be heard itself."""
        self._out += framed(message)
        self._send()

    def _send(self) -> None:
        with suppress(BlockingIOError):
            while self._out:
                sent = self._link.send(bytes(self._out[:_CHUNK]))
                del self._out[:sent]
        self._sender.attend(self._link.fileno(), self._hear, writing=bool(self._out))
