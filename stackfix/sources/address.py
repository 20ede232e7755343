"""Web addresses: taken apart for a request, shown without secrets."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from stackfix.quick import dataclass, field

_SAFE = "/?:@!$&'()*+,;=-._~%[]"  # what RFC 3986 lets stand in a path or query; all else is percent-encoded
_BAD_HOST = re.compile(r"[\s/?#@\\\x00-\x20\x7f]")
_LONGEST_HOST = 253               # RFC 1035
# An absolute address that nothing need be done to, without user, query and fragment: index pages list thousands.
_PLAIN = re.compile(r"https?://[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?/[A-Za-z0-9/._~%+!$&'()*,;=:-]*")
_LOGIN = re.compile(r":(?!//)[^@]*@")
UNREADABLE = "an address that cannot be read"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One http or https address. `target` goes into the request line as it is."""

    scheme: str
    host: str                       # lower case, ASCII
    port: int
    target: str                     # path and query, percent-encoded, starting with "/"
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def netloc(self) -> str:
        """Host as the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_address(url: str) -> Address:
    """`url` taken apart. Raises ValueError, with a reason fit to be shown, for what is no http(s) address."""
    if _PLAIN.fullmatch(url):           # nothing to unquote or to refuse: in a tenth of the time
        scheme, _, rest = url.partition("://")
        netloc, _, path = rest.partition("/")
        name, _, number = netloc.partition(":")
        return Address(scheme=scheme, host=name, port=int(number) if number else _PORTS[scheme], target=f"/{path}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is no valid address") from None
    if parts.scheme not in _PORTS:
        raise ValueError(f"has the scheme {parts.scheme!r}; only http and https are used" if parts.scheme
                         else "has no scheme; it must start with https:// or http://")
    host = ascii_host(parts.hostname or "")
    target = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        target += "?" + quote(parts.query, safe=_SAFE)
    return Address(scheme=parts.scheme, host=host, port=port or _PORTS[parts.scheme], target=target,
                   user=None if parts.username is None else unquote(parts.username),
                   password=None if parts.password is None else unquote(parts.password))


def ascii_host(host: str) -> str:
    """`host` as it goes on the wire. Raises ValueError for an empty or impossible one."""
    if not host or _BAD_HOST.search(host) or len(host) > _LONGEST_HOST:
        raise ValueError("names no valid host")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError("names no valid host") from None


def without_credentials(url: str) -> str:
    """`url` without user, password and fragment."""
    if _PLAIN.fullmatch(url):
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def base_of(url: str) -> str:
    """The address that links of a page are relative to: without credentials, fragment, and query (it may sign)."""
    if _PLAIN.fullmatch(url):
        return url
    return urlunsplit(urlsplit(without_credentials(url))._replace(query=""))


def shown(url: str) -> str:
    """`url` fit for a message: no user, password, query (it may hold a signature) or fragment; never raises."""
    try:
        parts = urlsplit(url)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        text = urlunsplit(bare) if parts.netloc else url.partition("#")[0].partition("?")[0]
        if "@" in url and not (parts.netloc and _has_port(parts)) and (parts.scheme != "file" or _LOGIN.search(text)):
            text = UNREADABLE       # a login that its own "/", "?" or "#" cuts in two, or that has no "//" before it
    except ValueError:
        text = UNREADABLE
    return "".join(letter if letter.isprintable() else "?" for letter in text[:500])


def _has_port(parts: SplitResult) -> bool:
    """Whether what stands for the port is one, or nothing does."""
    try:
        return parts.port is None or parts.port >= 0
    except ValueError:
        return False


def resolve_link(base: str, link: str) -> str:
    """Absolute http(s) address of `link` on the page at `base`, without credentials. Raises ValueError."""
    if _PLAIN.fullmatch(link):
        return link
    try:
        url = without_credentials(urljoin(base, link.strip()))
    except ValueError:
        raise ValueError("is no valid address") from None
    parse_address(url)
    return url
