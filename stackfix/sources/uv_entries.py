"""`[[index]]` of uv: what each entry says, with the login that variables give to its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from stackfix.errors import BadInput
from stackfix.quick import dataclass, field

_POLICIES = ("auto", "always", "never")
_FORMATS = ("simple", "flat")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


@dataclass(frozen=True, slots=True, kw_only=True)
class UvIndex:
    """One index that uv is told of."""

    origin: str
    url: str = field(repr=False)    # may hold credentials
    name: str | None = None
    default: bool = False
    explicit: bool = False
    flat: bool = False
    authenticate: str = "auto"
    passed_over: tuple[int, ...] = ()               # statuses that mean "not here"
    exclude_newer: object = None                    # as written: a text, or False


def entries_of(table: Mapping[str, Any], origin: str, environ: Mapping[str, str]) -> Iterator[UvIndex]:
    """The entries in their order. Raises BadInput."""
    listed = table.get("index")
    if listed is None:
        return
    if not isinstance(listed, list):
        raise BadInput(origin, "index is no list", "write [[index]] in double brackets")
    for number, entry in enumerate(listed, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
            raise BadInput(origin, f"has an [[index]] without url (number {number})", "give it one")
        yield _entry(entry, origin, environ)


def _entry(entry: Mapping[str, Any], origin: str, environ: Mapping[str, str]) -> UvIndex:
    name = entry.get("name")
    if name is not None and (not isinstance(name, str) or not name or not _NAME.issuperset(name)):
        raise BadInput(origin, f"an [[index]] has the name {str(name)[:80]!r}", "use letters, digits, '-', '_' and '.'")
    label = f"{origin}, index {name}" if name else origin
    policy = entry.get("authenticate", "auto")
    if policy not in _POLICIES:
        raise BadInput(label, f"authenticate = {str(policy)[:80]!r}", f"it is one of {', '.join(_POLICIES)}")
    layout = entry.get("format", "simple")
    if layout not in _FORMATS:
        raise BadInput(label, f"format = {str(layout)[:80]!r}", f"it is one of {', '.join(_FORMATS)}")
    codes = entry.get("ignore-error-codes", [])
    if not isinstance(codes, list) or not all(type(code) is int and 100 <= code < 600 for code in codes):
        raise BadInput(label, "ignore-error-codes is no list of HTTP statuses", "write it as [403]")
    return UvIndex(
        origin=label, url=with_login(entry["url"], name, environ), name=name, default=entry.get("default") is True,
        explicit=entry.get("explicit") is True, flat=layout == "flat",
        authenticate=policy, passed_over=tuple(codes), exclude_newer=entry.get("exclude-newer"))


def named_entry(text: str, origin: str, environ: Mapping[str, str], *, default: bool = False) -> UvIndex:
    """The index of a variable: `name=address` or `address`."""
    name, equals, url = text.partition("=")
    if equals and name and _NAME.issuperset(name):
        return UvIndex(origin=origin, url=with_login(url, name, environ), name=name, default=default)
    return UvIndex(origin=origin, url=text, default=default)


def first_of_name(entries: list[UvIndex]) -> list[UvIndex]:
    """The entries without those whose name an earlier one has: they are replaced, whatever the earlier one is."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        if entry.name is None or entry.name not in seen:
            kept.append(entry)
        if entry.name is not None:
            seen.add(entry.name)
    return kept


def with_login(url: str, name: str | None, environ: Mapping[str, str]) -> str:
    """The address with the login that UV_INDEX_<NAME>_USERNAME and _PASSWORD give to the name."""
    if name is None:
        return url
    key = "UV_INDEX_" + "".join(letter.upper() if letter.isascii() and letter.isalnum() else "_" for letter in name)
    user, password = environ.get(f"{key}_USERNAME"), environ.get(f"{key}_PASSWORD")
    if user is None and password is None:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    login = quote(user or "", safe="") + ("" if password is None else f":{quote(password, safe='')}")
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))
