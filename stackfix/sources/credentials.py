"""Who we are to which server. A credential goes to the server it was given for and to no other."""

from __future__ import annotations

import threading

from stackfix.sources.address import Address, parse_address, without_credentials
from stackfix.sources.connect import basic
from stackfix.sources.keyring import PIP, Keyring
from stackfix.sources.records import IndexPolicy, IndexSettings


class Credentials:
    """Authorization headers by server, from the indexes' own addresses, netrc and keyring; tokens are added by name."""

    def __init__(self, settings: IndexSettings) -> None:
        self._by_origin: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
        self._netrc = {host: (user, password) for host, user, password in settings.netrc}
        self._by_host = {host: basic(user, password) for host, user, password in settings.netrc}
        self._named: set[str] = set()           # hosts that settings or options name themselves
        self._policies = tuple((parse_address(policy.base), policy) for policy in settings.policies
                               if _is_address(policy.base))
        self._lock = threading.Lock()
        self._keyring_wanted = settings.keyring
        self._keyring: Keyring | None = None
        self._unfinished: dict[str, Address] = {}       # indexes whose password, or whole login, is still to be found
        self._anonymous: dict[str, Address] = {}        # indexes for which pip would ask once they refuse an answer
        for url in (*settings.indexes, *(pin.url for pin in settings.pins if pin.url is not None)):
            self.learn(url)

    def learn(self, url: str, *, is_index: bool = True) -> None:
        """Remember the credentials in `url` for its server, below its path first.

        Of what is no index the keyring is asked only for the password of a user that is named.
        """
        try:
            address = parse_address(url)
        except ValueError:
            return
        self._named.add(address.host)
        if address.user is None and not is_index:
            return
        policy = self.policy(address)
        if policy is not None and policy.authenticate == "never":
            return
        if address.user is not None and address.password is None and self._completed(url, address):
            return
        if address.user is not None:
            self._add(address, basic(address.user, address.password or ""))
        elif policy is not None and policy.authenticate == "always" and self._keyring_wanted:
            self._unfinished[without_credentials(url)] = address
        elif self._keyring_wanted == PIP:
            self._anonymous[without_credentials(url)] = address

    def give_token(self, url: str, token: str) -> None:
        """Use `token` below `url`, and nowhere else."""
        self._add(parse_address(url), f"Bearer {token}")

    def header_for(self, address: Address) -> str | None:
        """Value of the Authorization header for a request to `address`, if any. May ask the keyring, once an index."""
        policy = self.policy(address)
        if policy is not None and policy.authenticate == "never":
            return None
        if self._unfinished:
            self._finish(address)
        given = self._by_origin.get(address.origin, ())
        path = address.target.partition("?")[0]
        for prefix, header in given:
            if _is_below(path, prefix):
                return header
        for _, header in given:
            if header.startswith("Basic "):  # files often lie beside the index, not below it; pip and uv do the same
                return header
        if any(base.origin == address.origin and each.authenticate == "never" for base, each in self._policies):
            return None     # the files of an index that gets no login
        # Whoever leads us to a host by plain http may be anybody, and whoever answers there, too.
        return self._by_host.get(address.host) if address.scheme == "https" or address.host in self._named else None

    def found_after_refusal(self, address: Address) -> bool:
        """Whether there is a login now for a server that gave no answer without one: pip asks the keyring then."""
        if not any(index.origin == address.origin for index in self._anonymous.values()):
            return self._keyring_wanted == PIP and self.header_for(address) is not None
        with self._lock:
            for url, index in list(self._anonymous.items()):
                if index.origin == address.origin:
                    found = self._open_keyring().login(url, index, None)
                    if found is not None:
                        self._add(index, basic(*found))
                    self._anonymous = {other: each for other, each in self._anonymous.items() if other != url}
        return self.header_for(address) is not None

    def required(self, address: Address) -> bool:
        """Whether `address` is never to be asked without a login."""
        policy = self.policy(address) if self._policies else None
        return policy is not None and policy.authenticate == "always"

    def policy(self, address: Address) -> IndexPolicy | None:
        """What is said of the index that `address` lies below; the longest path counts."""
        below = [(len(base.target), policy) for base, policy in self._policies
                 if base.origin == address.origin and _is_below(address.target.partition("?")[0], base.target)]
        return max(below, key=lambda item: item[0])[1] if below else None

    def _completed(self, url: str, address: Address) -> bool:
        """Whether the password to the address's user is in netrc, or to be asked of the keyring."""
        user, password = self._netrc.get(address.host, (None, None))
        if user == address.user and user is not None and password is not None:
            self._add(address, basic(user, password))
            return True
        if not self._keyring_wanted:
            return False
        self._unfinished[without_credentials(url)] = address
        return True

    def _finish(self, address: Address) -> None:
        """Asks the keyring for the logins of this server's indexes: all requests wait for one answer."""
        with self._lock:
            for url, index in list(self._unfinished.items()):
                if index.origin != address.origin:
                    continue
                found = self._open_keyring().login(url, index, index.user)
                if found is not None:
                    self._add(index, basic(*found))
                elif index.user is not None:            # the user may be a token that needs no password
                    self._add(index, basic(index.user, ""))
                self._unfinished = {other: each for other, each in self._unfinished.items() if other != url}

    def _open_keyring(self) -> Keyring:
        if self._keyring is None:
            self._keyring = Keyring(like=self._keyring_wanted or "")
        return self._keyring

    def _add(self, address: Address, header: str) -> None:
        known = list(self._by_origin.get(address.origin, ()))
        known.append((address.target.partition("?")[0], header))
        known.sort(key=lambda item: -len(item[0]))
        self._by_origin[address.origin] = known         # replaced whole: other threads read it


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def _is_address(url: str) -> bool:
    try:
        parse_address(url)
    except ValueError:
        return False
    return True
