"""PEP 691 pages: what all file names begin with at once, one file's entry when it is asked for.

The pages of one lock hold some 20 MB of JSON that list 50,000 files, of which a few hundred matter. Decoding all of it
takes most of the time of a lock's network round, so the frame around the files is decoded as JSON, the names are found
by a search, and each entry is decoded where it is used. In valid JSON the text `"filename":` can only be a key, since
every quote inside a string is escaped. Whatever looks unusual is decoded whole instead.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from stackfix.sources.page_text import PageText

Entry = dict[str, Any]
_KEY = '"filename"'
_FIRST = re.compile(r'"filename"(\s*:\s*)"')
_FILES = re.compile(r'"files"\s*:\s*\[\s*')
_MAX_NESTED = 16                    # objects inside an entry that may stand before its file name
# of a wheel "project-version-", of any other file the whole name and the quote behind it
_START = r'([^"\\-]*-[^"\\-]*-(?=[^"\\]*\.whl")|[^"\\]*")'
_decode = json.JSONDecoder().raw_decode


class Entries(Protocol):
    """The files that a page lists, in its order.

    `starts`: what their names begin with, each once: `demo-1.0-` stands for all wheels of that version, and the name of
    any other file stands for itself, with a quote behind it.
    """

    starts: tuple[str, ...]

    def of(self, starts: Sequence[str], accept: Callable[[str], bool] | None) -> Iterator[Entry]:
        """The entries of accepted files of these starts. Raises ValueError where one cannot be read."""


class Decoded:
    """Entries that were decoded beforehand. Raises ValueError where they are no files."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        try:
            names = [entry["filename"] for entry in entries]
        except (TypeError, KeyError):
            raise ValueError("lists a file without a name") from None
        if not all(isinstance(name, str) for name in names):
            raise ValueError("lists a file without a name")
        self._starts = list(map(_start_of, names))
        self.starts = tuple(dict.fromkeys(self._starts))

    def of(self, starts: Sequence[str], accept: Callable[[str], bool] | None) -> Iterator[Entry]:
        for start, entry in zip(self._starts, self._entries, strict=True):
            if start in starts and (accept is None or accept(entry["filename"])):
                yield entry


def _start_of(name: str) -> str:
    parts = name.split("-", 2)
    return f"{parts[0]}-{parts[1]}-" if len(parts) > 2 and name.endswith(".whl") else f'{name}"'


class Found:
    """Entries found by their names in the page's text. `mark`: what stands before each name."""

    def __init__(self, text: str, mark: str, starts: Iterable[str], packed: bytes | None = None) -> None:
        self._counts = Counter(starts)
        self.starts = tuple(self._counts)
        self._text, self._mark = PageText(text, packed), mark

    def of(self, starts: Sequence[str], accept: Callable[[str], bool] | None) -> Iterator[Entry]:
        """The entries of accepted files of these starts. Raises ValueError where one cannot be read."""
        text = self._text.get()
        for place, name in sorted(found for start in starts for found in self._places(text, start)):
            if accept is None or accept(name):
                yield entry_at(text, place, name)[0]

    def _places(self, text: str, start: str) -> Iterator[tuple[int, str]]:
        """Where the files of a start are, and their names: from the end, where the newest versions mostly are."""
        sought, left, place = f"{self._mark}{start}", self._counts[start], len(text)
        while left:
            place = text.rindex(sought, 0, place)
            name = name_at(text, self._mark, place)
            if _start_of(name) == start:
                left -= 1
                yield place, name


def name_at(text: str, mark: str, place: int) -> str:
    """The file name behind the mark at `place`."""
    begin = place + len(mark)
    return text[begin:text.index('"', begin)]


def entry_at(text: str, place: int, name: str) -> tuple[Entry, int, int]:
    """The entry around the file name at `place`, its start and its end in the text. Raises ValueError."""
    at = place
    for _ in range(_MAX_NESTED):
        at = text.rfind("{", 0, at)
        if at < 0:
            break
        try:
            entry, end = _decode(text, at)
        except (ValueError, RecursionError):
            continue
        if end > place and isinstance(entry, dict) and entry.get("filename") == name:
            return entry, at, end
    raise ValueError(f"says something of {name[:200]!r} that is no valid JSON")


def read_json(content: bytes, packed: bytes | None = None) -> tuple[Entry, Entries]:
    """The page without its files, and its files. Raises ValueError, with a reason, for what is no page.

    `packed`: the content gzipped, to be kept in its place.
    """
    try:
        text = content.decode("utf-8")
        found = find_entries(text, packed)
        if found is not None:
            return found
        page = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is no valid JSON, or was cut short") from None
    files = page.get("files") if isinstance(page, dict) else None
    if isinstance(page, dict) and isinstance(files, list):
        return page, Decoded(files)
    raise ValueError("has not the shape of an index page (PEP 691)")


def find_entries(text: str, packed: bytes | None = None) -> tuple[Entry, Found] | None:
    """As read_json, None where the text has to be decoded whole. Raises ValueError for broken JSON around the files."""
    first, opening = _FIRST.search(text), _FILES.search(text)
    if first is None or opening is None:
        return None
    mark = f'{_KEY}{first[1]}"'  # a search with a literal prefix runs five times as fast; other spellings are unusual
    starts: list[str] = re.compile(re.escape(mark) + _START).findall(text, opening.end())
    if not starts or text.count(_KEY) != len(starts):
        return None
    last = text.rindex(mark)
    _, begin, _ = entry_at(text, first.start(), name_at(text, mark, first.start()))
    _, _, end = entry_at(text, last, name_at(text, mark, last))
    page = json.loads(text[:opening.end()] + text[end:])
    if begin != opening.end() or not isinstance(page, dict) or page.get("files") != []:
        return None
    return page, Found(text, mark, starts, packed)
