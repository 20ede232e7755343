"""Whether anybody listens where a channel is: asked before rattler is, whose own attempts take minutes to fail."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from stackfix.sources.address import Address, parse_address
from stackfix.sources.conda_names import Place
from stackfix.sources.conda_settings import CondaSettings
from stackfix.sources.wire import plain


class Reach:
    """Tries a host once."""

    def __init__(self, settings: CondaSettings, environ: Mapping[str, str]) -> None:
        from stackfix.sources.settings_files import read_proxies

        self._timeout = settings.connect_timeout
        self._proxies = dict(read_proxies(environ, None)) | dict(settings.proxies)
        self._no_proxy = environ.get("no_proxy") or environ.get("NO_PROXY") or None
        self._refusals: dict[tuple[str, int], str | None] = {}

    async def refusal(self, place: Place) -> str | None:
        """Why nobody can be asked for the channel; None where somebody listens, or where only trying can tell."""
        reasons = [await self._refusal(url) for url in (place.mirrors or (place.fetch,))]
        return None if None in reasons else reasons[0]

    async def _refusal(self, url: str) -> str | None:
        try:
            address = parse_address(url)
        except ValueError:
            return None
        if self._goes_through_proxy(address):
            return None
        key = address.host, address.port
        if key not in self._refusals:
            self._refusals[key] = await asyncio.to_thread(self._try, *key)
        return self._refusals[key]

    def _goes_through_proxy(self, address: Address) -> bool:
        from stackfix.sources.connect import bypasses_proxy

        proxy = self._proxies.get(address.scheme) or self._proxies.get("all")
        return proxy is not None and not bypasses_proxy(address.host, address.port, self._no_proxy)

    def _try(self, host: str, port: int) -> str | None:
        try:
            socket.create_connection((host, port), timeout=self._timeout).close()
        except TimeoutError:
            return f"no connection within {self._timeout:g} s"
        except socket.gaierror:
            return "the host name cannot be resolved"
        except (OSError, UnicodeError) as fault:
            return plain(fault) if isinstance(fault, OSError) else "the host name is none"
        return None
