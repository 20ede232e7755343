"""How a wheel is asked for its metadata where its page states no metadata file: by its end, or by a file beside it."""

from __future__ import annotations

import threading

from stackfix.sources.address import parse_address
from stackfix.sources.records import IndexFile

TAIL = 64 * 1024
WIDE = 2 * TAIL                     # of a large wheel, and of one that this is all of
_LARGE = 1024 * 1024
_FIRST = 4                          # wheels of a server that are asked for in both ways


def end_of_file(file: IndexFile) -> str:
    """The range that holds METADATA of most wheels: their last bytes."""
    wide = file.size is not None and (file.size <= WIDE or file.size >= _LARGE)
    return f"bytes=-{WIDE if wide else TAIL}"


class Ways:
    """What the servers of a run have. Called from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[tuple[object, ...], int] = {}
        self._there: dict[tuple[object, ...], int] = {}
        self._lacking: set[tuple[object, ...]] = set()

    def of(self, file: IndexFile) -> tuple[bool, bool]:
        """Whether to ask for the file beside the wheel, and whether for the wheel's end.

        Some servers have files that they do not state: of all wheels, or of a part of them. The first few wheels tell,
        at no time lost; asking for both every time would be a second request for each wheel.
        """
        server = parse_address(file.url).origin
        with self._lock:
            asked = self._asked[server] = self._asked.get(server, 0) + 1
            if asked <= _FIRST:
                return True, True
            return (True, False) if server not in self._lacking and self._there.get(server, 0) >= _FIRST else (
                False, True)

    def learn(self, file: IndexFile, *, there: bool) -> None:
        """Whether the file beside a wheel was there."""
        server = parse_address(file.url).origin
        with self._lock:
            self._there[server] = self._there.get(server, 0) + there
            if not there:
                self._lacking.add(server)
