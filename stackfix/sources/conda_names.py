"""Channels by the names that people give them, as conda reads them.

A name is one of custom_multichannels, of custom_channels, of those that matrices/sources.toml names, or it stands
below channel_alias. `defaults` is default_channels. Source: conda's documentation, "Managing channels".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from stackfix.conda.records import Channel
from stackfix.errors import BadInput
from stackfix.sources.address import parse_address, without_credentials
from stackfix.sources.conda_errors import without_secrets
from stackfix.sources.conda_settings import CondaSettings

DEFAULT = "conda-forge"             # whose address tells the default of channel_alias, too
_NAME = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*")
_TOKEN = re.compile(r"/t/[^/]+(?=/|$)")
_PATH = ("/", "./", "../", "~/")
_DEEPEST = 8                        # multichannels inside of multichannels


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a channel is read. `fetch` may hold a login or a token and goes to rattler alone."""

    channel: Channel
    fetch: str = field(repr=False)  # without a slash at its end
    mirrors: tuple[str, ...] = field(default=(), repr=False)
    bundled: str | None = None      # the channel of the snapshot whose records stand in

    @property
    def has_login(self) -> bool:
        """Whether the address has a login or a token."""
        return public_address(self.fetch) != self.fetch


class Places:
    """Channels by name or address, each always the same."""

    def __init__(self, bases: Mapping[str, str], settings: CondaSettings, *, home: Path, folder: Path) -> None:
        """`bases`: the addresses of matrices/sources.toml by name. `folder`: what relative paths are below."""
        self._bases = {name: url.rstrip("/") for name, url in bases.items()}
        self._settings, self._home, self._folder = settings, home, folder
        alias = settings.alias or self._bases[DEFAULT].removesuffix(f"/{DEFAULT}")
        self._alias = (alias if "://" in alias else f"https://{alias}").rstrip("/")
        self._custom = {name: (url if "://" in url else f"https://{url}").rstrip("/") for name, url in settings.custom}
        self._multi = dict(settings.multi)
        self._mirrored = dict(settings.mirrored)
        self._by_url: dict[str, Place] = {}
        self._group_of: dict[str, str] = {}     # by address
        self._check(self._alias, "channel_alias")
        for url in self._custom.values():
            self._check(url, "custom_channels")
        self._denied = {self._public(text) for text in settings.denied}
        self._allowed = {self._public(text) for text in settings.allowed}

    def all_of(self, named: Iterable[tuple[str, str]]) -> tuple[Place, ...]:
        """The channels of (where it is set, name or address), groups taken apart, in order. Raises BadInput."""
        found = [place for origin, text in named for place in self._each(text, origin, 0)]
        return tuple(dict.fromkeys(found))

    def one(self, text: str, origin: str) -> Place:
        """The channel that `text` names. Raises BadInput for a group."""
        found = self._each(text, origin, 0)
        if len(found) != 1:
            raise BadInput(f"{origin} {text}", f"names {len(found)} channels", "name one of them")
        return found[0]

    def of(self, channel: Channel) -> Place:
        """The place of a channel that this made, or of one read from a lockfile."""
        return self._by_url.get(channel.url) or self.one(channel.url, "channel")

    def written(self, place: Place) -> str:
        """What the user wrote for the channel: `defaults` for pkgs/main; its name where it is of no group."""
        return self._group_of.get(place.channel.url, place.channel.name)

    def known(self) -> tuple[Place, ...]:
        """All places so far."""
        return tuple(self._by_url.values())

    def _each(self, text: str, origin: str, depth: int) -> list[Place]:
        group = self._multi.get(text)
        if group is None and text == "defaults":
            own = tuple(name for name in self._bases if name.startswith("pkgs/"))
            group = self._settings.default_channels or own
        if group is None:
            return [self._checked(self._place(text, origin), text, origin)]
        if depth > _DEEPEST:
            raise BadInput(origin, f"custom_multichannels: {text} contains itself")
        found = [place for each in group for place in self._each(each, origin, depth + 1)]
        if depth == 0:
            for place in found:
                self._group_of.setdefault(place.channel.url, text)
        return found

    def _checked(self, place: Place, text: str, origin: str) -> Place:
        denied = place.channel.url in self._denied or (self._allowed and place.channel.url not in self._allowed)
        if denied:
            raise BadInput(f"{origin} {without_secrets(text)}", "is a channel that .condarc forbids")
        return place

    def _place(self, text: str, origin: str) -> Place:
        address = self._address(text, origin)
        public = public_address(address)
        name = self._name(text, public)
        bundled = name if name in self._bases else None
        mirrors = self._mirrored.get(name, ())
        # rattler's mirrors lose a login, and one mirror needs no choice
        fetch = mirrors[0] if mirrors and (len(mirrors) == 1 or any("@" in url for url in mirrors)) else address
        for url in mirrors:
            if urlsplit_scheme(url) != "oci":       # rattler reads these, too
                self._check(url, "mirrored_channels")
        place = Place(channel=Channel(name=name, url=public), fetch=fetch.rstrip("/"), bundled=bundled,
                      mirrors=mirrors if fetch == address else ())
        return self._by_url.setdefault(public, place)

    def _address(self, text: str, origin: str) -> str:
        """The address, with what login it has. Raises BadInput."""
        if text.startswith(_PATH) or text == ".":
            path = self._home / text[2:] if text.startswith("~/") else self._folder / text
            return path.resolve().as_uri()
        if "://" in text:
            self._check(text, origin)
            return text.rstrip("/")
        if not _NAME.fullmatch(text):
            raise BadInput(f"{origin} {without_secrets(text)}", "is neither the name of a channel nor an address")
        parts = text.split("/")
        heads = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        custom = next((head for head in heads if head in self._custom), None)
        if custom is not None:
            return f"{self._custom[custom]}/{text}"
        base = None if self._settings.alias else self._bases.get(text)
        return base or f"{self._alias}/{text}"

    def _name(self, text: str, public: str) -> str:
        """The name of a channel that was given by name or by address."""
        if "://" not in text and not text.startswith(_PATH) and text != ".":
            return text
        known = next((name for name, url in self._bases.items() if url == public), None)
        if known is not None:
            return known
        below = [f"{public_address(self._alias)}/", *(f"{public_address(url)}/" for url in self._custom.values())]
        names = (public.removeprefix(base) for base in below if public.startswith(base))
        return next((name for name in names if _NAME.fullmatch(name)), public)

    def _public(self, text: str) -> str:
        return public_address(self._address(text, ".condarc"))

    def _check(self, url: str, origin: str) -> None:
        """Raise BadInput for what is no address of a channel."""
        shown = f"{origin} {without_secrets(url)}"
        if urlsplit_scheme(url) == "file":
            if urlsplit(url).netloc not in {"", "localhost"}:
                raise BadInput(shown, "names a host, which a file address cannot")
            return
        try:
            parse_address(url)
        except ValueError as fault:
            reason = str(fault).replace("only http and https are used", "only http, https and file are read")
            raise BadInput(shown, reason, "name a channel, or give an https, http or file address") from None


def urlsplit_scheme(url: str) -> str:
    """The scheme in front of an address, in small letters."""
    return url.partition("://")[0].lower()


def public_address(address: str) -> str:
    """The address as it may be written down: without login, token, query and a slash at its end."""
    parts = urlsplit(without_credentials(address))
    if parts.scheme == "file":
        return urlunsplit(parts).rstrip("/")
    return urlunsplit(parts._replace(path=_TOKEN.sub("", parts.path), query="")).rstrip("/")
