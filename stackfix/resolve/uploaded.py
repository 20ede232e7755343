"""Upload times, and the date from which on files are too new."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from stackfix.errors import BadInput
from stackfix.resolve.records import ProjectPage
from stackfix.sources.errors import NoUploadTimes
from stackfix.sources.records import IndexFile, UploadLimit

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def limit_for(page: ProjectPage, limits: tuple[UploadLimit, ...], general: datetime | None) -> datetime | None:
    """From when on files of a page are too new: its project's limit, its index's, else the general one."""
    index = getattr(page, "index", None)
    for limit in limits:
        if limit.project == page.name or (limit.index is not None and limit.index == index):
            return None if limit.moment is None else exclusion_limit(limit.moment)
    return general


def refuse_without_times(page: ProjectPage, before: datetime) -> None:
    """Raises NoUploadTimes where the page has files and states of none when it was uploaded."""
    files = [file for version in page.version_strings() for file in page.files(version)]
    if files and all(file.upload_time is None and file.torch_path is None for file in files):
        raise NoUploadTimes(project=page.name, index=files[0].index,
                            before=before.replace(microsecond=0, tzinfo=None).isoformat() + "Z")


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
    if not _is_date(text):
        return moment
    return _NEVER if moment.date() == _NEVER.date() else moment + timedelta(days=1)


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
