"""requirements.txt as an outsider reads it: regular expressions over its lines, nothing of stackfix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENTRY = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[^\]]*\])?\s*"
                   r"(?:==\s*(?P<version>[^\s;\\]+)|@\s*(?P<url>\S+))")
HASH = re.compile(r"--hash=sha256:([0-9a-f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One logical line: a pin with its hashes, or a URL with its hash."""

    text: str
    name: str
    version: str | None
    url: str | None
    hashes: tuple[str, ...]


def read_entries(path: Path) -> tuple[Entry, ...]:
    """All pins of the file. Raises ValueError about a line that is no pin, no comment and no option."""
    return tuple(_entry(line) for line in logical_lines(path.read_text(encoding="utf-8")))


def logical_lines(text: str) -> Iterator[str]:
    """Lines with their continuations, without comments and empty ones."""
    joined = ""
    for line in text.splitlines():
        kept = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if kept.endswith("\\"):
            joined += kept[:-1] + " "
            continue
        joined += kept
        if joined.strip():
            yield joined.strip()
        joined = ""
    if joined.strip():
        yield joined.strip()


def _entry(line: str) -> Entry:
    found = ENTRY.match(line)
    if found is None:
        raise ValueError(f"no pin: {line!r}")
    return Entry(text=line, name=normal(found["name"]), version=found["version"], url=found["url"],
                 hashes=tuple(HASH.findall(line)))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
