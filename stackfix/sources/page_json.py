"""PEP 691 pages: names of all files at once, one file's entry when it is asked for.

The pages of one lock hold some 20 MB of JSON that list 50,000 files, of which a few hundred matter. Decoding all of it
takes most of the time of a lock's network round, so the frame around the files is decoded as JSON, the names are found
by a search, and each entry is decoded where it is used. In valid JSON the text `"filename":` can only be a key, since
every quote inside a string is escaped. Whatever looks unusual is decoded whole instead.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

Entry = dict[str, Any]
_KEY = '"filename"'
_FIRST = re.compile(r'"filename"(\s*:\s*)"')
_FILES = re.compile(r'"files"\s*:\s*\[\s*')
_MAX_NESTED = 16                    # objects inside an entry that may stand before its file name
_decode = json.JSONDecoder().raw_decode


class Entries(Protocol):
    """The files that a page lists, in its order."""

    names: list[str]

    def entry(self, number: int) -> Entry:
        """What the page says of one file. Raises ValueError where it cannot be read."""


class Decoded:
    """Entries that were decoded beforehand. Raises ValueError where they are no files."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        try:
            self.names = [entry["filename"] for entry in entries]
        except (TypeError, KeyError):
            raise ValueError("lists a file without a name") from None
        if not all(isinstance(name, str) for name in self.names):
            raise ValueError("lists a file without a name")

    def entry(self, number: int) -> Entry:
        return self._entries[number]


class Found:
    """Entries found by their names in the page's text. `mark`: what stands before each name."""

    def __init__(self, text: str, mark: str, names: list[str]) -> None:
        self.names = names
        self._text, self._mark = text, mark
        self._places: list[int] = []

    def entry(self, number: int) -> Entry:
        """What the page says of one file. Raises ValueError where it cannot be read."""
        if not self._places:
            self._places = [found.start() for found in re.finditer(re.escape(self._mark), self._text)]
        return self.span(self._places[number], self.names[number])[0]

    def span(self, place: int, name: str) -> tuple[Entry, int, int]:
        """The entry around the file name at `place`, its start and its end in the text. Raises ValueError."""
        at = place
        for _ in range(_MAX_NESTED):
            at = self._text.rfind("{", 0, at)
            if at < 0:
                break
            try:
                entry, end = _decode(self._text, at)
            except (ValueError, RecursionError):
                continue
            if end > place and isinstance(entry, dict) and entry.get("filename") == name:
                return entry, at, end
        raise ValueError(f"says something of {name[:200]!r} that is no valid JSON")


def read_json(content: bytes) -> tuple[Entry, Entries]:
    """The page without its files, and its files. Raises ValueError, with a reason, for what is no page."""
    try:
        text = content.decode("utf-8")
        found = find_entries(text)
        if found is not None:
            return found
        page = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is no valid JSON, or was cut short") from None
    files = page.get("files") if isinstance(page, dict) else None
    if isinstance(page, dict) and isinstance(files, list):
        return page, Decoded(files)
    raise ValueError("has not the shape of an index page (PEP 691)")


def find_entries(text: str) -> tuple[Entry, Found] | None:
    """As read_json, None where the text has to be decoded whole. Raises ValueError for broken JSON around the files."""
    first, opening = _FIRST.search(text), _FILES.search(text)
    if first is None or opening is None:
        return None
    mark = f'{_KEY}{first[1]}"'  # a search with a literal prefix runs five times as fast; other spellings are unusual
    names: list[str] = re.compile(f'{re.escape(mark)}([^"\\\\]*)"').findall(text, opening.end())
    if not names or text.count(_KEY) != len(names):
        return None
    found = Found(text, mark, names)
    _, begin, _ = found.span(first.start(), names[0])
    _, _, end = found.span(text.rindex(mark), names[-1])
    page = json.loads(text[:opening.end()] + text[end:])
    if begin != opening.end() or not isinstance(page, dict) or page.get("files") != []:
        return None
    return page, found
