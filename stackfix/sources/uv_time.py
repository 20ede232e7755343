"""Until when files may have been uploaded, as uv's and pip's settings write it: a moment, a date, or so long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from stackfix.errors import BadInput
from stackfix.sources.records import UploadLimit

_UNITS = {
    "w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "week": 604800, "day": 86400, "hr": 3600, "hour": 3600,
    "min": 60, "minute": 60, "sec": 1, "second": 1,
}
_WORDS = re.compile(
    r"(?:\d{1,9}\s*(?:weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|[wdhms])(?:\s*,?\s*|$))+", re.IGNORECASE)
_WORD = re.compile(r"(\d{1,9})\s*([a-z]+)", re.IGNORECASE)
_SPAN = re.compile(r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CALENDAR = re.compile(r"month|year|P[^T]*\d[YM]", re.IGNORECASE)


def parse_limit(text: str, origin: str, now: float, *, whole_day: bool) -> UploadLimit:
    """The limit that a setting states. Raises BadInput.

    `now`: seconds since the epoch. A date stands for its end (`whole_day`, uv) or its beginning (pip), in UTC: a lock
    says the same everywhere.
    """
    written = text.strip()
    try:
        span = _span(written)
        if span is not None:
            moment = datetime.fromtimestamp(now, timezone.utc) - span
            return UploadLimit(moment=_text(moment), origin=origin, written=written, relative=True)
        moment = _moment(written)
        if _DATE.fullmatch(written) and whole_day:
            moment += timedelta(days=1)
        return UploadLimit(moment=_text(moment), origin=origin, written=written)
    except (ValueError, OverflowError):
        hint = "write 2026-01-31, 2026-01-31T12:00:00Z or '7 days'"
        if _CALENDAR.search(written):
            raise BadInput(origin, f"{written[:80]!r} has units without a fixed length", hint) from None
        raise BadInput(origin, f"{written[:80]!r} is no date, no time and no duration", hint) from None


def no_limit(origin: str) -> UploadLimit:
    """That a project or an index is exempt."""
    return UploadLimit(moment=None, origin=origin, written="false")


def _span(text: str) -> timedelta | None:
    """How long ago, None where the text says no such thing."""
    iso = _SPAN.fullmatch(text)
    if iso is not None and any(iso.groups()):
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
        return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if _WORDS.fullmatch(text.removesuffix("ago").rstrip()) is None:
        return None
    return timedelta(seconds=sum(int(number) * _seconds(unit) for number, unit in _WORD.findall(text)))


def _seconds(unit: str) -> int:
    name = unit.lower()
    return _UNITS[name if name in _UNITS else name.removesuffix("s")]


def _moment(text: str) -> datetime:
    if text.endswith(("Z", "z")):
        text = text[:-1] + "+00:00"                 # datetime.fromisoformat reads "Z" only from Python 3.11
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def _text(moment: datetime) -> str:
    # Not strftime: its %Y is not four digits long everywhere.
    return moment.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
