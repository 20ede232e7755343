"""METADATA out of a wheel that stays on its server: by its last bytes, the part before them, or all of it.

The last bytes are asked for ahead, with those of all others. What they lead to is asked for as soon as they are looked
at, by the thread that reads what is here: a thread that waits for one part of one wheel keeps the others waiting.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from stackfix.errors import StackfixError
from stackfix.sources.answers import Limits, Response, refused
from stackfix.sources.core_metadata import parse_metadata
from stackfix.sources.errors import BadMetadata, TooLarge
from stackfix.sources.records import CoreMetadata, IndexFile
from stackfix.sources.transport import Transport
from stackfix.sources.wheel_end import first_needed, metadata_at_end
from stackfix.sources.wheel_ways import TAIL, WIDE, end_of_file
from stackfix.sources.wire import OK, PARTIAL

if TYPE_CHECKING:
    from stackfix.sources.archives import SparseFile

_SMALL = 8 * 1024 * 1024            # a whole wheel that is read without a second thought
_MAX_RANGES = 4
_NO_RANGES = (400, 416, 501)
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")


class Inside:
    """Reads wheels of one run. Called from many threads."""

    def __init__(self, transport: Transport, limits: Limits, *, whole: Callable[[IndexFile, bytes | None], bytes],
                 beside: Callable[[IndexFile], CoreMetadata | None],
                 look: Callable[[Callable[[], None]], object]) -> None:
        """`whole` gives all bytes of a file, checked; `look` has what is here looked at soon.

        `beside` gives what is in a file beside the wheel, if that is there: asked where a server gives no parts.
        """
        self._transport, self._limits, self._whole, self._look = transport, limits, whole, look
        self._beside = beside
        self._lock = threading.Lock()
        self._begun: set[str] = set()           # addresses of files whose end is nobody else's any more
        self._ends: dict[str, Response] = {}    # ends that were looked at, and were not enough

    def ask_plainly(self, file: IndexFile, then: Callable[[bool], object]) -> bool:
        """Whether the end is asked for; `then` as of Transport.ask_ahead."""
        return self._ask(file, end_of_file(file), then)

    def ask_ahead(self, file: IndexFile, then: Callable[[bool], object], now: Callable[[], object]) -> bool:
        """As ask_plainly, and the part before the end is asked for where it is needed. `now`: it is all here."""
        def answered(whole: bool) -> None:  # noqa: FBT001 - as Transport.ask_ahead calls it
            if whole and self._transport.is_made(file.url, {"Range": end_of_file(file)}, packed=False):
                then(True)  # noqa: FBT003
            elif whole:
                self._look(partial(self._go_on, file, then, now))
            else:
                then(False)  # noqa: FBT003

        return self._ask(file, end_of_file(file), answered, wheel=True)

    def made(self, file: IndexFile) -> CoreMetadata | None:
        """The metadata, where another process read it; waits for it where that may be."""
        return self._transport.made(file.url, {"Range": end_of_file(file)}, packed=False)

    def is_asked(self, file: IndexFile) -> bool:
        """Whether the end is on its way."""
        return self._transport.is_asked(file.url, {"Range": end_of_file(file)}, packed=False)

    def is_looked_at(self, file: IndexFile) -> bool:
        """Whether the end is here already. If not, what was asked for is the caller's from now on."""
        with self._lock:
            self._begun.add(file.url)
            return file.url in self._ends

    def forget(self, file: IndexFile) -> None:
        """The end is not wanted any more."""
        self._transport.forget(file.url, {"Range": end_of_file(file)}, packed=False)

    def read(self, file: IndexFile) -> CoreMetadata:
        """From the wheel's own bytes: its end, a second range, or all of it."""
        answer = self._ends.pop(file.url, None) or self._last_bytes(file)
        if answer is not None and answer.status == PARTIAL:
            start, total = range_of(answer, file)
            found = metadata_at_end(answer.body, total, file.project, most=self._limits.metadata)
            if found is not None and start + len(answer.body) == total:
                return parse_metadata(found, file, "range")
        beside = self._beside(file) if answer is None and file.core_metadata is None else None
        return self._by_directory(file, answer) if beside is None else beside

    def _ask(self, file: IndexFile, wanted: str, then: Callable[[bool], object], *, wheel: bool = False) -> bool:
        return self._transport.ask_ahead(file.url, headers={"Range": wanted}, packed=False, then=then,
                                         wheel=file if wheel else None)

    def _go_on(self, file: IndexFile, then: Callable[[bool], object], now: Callable[[], object]) -> None:
        """Looks at an end that is here: has the metadata read, or asks for the part before it."""
        with self._lock:
            if file.url in self._begun:
                return              # who wanted it has it
            self._begun.add(file.url)
            try:
                answer = self._last_bytes(file)
            except StackfixError:
                answer = None       # asked for once more, and told
            if answer is not None and (answer.status == OK or len(answer.body) <= WIDE):
                self._ends[file.url] = answer
            else:
                answer = None       # of what is larger than it was to be, one at a time is held
        part = None if answer is None else self._part_before(file, answer)
        if answer is not None and part == "":
            now()
        elif not part or not self._ask(file, part, lambda _: then(False)):  # noqa: FBT003
            then(False)  # noqa: FBT003

    def _part_before(self, file: IndexFile, end: Response) -> str | None:
        """The range that an end lacks, as its directory tells; "" where it lacks nothing, None where that is open."""
        if end.status != PARTIAL:
            return ""
        try:
            start, total = range_of(end, file)
        except BadMetadata:
            return ""               # told when it is read
        return part_before_end(file, end.body, start, total, self._limits.metadata)

    def _by_directory(self, file: IndexFile, answer: Response | None) -> CoreMetadata:
        """From all of the wheel, or from its last bytes and those that its directory leads to."""
        from stackfix.sources.archives import BadArchive, SparseFile, metadata_in_wheel

        if answer is None or answer.status == OK:
            content = self._whole(file, None if answer is None else answer.body)
            try:
                return parse_metadata(metadata_in_wheel(io.BytesIO(content), file.project), file, "file")
            except BadArchive as fault:
                raise BadMetadata(file.filename, file.url, str(fault)) from None
        start, total = range_of(answer, file)
        sparse = SparseFile(total)
        sparse.add(start, answer.body)
        part = self._part_before(file, answer)
        before = self._bytes(file, part) if part else None
        if before is not None and before.status == PARTIAL:
            begin, _ = range_of(before, file)
            if begin + len(before.body) == start:
                found = metadata_at_end(before.body + answer.body, total, file.project, most=self._limits.metadata)
                if found is not None:
                    return parse_metadata(found, file, "range")
            sparse.add(begin, before.body)
        return self._by_ranges(file, sparse, start, total)

    def _by_ranges(self, file: IndexFile, sparse: SparseFile, start: int, total: int) -> CoreMetadata:
        """As zipfile asks for them. The wheel is here from `start` on."""
        from stackfix.sources.archives import BadArchive, Missing, metadata_in_wheel

        for _ in range(_MAX_RANGES):
            try:
                return parse_metadata(metadata_in_wheel(sparse, file.project), file, "range")
            except Missing as missing:
                # METADATA mostly lies just before the directory: one range for both
                first = max(0, missing.start - TAIL)
                last = min(missing.start + missing.size + TAIL, start if missing.start < start else total) - 1
                if last - first > self._limits.metadata:
                    raise BadMetadata(file.filename, file.url, "the wheel's directory is too large") from None
                more = self._bytes(file, f"bytes={first}-{last}")
                if more is None or more.status != PARTIAL:
                    break
                begin, _ = range_of(more, file)
                sparse.add(begin, more.body)
            except BadArchive as fault:
                raise BadMetadata(file.filename, file.url, str(fault)) from None
        raise BadMetadata(file.filename, file.url, "the wheel's METADATA is not where its directory says")

    def _last_bytes(self, file: IndexFile) -> Response | None:
        """The end of the file (206) or all of it (200); None where neither is to be had cheaply."""
        answer = self._bytes(file, end_of_file(file))
        if (answer is None or answer.status in _NO_RANGES) and file.size:
            # Some servers know ranges, but none that count from the end.
            answer = self._bytes(file, f"bytes={max(0, file.size - TAIL)}-{file.size - 1}")
        if answer is None or answer.status in _NO_RANGES:
            return None
        require_ok(answer, file.url)
        return answer

    def _bytes(self, file: IndexFile, wanted: str) -> Response | None:
        """The answer to a range request; None where the server sends all of a file that is not small."""
        try:
            return self._transport.get(file.url, limit=max(_SMALL, self._limits.metadata), headers={"Range": wanted},
                                       unpack=False)
        except TooLarge:
            return None


def require_ok(answer: Response, url: str) -> None:
    """Raises RequestFailed where an answer is none of what was asked for."""
    if answer.status not in (OK, PARTIAL):
        raise refused(answer, url)


def part_before_end(file: IndexFile, end: bytes, start: int, total: int, most: int) -> str | None:
    """The range that the end of a wheel (from `start` on) lacks, "" where it lacks nothing, None where that is open."""
    first = first_needed(end, total, file.project) if start + len(end) == total else None
    if first is None or start - first > most:
        return None
    return f"bytes={first}-{start - 1}" if first < start else ""


def range_of(answer: Response, file: IndexFile) -> tuple[int, int]:
    """Where the part begins, and how large the whole file is. Raises BadMetadata for a part that is not as it says."""
    stated = _RANGE.fullmatch(answer.headers.get("content-range", "").strip())
    if stated is None:
        raise BadMetadata(file.filename, file.url, "the server does not say which part of the file it sent")
    first, last, total = (int(number) for number in stated.groups())
    if not first <= last < total or last - first + 1 != len(answer.body):
        raise BadMetadata(file.filename, file.url, "the server sent another part of the file than it says")
    if file.size is not None and file.size != total:
        raise BadMetadata(file.filename, file.url, f"the server has {total} bytes, the index page states {file.size}")
    return first, total
