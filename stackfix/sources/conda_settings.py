"""conda's settings that say where channels are and how they are reached, checked.

What is named here and not followed is listed in `ignored`, with its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput
from stackfix.sources.conda_files import ReadText, Stated

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<plain>[A-Za-z_][A-Za-z0-9_]*))")
_NOT_FOLLOWED = ("channel_settings", "client_ssl_cert", "client_ssl_cert_key", "add_anaconda_token",
                 "migrated_channel_aliases", "migrated_custom_channels")
_SECONDS = (0.01, 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaSettings:
    """The settings in force. Addresses may hold logins and tokens: they go to rattler, never into a record."""

    channels: tuple[tuple[str, str], ...] = ()      # (where it is set, name or address), in order of priority
    alias: str | None = field(default=None, repr=False)
    default_channels: tuple[str, ...] | None = field(default=None, repr=False)
    custom: tuple[tuple[str, str], ...] = field(default=(), repr=False)     # (name, address of what it is below)
    multi: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    mirrored: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    allowed: tuple[str, ...] = field(default=(), repr=False)
    denied: tuple[str, ...] = field(default=(), repr=False)
    override: Stated | None = None  # where --channel is forbidden
    priority: str | None = None     # "strict", "flexible" or "disabled"
    offline: Stated | None = None   # where it is said
    verify: str = "true"            # "true", "false", or the path of a CA bundle
    proxies: tuple[tuple[str, str], ...] = field(default=(), repr=False)    # (scheme, address)
    connect_timeout: float = 9.15   # seconds; conda's defaults
    read_timeout: float = 60.0
    retries: int = 3
    ignored: tuple[str, ...] = ()


def conda_settings(stated: Mapping[str, list[Stated]], environ: Mapping[str, str]) -> CondaSettings:
    """The settings of these places. Raises BadInput for one that makes no sense."""
    said = _Said(stated, environ)
    ignored = [f"{each.origin}: {key}" for key in _NOT_FOLLOWED for each in stated.get(key, ())]
    override, offline = said.flag("override_channels_enabled"), said.flag("offline")
    default = said.texts("default_channels")
    proxies = said.mapping("proxy_servers")
    ignored += [f"{each.origin}: proxy_servers of one host" for each in stated.get("proxy_servers", ())
                if isinstance(each.value, dict) and any("://" in str(key) for key in each.value)]
    return CondaSettings(
        channels=said.texts("channels"),
        alias=said.text("channel_alias"), default_channels=tuple(text for _, text in default) or None,
        custom=tuple(said.mapping("custom_channels").items()),
        multi=tuple(said.lists("custom_multichannels").items()),
        mirrored=tuple(said.lists("mirrored_channels").items()),
        allowed=tuple(text for key in ("allowlist_channels", "whitelist_channels") for _, text in said.texts(key)),
        denied=tuple(text for _, text in said.texts("denylist_channels")),
        override=None if override is None or override[1] else override[0],
        priority=said.choice("channel_priority", ("strict", "flexible", "disabled")),
        offline=None if offline is None or not offline[1] else offline[0],
        verify=said.verify(), proxies=tuple((key, proxies[key]) for key in ("http", "https") if key in proxies),
        connect_timeout=said.number("remote_connect_timeout_secs", 9.15),
        read_timeout=said.number("remote_read_timeout_secs", 60.0),
        retries=int(said.number("remote_max_retries", 3, (0, 10))), ignored=tuple(ignored))


class _Said:
    """What the places say, one kind of value at a time."""

    def __init__(self, stated: Mapping[str, list[Stated]], environ: Mapping[str, str]) -> None:
        self._stated, self._environ = stated, environ

    def texts(self, key: str) -> tuple[tuple[str, str], ...]:
        """(place, text) of a list, without repetitions."""
        found: dict[str, str] = {}
        for each in self._stated.get(key, ()):
            for text in self._list(key, each):
                found.setdefault(text, each.origin)
        return tuple((origin, text) for text, origin in found.items())

    def text(self, key: str) -> str | None:
        first = self._first(key)
        return None if first is None else self._text(key, first, first.value)

    def mapping(self, key: str) -> dict[str, str]:
        """A map of texts; of each key the highest place's."""
        found: dict[str, str] = {}
        for each in self._stated.get(key, ()):
            for name, value in self._map(key, each).items():
                if value is not None:
                    found.setdefault(str(name), self._text(f"{key}: {name}", each, value))
        return found

    def lists(self, key: str) -> dict[str, tuple[str, ...]]:
        """A map of lists; of each key the highest place's."""
        found: dict[str, tuple[str, ...]] = {}
        for each in self._stated.get(key, ()):
            for name, value in self._map(key, each).items():
                row = Stated(origin=each.origin, value=value)
                found.setdefault(str(name), tuple(self._list(f"{key}: {name}", row)))
        return found

    def flag(self, key: str) -> tuple[Stated, bool] | None:
        first = self._first(key)
        if first is None:
            return None
        word = str(first.value).strip().lower()
        if word not in _TRUE | _FALSE:
            raise BadInput(first.origin, f"{key} is neither true nor false")
        return first, word in _TRUE

    def choice(self, key: str, words: tuple[str, ...]) -> str | None:
        first = self._first(key)
        if first is None:
            return None
        word = str(first.value).strip().lower()
        word = {"true": "flexible", "false": "disabled"}.get(word, word)    # as conda 4.5 wrote it
        if word not in words:
            raise BadInput(first.origin, f"{key} is none of {', '.join(words)}")
        return word

    def verify(self) -> str:
        """ssl_verify: "true", "false" or a path."""
        first = self._first("ssl_verify")
        if first is None:
            return "true"
        text = self._text("ssl_verify", first, first.value)
        word = text.lower()
        return "true" if word in {*_TRUE, "truststore"} else "false" if word in _FALSE else text

    def number(self, key: str, usual: float, limits: tuple[float, float] = _SECONDS) -> float:
        first = self._first(key)
        if first is None:
            return usual
        try:
            value = float(first.value)
        except (TypeError, ValueError):
            raise BadInput(first.origin, f"{key} is no number") from None
        return min(max(value, limits[0]), limits[1]) if value == value else usual  # noqa: PLR0124 - not for NaN

    def _first(self, key: str) -> Stated | None:
        return next((each for each in self._stated.get(key, ()) if each.value is not None), None)

    def _map(self, key: str, each: Stated) -> dict[Any, Any]:
        if each.value is None:
            return {}
        if not isinstance(each.value, dict):
            raise BadInput(each.origin, f"{key} is no mapping")
        return each.value

    def _list(self, key: str, each: Stated) -> list[str]:
        value = each.value
        if value is None:
            return []
        if isinstance(value, str):
            value = value.split(",") if "," in value else [value]
        if not isinstance(value, list):
            raise BadInput(each.origin, f"{key} is no list")
        return [text for item in value if (text := self._text(key, each, item))]

    def _text(self, key: str, each: Stated, value: Any) -> str:
        """The text with variables filled in, as conda does; one that is not set stays as it is."""
        if isinstance(value, (dict, list)) or value is None:
            raise BadInput(each.origin, f"{key} is no text")
        return _VARIABLE.sub(self._variable, str(value).strip())

    def _variable(self, match: re.Match[str]) -> str:
        return self._environ.get(match["braced"] or match["plain"], match[0])


def read_conda_settings(
    environ: Mapping[str, str], home: Path, *, read: ReadText | None = None, **places: Any,
) -> CondaSettings:
    """The settings in force on this machine. Raises BadInput for a file that makes no sense."""
    from stackfix.sources.conda_files import read_stated
    from stackfix.sources.settings_files import read_text

    return conda_settings(read_stated(environ, home, read_text if read is None else read, **places), environ)
