"""Judge: packaging's tags. Every file that a lock pins must be one that an installer takes on the target."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from packaging.utils import parse_wheel_filename

from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.pylock import tags_of


def complaints(requirements: Path, pages: Pages, *, python: str, platform: str) -> list[str]:
    """What does not fit the target; sdists fit everywhere."""
    taken = frozenset(tags_of(python, platform))
    return [
        f"{entry.name}: {file} is for no Python {python} on {platform}"
        for entry in read_entries(requirements) for file in files_of(entry, pages)
        if file.endswith(".whl") and not taken & parse_wheel_filename(file)[3]
    ]


def files_of(entry: Entry, pages: Pages) -> list[str]:
    """The names of the files that an entry stands for, by their hashes on the index page or by its address."""
    if entry.url is not None:
        return [unquote(entry.url.rpartition("/")[2])]
    stated = pages.stated(entry.name)
    return [stated[digest][0] for digest in entry.hashes if digest in stated]
