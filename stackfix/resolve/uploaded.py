"""Upload times, and the date from which on files are too new."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from stackfix.errors import BadInput
from stackfix.sources.records import IndexFile

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def uploaded(file: IndexFile) -> datetime:
    """When the file was uploaded; without a statement, never early enough."""
    if file.upload_time is None:
        return _NEVER
    return _moment(file.upload_time) or _NEVER


def exclusion_limit(text: str) -> datetime:
    """The moment from which on files are too new. A date stands for its end (UTC), as in uv. Raises BadInput."""
    moment = _moment(text)
    if moment is None:
        raise BadInput(f"--exclude-newer {text}", "is no ISO 8601 date or time", "write it as 2026-01-31")
    return moment + timedelta(days=1) if _is_date(text) else moment


def _is_date(text: str) -> bool:
    return "T" not in text and " " not in text.strip() and ":" not in text


def _moment(text: str) -> datetime | None:
    """The moment, in UTC where no zone is stated; None where the text is none."""
    written = text.strip()
    if written.endswith(("Z", "z")):
        written = written[:-1] + "+00:00"       # datetime.fromisoformat reads "Z" only from Python 3.11
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return _without_fraction(written)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _without_fraction(written: str) -> datetime | None:
    """The moment of a text whose fraction has a length that Python 3.10 does not read."""
    head, dot, tail = written.partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    if not dot or not digits:
        return None
    try:
        moment = datetime.fromisoformat(head + tail[digits:])
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
