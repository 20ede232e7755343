"""Reads the channels of a folder: `<channel>/<subdir>/repodata.json`, and what was inferred beside them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput
from stackfix.snapshot.records import KEYS, Made, Row, Subdir

INFERRED = "inferred-constrains.json"


def read_folder(folder: Path, source: str, winners: str) -> Made:
    """The records below `folder`. Raises BadInput for what is no channel folder."""
    files = sorted(folder.glob("*/*/repodata.json"))
    if not files:
        raise BadInput(str(folder), "holds no <channel>/<subdir>/repodata.json")
    subdirs = tuple(
        Subdir(channel=path.parts[-3], subdir=path.parts[-2], rows=read_rows(path.read_bytes(), str(path)))
        for path in files)
    stated = folder / INFERRED
    inferred = _document(stated.read_bytes(), str(stated)) if stated.is_file() else {}
    return Made(date=newest(subdirs), source=source, winners=winners, subdirs=subdirs,
                inferred={key: tuple(value) for key, value in sorted(inferred.items())})


def read_rows(content: bytes, name: str) -> dict[str, Row]:
    """The records of one repodata.json. Raises BadInput."""
    document = _document(content, name)
    rows: dict[str, Row] = {}
    for key in KEYS:
        rows.update(document.get(key) or {})
    return rows


def newest(subdirs: tuple[Subdir, ...]) -> str:
    """The day on which the newest record was made: nothing newer is in them."""
    times = (int(row["timestamp"]) for subdir in subdirs for row in subdir.rows.values() if row.get("timestamp"))
    return datetime.fromtimestamp(max(times, default=0) / 1000, timezone.utc).date().isoformat()


def _document(content: bytes, name: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        raise BadInput(name, "is no JSON") from None
    if not isinstance(document, dict):
        raise BadInput(name, "is no JSON object")
    return document
