"""Sockets, connected: straight or through a proxy, plain or TLS."""

from __future__ import annotations

import socket
import threading
from binascii import b2a_base64
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import BadInput
from stackfix.sources.address import Address, parse_address, shown
from stackfix.sources.records import IndexSettings
from stackfix.sources.wire import OK, Socket, Stream, WireFault, plain, read_head, render_request

if TYPE_CHECKING:
    import ssl


_OURSELVES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"))
_ABOUT_MACHINES = frozenset(("fd00:ec2::254", "100.100.100.200", "168.63.129.16"))    # beside 169.254.169.254


class CannotConnect(Exception):
    """No connection. `final`: trying again cannot help (an untrusted certificate, a proxy that says no)."""

    def __init__(self, reason: str, *, final: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.final, self.hint = reason, final, hint


class Dialer:
    """Opens connections as the settings say. Used from many threads."""

    def __init__(self, settings: IndexSettings, connect_timeout: float) -> None:
        self._settings, self._timeout = settings, connect_timeout
        self._lock = threading.Lock()
        self._contexts: dict[str | None, ssl.SSLContext] = {}
        self._known = hosts_of(settings)

    def proxy_for(self, address: Address) -> Address | None:
        """The proxy that a request to `address` goes through. Raises BadInput for one that cannot be used."""
        proxies = dict(self._settings.proxies)
        url = proxies.get(address.scheme) or proxies.get("all")
        if url is None or bypasses_proxy(address.host, address.port, self._settings.no_proxy):
            return None
        return parse_proxy(url)

    def dial(self, address: Address, proxy: Address | None, deadline: float) -> Socket:
        """A socket on which `address` can be asked. Raises CannotConnect."""
        first = proxy or address
        sock = self._tcp(first.host, first.port)
        try:
            if address.scheme == "https":
                if proxy is not None:
                    open_tunnel(Stream(sock, self._timeout, deadline), address, proxy)
                return self._tls(sock, address.host)
        except WireFault as fault:
            sock.close()
            raise CannotConnect(fault.reason) from None
        except BaseException:
            sock.close()
            raise
        return sock

    def _tcp(self, host: str, port: int) -> socket.socket:
        try:
            sock = self._connected(host, port)
        except TimeoutError:
            raise CannotConnect(f"no connection to {host} within {self._timeout:g} s") from None
        except socket.gaierror as fault:
            raise CannotConnect(f"the host name {host} cannot be resolved ({plain(fault)})") from None
        except (OSError, UnicodeError) as fault:
            reason = plain(fault) if isinstance(fault, OSError) else "invalid name"
            raise CannotConnect(f"no connection to {host}:{port} ({reason})") from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _connected(self, host: str, port: int) -> socket.socket:
        """A socket to the first address of the host that takes it. Raises OSError, or CannotConnect for some addresses.

        Not socket.create_connection: names are judged by where they lead, before anything is asked there.
        """
        problem: OSError | None = None
        name = host.encode("ascii")         # it is ASCII: of a str, Python imports the tables of all other letters
        for family, kind, protocol, _, place in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
            if is_of_the_machine(str(place[0])):
                raise CannotConnect(f"{host} leads to {place[0]}, where machines ask about themselves", final=True,
                                    hint="no index is there: whoever sent us there is not to be trusted")
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self._timeout)
                sock.connect(place)
            except OSError as fault:
                sock.close()
                problem = fault
            else:
                return sock
        raise problem or OSError("no address")

    def _tls(self, sock: socket.socket, host: str) -> Socket:
        import ssl

        with self._lock:
            own = self._settings.client_cert if host in self._known else None
            context = self._contexts.get(own)
            if context is None:
                context = self._contexts[own] = tls_context(self._settings.cert, own)
        sock.settimeout(self._timeout)
        try:
            return context.wrap_socket(sock, server_hostname=host)
        except ssl.SSLCertVerificationError as fault:
            raise CannotConnect(f"its certificate is not trusted ({fault.verify_message})", final=True,
                                hint="name the right CA bundle in SSL_CERT_FILE or PIP_CERT") from None
        except TimeoutError:
            raise CannotConnect(f"no TLS handshake within {self._timeout:g} s") from None
        except OSError as fault:
            reason = getattr(fault, "reason", None) or plain(fault)
            raise CannotConnect(f"the TLS handshake failed ({reason})") from None


def hosts_of(settings: IndexSettings) -> frozenset[str]:
    """The hosts of the configured indexes: who we are is shown to no other."""
    found: set[str] = set()
    for url in (*settings.indexes, *(pin.url for pin in settings.pins if pin.url is not None)):
        with suppress(ValueError):
            found.add(parse_address(url).host)
    return frozenset(found)


def tls_context(cert: str | None, client_cert: str | None = None) -> ssl.SSLContext:
    """Settings for TLS: certificates are always verified, against `cert` (file or folder) or what the system trusts.

    `client_cert`: a PEM file with the certificate and the key that tell a server who we are.
    """
    context = _verifying(cert)
    if client_cert is not None:
        try:
            context.load_cert_chain(client_cert, password="")       # an encrypted key is refused, and nobody is asked
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "reason", None) or (plain(fault) if isinstance(fault, OSError) else "not a path")
            raise BadInput(f"client certificate {client_cert}", f"cannot be used ({reason})",
                           "name a PEM file with the certificate and its key, not encrypted") from None
    return context


def _verifying(cert: str | None) -> ssl.SSLContext:
    import ssl

    if cert is None:
        context = ssl.create_default_context()
        known = ssl.get_default_verify_paths()
        if not known.cafile and not known.capath and not context.cert_store_stats()["x509_ca"]:
            import certifi  # a Python that was built to look for certificates where this machine has none

            context.load_verify_locations(cafile=certifi.where())
        return context
    try:
        if Path(cert).is_dir():
            return ssl.create_default_context(capath=cert)
        return ssl.create_default_context(cafile=cert)
    except (OSError, ValueError) as fault:  # ssl.SSLError is an OSError
        reason = plain(fault) if isinstance(fault, OSError) else "not a path"
        raise BadInput(f"CA bundle {cert}", f"cannot be used ({reason})", "correct SSL_CERT_FILE or PIP_CERT") from None


def open_tunnel(stream: Stream, address: Address, proxy: Address) -> None:
    """Have `proxy` connect the stream to `address` (RFC 9110, section 9.3.6). Raises CannotConnect or WireFault."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    target = f"{host}:{address.port}"
    stream.send(render_request("CONNECT", target, {"Host": target, **proxy_headers(proxy)}))
    head = read_head(stream, "CONNECT")
    if head.status != OK:
        refused = head.status in (401, 403, 407)
        raise CannotConnect(f"the proxy {proxy.netloc} answered {head.status} to CONNECT", final=refused,
                            hint="check the proxy's address and credentials (HTTPS_PROXY, ALL_PROXY)")
    if not stream.drained():
        raise CannotConnect(f"the proxy {proxy.netloc} sent more than its answer", final=True)


def proxy_headers(proxy: Address) -> dict[str, str]:
    """What names us to the proxy."""
    if proxy.user is None:
        return {}
    return {"Proxy-Authorization": basic(proxy.user, proxy.password or "")}


def basic(user: str, password: str) -> str:
    """Value of an Authorization header (RFC 7617)."""
    return "Basic " + b2a_base64(f"{user}:{password}".encode(), newline=False).decode("ascii")


def parse_proxy(url: str) -> Address:
    """Address of an HTTP proxy. Raises BadInput for a kind of proxy that cannot be used."""
    text = url if "://" in url else f"http://{url}"
    scheme = text.partition("://")[0].lower()
    if scheme.startswith("socks"):
        raise BadInput(f"proxy {shown(text)}", "SOCKS proxies are not supported",
                       "use an HTTP proxy, or list the host in NO_PROXY")
    if scheme == "https":
        raise BadInput(f"proxy {shown(text)}", "proxies that are themselves spoken to over TLS are not supported",
                       "use the http:// address of the proxy, or list the host in NO_PROXY")
    try:
        return parse_address(text)
    except ValueError as fault:
        raise BadInput(f"proxy {shown(text)}", str(fault), "correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY") from None


def is_of_the_machine(address: str) -> bool:
    """Whether an IP address is link-local, or where clouds tell a machine about itself: no index is there."""
    bare = address.lower().removeprefix("::ffff:")
    return bare.startswith(("169.254.", "fe8", "fe9", "fea", "feb")) or bare in _ABOUT_MACHINES


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or number, as far as that can be told without asking."""
    bare = host.lower().rstrip(".")
    return bare in _OURSELVES or bare.endswith(".localhost") or _is_loopback_number(bare)


def leads_to_loopback(host: str) -> bool:
    """Whether a host is this machine by any of the addresses that its name has."""
    if is_loopback(host):
        return True
    try:
        return any(_is_loopback_number(str(found[4][0])) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False            # there is nobody to connect to


def _is_loopback_number(host: str) -> bool:
    """Of an IP address in any of its forms: 127.1, 0x7f000001 and 2130706433 are 127.0.0.1."""
    import ipaddress

    try:
        number: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            number = ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return False
    inner = getattr(number, "ipv4_mapped", None) or number
    return inner.is_loopback or inner.is_unspecified or (inner.version == 4 and inner.packed[0] == 0)


def bypasses_proxy(host: str, port: int, no_proxy: str | None) -> bool:
    """Whether NO_PROXY names `host`: by name, by domain, by address block, with or without a port, or "*"."""
    for entry in (no_proxy or "").replace(" ", ",").split(","):
        entry = entry.strip().lower()  # noqa: PLW2901
        name, _, wanted_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if not name or (wanted_port and wanted_port != str(port)):
            continue
        bare = name.lstrip("*").lstrip(".").strip("[]")
        if name == "*" or host == bare or (bare and host.endswith("." + bare)) or _in_block(host, bare):
            return True
    return False


def _in_block(host: str, block: str) -> bool:
    if "/" not in block:
        return False
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(block, strict=False)
    except ValueError:
        return False
