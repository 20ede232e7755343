"""Files that pip installed into a prefix, by the RECORD of each project that belongs to no package of a channel."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from stackfix.sync.installed import read_record

LARGEST = 64 * 1024 * 1024      # bytes of a RECORD


def pip_projects(prefix: Path, owned: Collection[str]) -> Iterator[tuple[str, Path]]:
    """(normalised name, its .dist-info) of what belongs to no package of a channel, with a RECORD to go by."""
    for folder in sorted(prefix.glob("lib/python3*/site-packages/*.dist-info")):
        if not (folder / "RECORD").is_file() or str((folder / "METADATA").relative_to(prefix)) in owned:
            continue
        known = read_record(folder)
        if known is not None:
            yield known.name, folder


def pip_files(
    prefix: Path, owned: Collection[str], *, is_ours: Callable[[str], bool] = lambda _path: False,
) -> dict[str, str]:
    """Path below the prefix -> the project of pip that it belongs to.

    `is_ours`: whether a RECORD is one that a package of a channel placed, though nobody owns it.
    """
    found: dict[str, str] = {}
    for name, folder in pip_projects(prefix, owned):
        if not is_ours(str((folder / "RECORD").relative_to(prefix))):
            found.update(dict.fromkeys(recorded(prefix, folder), name))
    return found


def recorded(prefix: Path, folder: Path) -> Iterator[str]:
    """The paths of one RECORD that are below the prefix."""
    record = folder / "RECORD"
    try:
        if record.stat().st_size > LARGEST:
            return
        text = record.read_text(encoding="utf-8", errors="replace")
        rows = [row[0] for row in csv.reader(text.splitlines()) if row and row[0]]
    except (OSError, csv.Error):
        return
    site = str(folder.parent.relative_to(prefix))
    for path in rows:
        place = os.path.normpath(os.path.join(site, path))  # noqa: PTH118 - "..", as text
        if not place.startswith(("../", "/")):
            yield place
