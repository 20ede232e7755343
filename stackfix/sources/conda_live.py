"""What channels have now, through py-rattler's gateway; and whether they can be reached at all."""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stackfix.errors import BadInput
from stackfix.sources.conda_errors import (
    ChannelUnreachable,
    bad_channel,
    endless,
    is_out_of_reach,
    last_cause,
    without_secrets,
)
from stackfix.sources.conda_kept import KEPT, Kept
from stackfix.sources.conda_loop import anew, run
from stackfix.sources.conda_names import Place
from stackfix.sources.conda_reach import Reach
from stackfix.sources.conda_settings import CondaSettings

if TYPE_CHECKING:
    from rattler import Channel, Gateway, RepoDataRecord
    from rattler.networking import Client

Answer = TypeVar("Answer")
_READS = 5                          # read timeouts that one whole answer may take: conda-forge's is 50 MB
_GRACE = 1.0                        # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Whether a channel answered. `reason` says why nobody did."""

    place: Place
    reason: str | None


class Live:
    """One gateway, made when it is first needed."""

    def __init__(self, settings: CondaSettings, environ: Mapping[str, str], cache_dir: Path, *, offline: str | None,
                 progress: bool = False, agent: str = "stackfix") -> None:
        """`offline`: where it is said that nothing may be asked."""
        self._settings, self._environ, self._agent = settings, environ, agent
        self.offline, self._progress = offline, progress
        self._gateway: Gateway | None = None
        self._making = threading.Lock()
        self._mirrors: dict[str, list[str]] = {}
        self._reach = Reach(settings, environ)
        self._kept = Kept(cache_dir / KEPT, offline=offline is not None)

    def expect(self, places: Sequence[Place]) -> None:
        """Take the mirrors of these channels into account, from now on."""
        found = {place.channel.url: list(place.mirrors) for place in places if place.mirrors}
        if not found.keys() <= self._mirrors.keys():
            self._mirrors |= found
            self._gateway = None

    @property
    def gateway(self) -> Gateway:
        """Raises BadInput where rattler's own store of logins cannot be read."""
        with self._making:
            if self._gateway is None:
                self._gateway = self._made()
            return self._gateway

    def _made(self) -> Gateway:
        from rattler import Gateway
        from rattler.repo_data.gateway import SourceConfig

        action = "force-cache-only" if self.offline is not None else "cache-or-fetch"
        return Gateway(cache_dir=self._kept.folder(), client=self.client(seconds=self._longest),
                       default_config=SourceConfig(cache_action=action),  # type: ignore[arg-type]
                       show_progress=self._progress)

    def close(self) -> None:
        """Close what was kept to others, and remove what could not be kept."""
        self._kept.close()

    def channel(self, place: Place) -> Channel:
        """What rattler calls the channel. Raises BadInput."""
        from rattler import Channel
        from rattler.exceptions import InvalidChannelError

        try:
            return Channel(place.fetch)
        except InvalidChannelError as fault:
            reason = without_secrets(str(fault).splitlines()[-1])
            raise BadInput(place.channel.name, f"is no channel ({reason})") from None

    def reach(self, places: Sequence[Place], platform: str) -> tuple[Reached, ...]:
        """Whether each of these answers, asked all at once. Raises BadChannel for an answer that cannot be used."""
        self.expect(places)
        return run(self._reached(places, platform))

    def query(self, place: Place, sources: Sequence[Any], platform: str, name: str) -> list[RepoDataRecord]:
        """All records of one name. Raises BadChannel."""
        from rattler.exceptions import GatewayError

        try:
            return run(self._limited(place, self._query(sources, platform, name)))
        except GatewayError as fault:
            raise bad_channel(place, fault) from None

    async def _reached(self, places: Sequence[Place], platform: str) -> tuple[Reached, ...]:
        reasons = await asyncio.gather(*(self.reason_against(place, platform) for place in places))
        return tuple(Reached(place=place, reason=reason) for place, reason in zip(places, reasons, strict=True))

    async def reason_against(self, place: Place, platform: str) -> str | None:
        """Why nobody answers for the channel. What is asked brings its repodata, which is needed anyway."""
        from rattler.exceptions import GatewayError

        if not place.fetch.startswith("file:"):
            refused = self.offline or await self._reach.refusal(place)
            if refused is not None and (place.bundled or self.offline is None):
                return refused
        try:
            await self._limited(place, self._query([self.channel(place)], platform, "python"))
        except GatewayError as fault:
            if self.offline is not None and not place.fetch.startswith("file:"):
                raise ChannelUnreachable(
                    place.channel.name, f"is not in the cache, and {self.offline} forbids asking for it",
                    "run once without it") from None
            if is_out_of_reach(fault):
                return last_cause(fault)
            raise bad_channel(place, fault) from None
        return None

    async def _query(self, sources: Sequence[Any], platform: str, name: str) -> list[RepoDataRecord]:
        found = await anew(lambda: self.gateway.query(
            sources, subdirs(platform), [name], recursive=False, channel_relations="disabled"))
        return [record for records in found for record in records]

    async def _limited(self, place: Place, work: Coroutine[Any, Any, Answer]) -> Answer:
        limit = self._longest + _GRACE
        try:
            return await asyncio.wait_for(work, limit)
        except (TimeoutError, asyncio.TimeoutError):
            raise endless(place, limit) from None

    @property
    def _longest(self) -> int:
        """Seconds that one whole answer may take."""
        return max(1, math.ceil(self._settings.read_timeout * _READS))

    def client(self, *, seconds: int) -> Client:
        """rattler's client, which gives one whole answer so many seconds. Raises BadInput for a bad setting."""
        from rattler import Config
        from rattler.exceptions import AuthenticationStorageError
        from rattler.networking import Client

        try:
            config = Config.from_toml(self._config())
            with _authorities(self._settings, self._environ):
                return Client.from_config(config, max_retries=self._settings.retries, user_agent=self._agent,
                                          timeout=seconds)
        except AuthenticationStorageError as fault:
            raise BadInput("rattler's store of logins", without_secrets(str(fault).splitlines()[0]),
                           "correct the file, or set RATTLER_AUTH_FILE to another") from None
        except ValueError as fault:
            reason = without_secrets(str(fault).splitlines()[-1])
            raise BadInput(".condarc", f"mirrored_channels or proxy_servers holds no address ({reason})") from None

    def _config(self) -> str:
        """rattler's configuration, which is TOML."""
        import tomli_w

        document: dict[str, Any] = {"tls-no-verify": self._settings.verify == "false"}
        if self._settings.proxies:
            document["proxy-config"] = dict(self._settings.proxies)
        if self._mirrors:
            document["mirrors"] = self._mirrors
        return tomli_w.dumps(document)


@contextmanager
def _authorities(settings: CondaSettings, environ: Mapping[str, str]) -> Iterator[None]:
    """Have rattler trust the authorities of ssl_verify, or of what conda and pip take them from."""
    named = settings.verify if settings.verify not in {"true", "false"} else None
    if named is not None and not Path(named).exists():
        raise BadInput(f"ssl_verify {named}", "no such file")
    usual = None if environ.get("SSL_CERT_FILE") else environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    path = named or usual
    if path is None:
        yield
        return
    variable = "SSL_CERT_DIR" if Path(path).is_dir() else "SSL_CERT_FILE"
    before = os.environ.get(variable)
    os.environ[variable] = path     # the only way to tell rattler, which reads it as the client is made
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def subdirs(platform: str) -> list[Any]:
    """The subdirs of a channel that hold packages for the platform."""
    return [platform, "noarch"]
