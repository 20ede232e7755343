"""uv's settings that say where to look: UV_* variables and the user's and the system's uv.toml.

A project's own uv.toml or [tool.uv] is not read: it belongs to that project's uv lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from stackfix.errors import BadInput
from stackfix.quick import dataclass, field

Named = tuple[str, str]             # (where it is set, address)
_LOCAL = ("find-links", "constraint-dependencies", "override-dependencies", "no-index")


@dataclass(frozen=True, slots=True, kw_only=True)
class UvSettings:
    """What uv is told. `default` and `extra` in order of priority."""

    default: tuple[Named, ...]
    extra: tuple[Named, ...]
    ignored: tuple[str, ...]
    cert: str | None
    timeout: float | None
    retries: int | None


@dataclass(slots=True)
class _Found:
    default: list[Named] = field(default_factory=list)
    extra: list[Named] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def read_uv_settings(environ: Mapping[str, str], home: Path, read: Callable[[Path], str | None],
                     platform: str) -> UvSettings:
    """Settings of uv in force. Raises BadInput for a uv.toml that cannot be parsed."""
    found = _Found()
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environ.get(name):
            found.default.append((name, _address(environ[name].strip(), environ)))
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        found.extra.extend((name, _address(text, environ)) for text in environ.get(name, "").split())
    if environ.get("UV_FIND_LINKS"):
        found.ignored.append(f"UV_FIND_LINKS: find-links = {environ['UV_FIND_LINKS']}")
    for path in config_files(environ, home, platform):
        text = read(path)
        if text is not None:
            _read_file(path, _parsed(path, text), environ, found)
    return UvSettings(default=tuple(found.default), extra=tuple(found.extra), ignored=tuple(found.ignored),
                      cert=environ.get("SSL_CERT_FILE") or None,
                      timeout=_number(environ, "UV_HTTP_TIMEOUT", 0.1, 3600.0),
                      retries=None if (tries := _number(environ, "UV_HTTP_RETRIES", 0, 20)) is None else int(tries))


def config_files(environ: Mapping[str, str], home: Path, platform: str) -> tuple[Path, ...]:
    """uv.toml files that count, the one that wins first (uv's documentation, "Configuration files")."""
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        return ()
    if environ.get("UV_CONFIG_FILE"):
        return (Path(environ["UV_CONFIG_FILE"]),)
    if platform == "win32":
        return (Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "uv" / "uv.toml",
                Path(environ.get("SYSTEMDRIVE", "C:") + "/") / "ProgramData" / "uv" / "uv.toml")
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
    wide = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return (user, *(Path(part) / "uv" / "uv.toml" for part in wide if part), Path("/etc/uv/uv.toml"))


def _read_file(path: Path, table: dict[str, Any], environ: Mapping[str, str], found: _Found) -> None:
    for part in (table, table.get("pip")):
        if not isinstance(part, dict):
            continue
        for entry in _list(part.get("index")):
            if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
                raise BadInput(str(path), "has an [[index]] without url")
            name = entry.get("name")
            url = _with_login(entry["url"], name if isinstance(name, str) else None, environ)
            if entry.get("explicit") is True or entry.get("format", "simple") != "simple":
                found.ignored.append(f"{path}: index {name or entry['url'].rpartition('@')[2]} (explicit or flat)")
            elif entry.get("default") is True:
                found.default.append((str(path), url))
            else:
                found.extra.append((str(path), url))
        if isinstance(part.get("index-url"), str):
            found.default.append((str(path), part["index-url"]))
        found.extra.extend((str(path), url) for url in _list(part.get("extra-index-url")) if isinstance(url, str))
        found.ignored.extend(f"{path}: {key} = {part[key]}" for key in _LOCAL if part.get(key))


def _parsed(path: Path, text: str) -> dict[str, Any]:
    from stackfix.sources.toml import TOMLDecodeError, loads

    try:
        return loads(text)
    except (TOMLDecodeError, RecursionError) as fault:
        raise BadInput(str(path), f"is no valid TOML ({fault})", "correct it, or set UV_NO_CONFIG=1") from None


def _address(text: str, environ: Mapping[str, str]) -> str:
    """The address in `name=address` or `address`, with the login that UV_INDEX_<NAME>_* gives to the name."""
    name, equals, url = text.partition("=")
    if equals and name and "/" not in name and ":" not in name:
        return _with_login(url, name, environ)
    return text


def _with_login(url: str, name: str | None, environ: Mapping[str, str]) -> str:
    if name is None:
        return url
    key = "UV_INDEX_" + "".join(letter.upper() if letter.isalnum() else "_" for letter in name)
    user, password = environ.get(f"{key}_USERNAME"), environ.get(f"{key}_PASSWORD")
    if user is None and password is None:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    login = f"{quote(user or '', safe='')}:{quote(password or '', safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


def _number(environ: Mapping[str, str], name: str, least: float, most: float) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        return min(max(float(text), least), most)
    except ValueError:
        raise BadInput(name, f"{text!r} is no number") from None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
