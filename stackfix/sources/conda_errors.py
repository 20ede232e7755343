"""What can go wrong with a channel, told without logins, tokens and paths."""

from __future__ import annotations

import re

from stackfix.errors import Unreachable

_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@")
_TOKEN = re.compile(r"/t/[^/\s'\"]+(?=/)")
_URL = re.compile(r" for url \([^)]*\)| \(os error -?\d+\)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"()]+")
_STATUS = re.compile(r"HTTP status \w+ error \((?P<status>\d{3}[^)]*)\)")
_TRY = "try again later, or take the bundled records with --offline"
HINT = "report it to whoever runs the channel, or name another with --channel"
_LOGIN_HINT = "put the login into ~/.netrc or .condarc, or store it with `pixi auth login`"


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


def bad_channel(name: str, fault: Exception) -> BadChannel:
    """The error about what a channel answered."""
    text = str(fault)
    status = _STATUS.search(text)
    if "could not find subdir" in text:
        what = f" ({status['status']})" if status else ""
        return BadChannel(name, f"has no noarch/repodata.json{what}: it is no conda channel",
                          "check its name, address or path")
    if status is not None and status["status"][:3] in {"401", "403", "407"}:
        return BadChannel(name, f"asks for a login ({status['status']})", _LOGIN_HINT)
    if status is not None:
        return BadChannel(name, f"answers {status['status']}", _TRY)
    if "invalid peer certificate" in text:
        return BadChannel(name, f"its certificate is not trusted ({last_cause(fault).rpartition(': ')[2]})",
                          "name the authority's file in ssl_verify of .condarc, or in SSL_CERT_FILE")
    if "timed out" in text or "reading a body" in text:
        return BadChannel(name, f"does not answer to the end ({last_cause(fault)})", _TRY)
    return BadChannel(name, f"its repodata cannot be read ({last_cause(fault)})", HINT)


def endless(name: str, seconds: float) -> BadChannel:
    """The error about a channel that went on answering."""
    return BadChannel(name, f"did not answer to the end within {seconds:.0f} s",
                      f"raise remote_read_timeout_secs in .condarc, {_TRY.partition(', ')[2]}")
