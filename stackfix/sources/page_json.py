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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from stackfix.sources.page_text import HeldText, PageText, Text

Entry = dict[str, Any]
_KEY = '"filename"'
_FIRST = re.compile(r'"filename"(\s*:\s*)"')
_FILES = re.compile(r'"files"\s*:\s*\[\s*')
_MAX_NESTED = 16                    # objects inside an entry that may stand before its file name
MOST_FILES = 100_000                # of one page; the largest known list some 20,000
# What is decoded takes up to twenty times its text: only so much of it is, however large a page may be.
_ENTRY, _LARGE_ENTRY = 16 * 1024, 1024 * 1024
_MANY = 4 * 1024 * 1024             # letters that may hold more files than that, as short as an entry can be
_FRAME, _UNUSUAL = 4 * 1024 * 1024, 8 * 1024 * 1024
_PATIENCE = 16                      # times the length of a text that is searched before all names in it are noted
# of a wheel "project-version-", of any other file the whole name and the quote behind it
_START = r'([^"\\-]*-[^"\\-]*-(?=[^"\\]*\.whl")|[^"\\]*")'
_decode = json.JSONDecoder().raw_decode


class TooMuch(ValueError):
    """A page of more than any page holds."""


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
        self._places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            self._places.setdefault(_start_of(name), []).append(place)
        self.starts = tuple(self._places)

    def of(self, starts: Sequence[str], accept: Callable[[str], bool] | None) -> Iterator[Entry]:
        for place in sorted(place for start in starts for place in self._places.get(start, ())):
            entry = self._entries[place]
            if accept is None or accept(entry["filename"]):
                yield entry


def _start_of(name: str) -> str:
    parts = name.split("-", 2)
    return f"{parts[0]}-{parts[1]}-" if len(parts) > 2 and name.endswith(".whl") else f'{name}"'


class Found:
    """Entries found by their names in the page's text. `mark`: what stands before each name.

    `counts`: how many files there are of each start.
    """

    def __init__(self, text: HeldText, mark: str, counts: dict[str, int]) -> None:
        self.mark, self.counts = mark, counts
        self.starts = tuple(counts)
        self._text = text
        self._searched = 0                              # characters so far
        self._noted: dict[str, list[int]] | None = None  # start -> where it is

    def of(self, starts: Sequence[str], accept: Callable[[str], bool] | None) -> Iterator[Entry]:
        """The entries of accepted files of these starts. Raises ValueError where one cannot be read."""
        text = self._text.get()
        for place, name in sorted(found for start in starts for found in self._places(text, start)):
            if accept is None or accept(name):
                yield entry_at(text, place, name)[0]

    def _places(self, text: Text, start: str) -> Iterator[tuple[int, str]]:
        """Where the files of a start are, and their names: from the end, where the newest versions mostly are."""
        if self._searched > _PATIENCE * len(text):
            for place in self._all_places(text).get(start, ()):
                yield place, name_at(text, self.mark, place)
            return
        sought, left, place = f"{self.mark}{start}", self.counts[start], len(text)
        while left:
            before, place = place, text.rindex(sought, 0, place)
            self._searched += before - place
            name = name_at(text, self.mark, place)
            if _start_of(name) == start:
                left -= 1
                yield place, name

    def _all_places(self, text: Text) -> dict[str, list[int]]:
        """Where the files of every start are: one pass, where a search for each would be one for each version."""
        if self._noted is None:
            noted: dict[str, list[int]] = {}
            for match in re.compile(re.escape(self.mark) + _START).finditer(str(text)):
                noted.setdefault(match[1], []).append(match.start())
            self._noted = noted
        return self._noted


def name_at(text: Text, mark: str, place: int) -> str:
    """The file name behind the mark at `place`."""
    begin = place + len(mark)
    return text[begin:text.index('"', begin)]


def entry_at(text: Text, place: int, name: str) -> tuple[Entry, int, int]:
    """The entry around the file name at `place`, its start and its end in the text. Raises ValueError."""
    at = place
    for _ in range(_MAX_NESTED):
        at = text.rfind("{", 0, at)
        if at < 0:
            break
        entry, end = decoded_at(text, at)
        if end > place and isinstance(entry, dict) and entry.get("filename") == name:
            return entry, at, end
    raise ValueError(f"says something of {name[:200]!r} that is no valid JSON")


def decoded_at(text: Text, at: int) -> tuple[object, int]:
    """The JSON value that begins there, and its end; None and 0 where there is none, or one that is far too large."""
    for most in (_ENTRY, _LARGE_ENTRY):
        try:
            value, end = _decode(text[at:at + most])
        except (ValueError, RecursionError):
            if at + most >= len(text):
                break
        else:
            return value, at + end
    return None, 0


def whole(text: str) -> object:
    """All of a page, decoded. Raises ValueError, and TooMuch where it would take too much memory."""
    if len(text) > _UNUSUAL:
        raise TooMuch(f"is no valid JSON, was cut short, or has a form that is not read beyond {_UNUSUAL} letters")
    found: object = json.loads(text)
    return found


def read_json(content: bytes, packed: bytes | None = None) -> tuple[Entry, Entries]:
    """The page without its files, and its files. Raises ValueError, with a reason, for what is no page.

    `packed`: the content gzipped, to be kept in its place.
    """
    try:
        text = content.decode("utf-8")
        found = find_entries(text, packed)
        if found is not None:
            return found
        page = whole(text)
    except TooMuch:
        raise
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
    if len(text) > _MANY and text.count(_KEY) > MOST_FILES:
        raise TooMuch(f"lists more than {MOST_FILES} files")
    mark = f'{_KEY}{first[1]}"'  # a search with a literal prefix runs five times as fast; other spellings are unusual
    found: list[str] = re.compile(f"{_KEY}(?:{re.escape(mark.removeprefix(_KEY))}{_START})?").findall(text)
    if len(found) > MOST_FILES:
        raise TooMuch(f"lists more than {MOST_FILES} files")
    counts = dict(Counter(found))
    if "" in counts or first.start() < opening.end():
        return None
    last = text.rindex(mark)
    _, begin, _ = entry_at(text, first.start(), name_at(text, mark, first.start()))
    _, _, end = entry_at(text, last, name_at(text, mark, last))
    if opening.end() + len(text) - end > _FRAME:
        raise TooMuch(f"says more than {_FRAME} letters beside its files")
    try:
        page = json.loads(text[:opening.end()] + text[end:])
    except ValueError:
        return None                     # a file inside a file: decoding all of it tells
    if begin != opening.end() or not isinstance(page, dict) or page.get("files") != []:
        return None
    return page, Found(PageText(text, packed), mark, counts)
