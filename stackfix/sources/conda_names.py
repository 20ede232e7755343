"""Channels by the names that people give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from stackfix.conda.records import Channel
from stackfix.errors import BadInput
from stackfix.sources.address import without_credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a channel is read. `fetch` may hold a login or a token and goes to rattler alone."""

    channel: Channel
    fetch: str = field(repr=False)
    bundled: str | None = None      # the channel of the snapshot whose records stand in


class Places:
    """Channels by name or address, each always the same."""

    def __init__(self, bases: Mapping[str, str], home: Path) -> None:
        self._bases, self._home = bases, home
        self._by_url: dict[str, Place] = {}

    def place(self, text: str, origin: str) -> Place:
        """The channel that `text` names. Raises BadInput."""
        address = self._bases.get(text) or (text if "://" in text else None)
        if text.startswith(("~/", "/")):
            address = (self._home / text.removeprefix("~/")).as_uri()
        if address is None:
            raise BadInput(f"{origin} {text}", "is no channel that is known here", "give its address")
        address = address.rstrip("/")
        if urlsplit(address).scheme not in {"http", "https", "file"}:
            raise BadInput(f"{origin} {without_credentials(address)}", "is no http, https or file address")
        public = without_credentials(address)
        bundled = next((name for name, base in self._bases.items() if base.rstrip("/") == public), None)
        place = Place(channel=Channel(name=bundled or public, url=public), fetch=address, bundled=bundled)
        return self._by_url.setdefault(public, place)

    def of(self, channel: Channel) -> Place:
        """The place of a channel that this made, or of one read from a lockfile."""
        return self._by_url.get(channel.url) or self.place(channel.url, "channel")
