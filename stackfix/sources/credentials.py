"""Who we are to which server. A credential goes to the server it was given for and to no other."""

from __future__ import annotations

from stackfix.sources.address import Address, parse_address
from stackfix.sources.connect import basic
from stackfix.sources.records import IndexSettings


class Credentials:
    """Authorization headers by server, from the indexes' own addresses, then netrc; tokens are added by name."""

    def __init__(self, settings: IndexSettings) -> None:
        self._by_origin: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
        self._by_host = {host: basic(user, password) for host, user, password in settings.netrc}
        for url in settings.indexes:
            self.learn(url)

    def learn(self, url: str) -> None:
        """Remember the credentials in `url` for its server, below its path first."""
        try:
            address = parse_address(url)
        except ValueError:
            return
        if address.user is not None:
            self._add(address, basic(address.user, address.password or ""))

    def give_token(self, url: str, token: str) -> None:
        """Use `token` below `url`, and nowhere else."""
        self._add(parse_address(url), f"Bearer {token}")

    def header_for(self, address: Address) -> str | None:
        """Value of the Authorization header for a request to `address`, if any."""
        given = self._by_origin.get(address.origin, ())
        path = address.target.partition("?")[0]
        for prefix, header in given:
            if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
                return header
        for _, header in given:
            if header.startswith("Basic "):  # files often lie beside the index, not below it; pip and uv do the same
                return header
        return self._by_host.get(address.host)

    def _add(self, address: Address, header: str) -> None:
        known = self._by_origin.setdefault(address.origin, [])
        known.append((address.target.partition("?")[0], header))
        known.sort(key=lambda item: -len(item[0]))
