"""The gateway of py-rattler: what channels have now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.errors import Unreachable
from stackfix.sources.conda_loop import run
from stackfix.sources.conda_names import Place

if TYPE_CHECKING:
    from rattler import Gateway, RepoDataRecord


class Live:
    """One gateway, made when it is first needed."""

    def __init__(self, cache_dir: Path, *, offline: bool) -> None:
        self._cache_dir, self._offline = cache_dir, offline
        self._gateway: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        if self._gateway is None:
            from rattler import Gateway

            self._gateway = Gateway(cache_dir=self._cache_dir / "conda-repodata-v1")
        return self._gateway

    def channel(self, place: Place) -> list[object]:
        """What rattler calls the channel."""
        from rattler import Channel

        return [Channel(place.fetch)]

    def reason_against(self, place: Place, platform: str) -> str | None:
        """Why the channel cannot be reached, or None where it was."""
        if place.fetch.startswith("file:"):
            return None
        if self._offline:
            return "--offline"
        from rattler.exceptions import GatewayError

        try:
            self.query(self.channel(place), platform, "python")
        except GatewayError as fault:
            return f"{place.channel.name} cannot be reached: {str(fault).rpartition('Caused by: ')[2]}"
        return None

    def query(self, sources: list[Any], platform: str, name: str) -> list[RepoDataRecord]:
        """All records of one name."""
        found = run(self.gateway.query(sources, [platform, "noarch"], [name], recursive=False,  # type: ignore[list-item]
                                       channel_relations="disabled"))
        return [record for records in found for record in records]


def unreadable(place: Place, fault: Exception) -> Unreachable:
    """The error about a channel whose answer cannot be used."""
    return Unreachable(place.channel.name, str(fault))
