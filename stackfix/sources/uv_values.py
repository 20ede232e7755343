"""Single values of uv's settings: limits, policies, constraints, what is left out. Each checked where it is read."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stackfix.errors import BadInput
from stackfix.quick import replace
from stackfix.sources.address import shown, without_credentials
from stackfix.sources.records import AskedBySettings, IndexPin, IndexPolicy, UploadLimit
from stackfix.sources.uv_entries import UvIndex
from stackfix.sources.uv_project import Level

_YES = ("1", "true", "yes", "on", "y", "t")
_LOCAL = ("find-links", "no-index", "allow-insecure-host")
_PROVIDERS = ("disabled", "subprocess", "native")
_OVERRIDES = "replaces what other projects require, and a lock holds to what they do require"


def ignored_of(environ: Mapping[str, str], entries: Sequence[UvIndex], levels: Sequence[Level],
             pins: Sequence[IndexPin]) -> Iterator[str]:
    for variable, key in (("UV_FIND_LINKS", "find-links"), ("UV_INSECURE_HOST", "allow-insecure-host")):
        if environ.get(variable):
            yield f"{variable}: {key} = {_shown(environ[variable].replace(',', ' ').split())}"
    for entry in entries:
        if entry.explicit and entry.name not in {pin.name for pin in pins}:
            yield f"{entry.origin}: {shown(entry.url)} (explicit, and no source of this project names it)"
    for level in levels:
        local = _LOCAL if level.of_project else (*_LOCAL, "constraint-dependencies", "override-dependencies")
        for table in (level.table, level.table.get("pip")):
            if isinstance(table, dict):
                yield from (f"{level.origin}: {key} = {_shown(table[key])}" for key in local if table.get(key))


def notes_of(environ: Mapping[str, str], levels: Sequence[Level]) -> Iterator[str]:
    """What a user would expect to count, and that does not."""
    stated = ("UV_INDEX_STRATEGY", environ.get("UV_INDEX_STRATEGY"))
    for level in levels:
        stated = stated if stated[1] else (level.origin, level.table.get("index-strategy"))
        if level.of_project and level.table.get("override-dependencies"):
            yield f"override-dependencies in {level.origin} is not followed: it {_OVERRIDES}"
    if stated[1] and stated[1] != "first-index":
        yield (f"index-strategy = {str(stated[1])[:80]} ({stated[0]}) is not followed: a project comes from the first"
               " index that has it, and from no other")


def policies_of(entries: Sequence[UvIndex]) -> Iterator[IndexPolicy]:
    for entry in entries:
        if entry.authenticate != "auto" or entry.passed_over:
            yield IndexPolicy(base=_base(entry.url), origin=entry.origin, authenticate=entry.authenticate,
                              passed_over=entry.passed_over)


def limits_of(environ: Mapping[str, str], levels: Sequence[Level], tables: Sequence[Level],
              entries: Sequence[UvIndex]) -> Iterator[UploadLimit]:
    """Limits of projects, then of indexes, then the general one: uv's order."""
    now = time.time()
    for level in levels:
        table = level.table.get("exclude-newer-package")
        if table is not None and not isinstance(table, dict):
            raise BadInput(level.origin, "exclude-newer-package is no table", 'write it as { name = "2026-01-31" }')
        for name, value in (table or {}).items():
            origin = f"{level.origin}, exclude-newer-package.{name[:80]}"
            yield replace(_limit(value, origin, now), project=project_name(name))
    for entry in entries:
        if entry.exclude_newer is not None:
            yield replace(_limit(entry.exclude_newer, f"{entry.origin}, exclude-newer", now), index=_base(entry.url))
    if environ.get("UV_EXCLUDE_NEWER"):
        from stackfix.sources.uv_time import parse_limit

        yield parse_limit(environ["UV_EXCLUDE_NEWER"], "UV_EXCLUDE_NEWER", now, whole_day=True)
    for level in tables:
        if (value := level.table.get("exclude-newer")) is not None:
            yield _limit(value, f"{level.origin}, exclude-newer", now)


def _limit(value: object, origin: str, now: float) -> UploadLimit:
    from stackfix.sources.uv_time import no_limit, parse_limit  # few settings have one: it imports datetime

    if value is False:
        return no_limit(origin)
    # TOML has dates of its own
    text = value if isinstance(value, str) else getattr(value, "isoformat", lambda: "")()
    if not text:
        raise BadInput(origin, "is no text", 'write it as "2026-01-31" or "7 days"')
    return parse_limit(text, origin, now, whole_day=True)


def constraints_of(config: Level | None) -> Iterator[AskedBySettings]:
    """What the project limits: its own settings alone, since those of a user or a machine steer no project's lock."""
    if config is None:
        return
    for text in texts_of(config, "constraint-dependencies"):
        yield AskedBySettings(text=text, origin=f"{config.origin}, constraint-dependencies")


def keyring_of(environ: Mapping[str, str], tables: Sequence[Level]) -> bool | None:
    """Whether `keyring` may be asked, as far as uv is told."""
    stated = [("UV_KEYRING_PROVIDER", environ.get("UV_KEYRING_PROVIDER") or None)]
    stated += [(level.origin, text_of(level, "keyring-provider")) for level in tables]
    for origin, value in stated:
        if value is not None:
            if value not in _PROVIDERS:
                raise BadInput(f"{origin}, keyring-provider", f"{value[:80]!r} is not known",
                               "it is disabled or subprocess")
            return value == "subprocess"
    return None


def text_of(level: Level, key: str) -> str | None:
    value = level.table.get(key)
    if value is not None and not isinstance(value, str):
        raise BadInput(level.origin, f"{key} is no text", "put it in quotes")
    return value


def texts_of(level: Level, key: str) -> list[str]:
    value: Any = level.table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadInput(level.origin, f"{key} is no list of texts", f'write it as {key} = ["…"]')
    return list(value)


def _shown(value: object) -> str:
    """A value without what it may hold of credentials."""
    return ", ".join(shown(str(each)) for each in (value if isinstance(value, list) else [value]))


def _base(url: str) -> str:
    try:
        return without_credentials(url).rstrip("/")
    except ValueError:
        return url


def project_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def is_set(value: str | None) -> bool:
    """Whether a variable says yes."""
    return (value or "").strip().lower() in _YES


def number_of(environ: Mapping[str, str], name: str, least: float, most: float) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    return number_within(text, name, least, most)


def number_within(text: str, origin: str, least: float, most: float) -> float:
    """The number, no smaller and no larger than these. Raises BadInput."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):        # min and max let NaN pass
        raise BadInput(origin, f"{text[:80]!r} is no number", f"write one from {least:g} to {most:g}")
    return min(max(value, least), most)
