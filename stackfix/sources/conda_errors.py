"""What can go wrong with a channel, told without logins, tokens and paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stackfix.errors import Unreachable

if TYPE_CHECKING:
    from stackfix.sources.conda_names import Place

_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@")
_TOKEN = re.compile(r"/t/[^/\s'\"]+(?=/)")
_URL = re.compile(r" for url \([^)]*\)| \(os error -?\d+\)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"()]+")
_STATUS = re.compile(r"HTTP status \w+ error \((?P<status>\d{3}[^)]*)\)")
_LATER = "try again later"
_BUNDLED = "or take the bundled records with --offline"
HINT = "report it to whoever runs the channel, or name another with --channel"
_LOGIN_HINT = ("put a login or token that it takes into the channel's address in .condarc, or into ~/.netrc, or store"
               " one with `pixi auth login`; channel_settings and add_anaconda_token of .condarc are not followed")
_PROXY_HINT = "put the login into the proxy's address: proxy_servers of .condarc, or HTTPS_PROXY"
_REFUSED = {"401": "asks for a login", "403": "refuses access", "407": "is behind a proxy that asks for a login"}
_WAITED = "a coalesced request failed"      # what rattler says where several ask for the same at once


class ChannelUnreachable(Unreachable):
    """Nobody answered for a channel, and no bundled records stand in for it."""

    reference = "channel-unreachable"


class BadChannel(Unreachable):
    """A channel whose answer cannot be used."""

    reference = "bad-channel"


def without_secrets(text: str) -> str:
    """`text` without the logins and tokens of addresses in it."""
    return _TOKEN.sub("", _LOGIN.sub(lambda match: match["scheme"], text))


def is_out_of_reach(fault: Exception) -> bool:
    """Whether py-rattler's error says that nobody answered, not that the answer is bad."""
    text = str(fault)
    if "invalid peer certificate" in text:
        return False
    return "client error (Connect)" in text or ("error sending request" in text and "timed out" in text)


def last_cause(fault: Exception) -> str:
    """The innermost reason of py-rattler's error, on one line."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    text = _URL.sub("", lines[-1].removeprefix("Caused by: ")) if lines else "no reason is given"
    return _ADDRESS.sub("its address", without_secrets(text))


def has_only_waited(fault: Exception) -> bool:
    """Whether py-rattler's error only says that another question for the same failed, and not why."""
    return _WAITED in str(fault)


def blamed(fault: Exception, places: Sequence[Place]) -> Place | None:
    """The channel that py-rattler's error is about; None where that cannot be told of several."""
    if len(places) == 1:
        return places[0]
    text = without_secrets(str(fault))
    return next((place for place in places if f"{place.channel.url}/" in text), None)


def bad_channel(place: Place, fault: Exception) -> BadChannel:
    """The error about what a channel answered."""
    name, text = place.channel.name, str(fault)
    status = _STATUS.search(text)
    if "could not find subdir" in text:
        what = f" ({status['status']})" if status else ""
        return BadChannel(name, f"has no noarch/repodata.json{what}: it is no conda channel",
                          "check its name, address or path")
    if status is not None:
        return _refused(place, status["status"])
    if "invalid peer certificate" in text:
        return BadChannel(name, f"its certificate is not trusted ({last_cause(fault).rpartition(': ')[2]})",
                          "name the authority's file in ssl_verify of .condarc, or in SSL_CERT_FILE")
    if "timed out" in text or "reading a body" in text:
        return BadChannel(name, f"does not answer to the end ({last_cause(fault)})", again(place))
    return BadChannel(name, f"its repodata cannot be read ({last_cause(fault)})", HINT)


def _refused(place: Place, status: str) -> BadChannel:
    """The error about a status ("403 Forbidden") that is no answer."""
    said = _REFUSED.get(status[:3])
    if said is None:
        failed = ": its server has failed" if status.startswith("5") else ""
        return BadChannel(place.channel.name, f"answers {status}{failed}", again(place))
    of_proxy = status.startswith("407")
    although = " although its address holds a login or token" if place.has_login and not of_proxy else ""
    return BadChannel(place.channel.name, f"{said}{although} ({status})", _PROXY_HINT if of_proxy else _LOGIN_HINT)


def again(place: Place) -> str:
    """What may help against a server that does not work now."""
    return f"{_LATER}, {_BUNDLED}" if place.bundled else _LATER


def endless(place: Place, seconds: float) -> BadChannel:
    """The error about a channel that went on answering."""
    more = f", {_BUNDLED}" if place.bundled else ""
    return BadChannel(place.channel.name, f"did not answer to the end within {seconds:.0f} s",
                      f"raise remote_read_timeout_secs in .condarc{more}")
