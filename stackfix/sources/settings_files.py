"""What settings are read from: files of text, netrc, the variables that name proxies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISFIFO

from stackfix.errors import BadInput

LARGEST = 4 * 1024 * 1024           # bytes of a settings file


def read_text(path: Path) -> str | None:
    """The text of a settings file, None where there is none. Raises BadInput for one that cannot be read."""
    try:
        raw = _read_bytes(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise BadInput(str(path), f"cannot be read ({reason})") from None
    if len(raw) > LARGEST:
        raise BadInput(str(path), f"is no settings file: it has more than {LARGEST} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(str(path), "cannot be read (not UTF-8)") from None
    if "\0" in text:
        raise BadInput(str(path), "is no text: it has NUL bytes")
    return text


def _read_bytes(path: Path) -> bytes:
    """At most one byte more than a settings file may have. Never waits for whoever writes into a pipe."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as stream:
        if S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is a pipe")
        return stream.read(LARGEST + 1) or b""      # None: a terminal or a socket that has nothing to say


def read_proxies(environ: Mapping[str, str], from_pip: str | None) -> tuple[tuple[str, str], ...]:
    """Proxies by scheme: pip's own setting for both, else HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, lower case first."""
    if from_pip:
        return (("http", from_pip), ("https", from_pip))
    found: list[tuple[str, str]] = []
    for scheme in ("http", "https", "all"):
        url = environ.get(f"{scheme}_proxy")
        if url is None and not (scheme == "http" and "REQUEST_METHOD" in environ):  # a CGI header, not a setting
            url = environ.get(f"{scheme.upper()}_PROXY")
        if url:
            found.append((scheme, url))
    return tuple(found)


def netrc_places(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Where a netrc may be: the first that is there counts."""
    named = environ.get("NETRC")
    return (Path(named),) if named else (home / ".netrc", home / "_netrc")


def read_netrc(environ: Mapping[str, str], home: Path) -> tuple[tuple[tuple[str, str, str], ...], tuple[str, ...]]:
    """(host, user, password) from NETRC or ~/.netrc, and a note when it cannot be read.

    Its `default` entry is left out: it would go to every server that an index page names.
    """
    path = next((place for place in netrc_places(environ, home) if environ.get("NETRC") or place.exists()), None)
    if path is None or not path.is_file():
        return (), ()
    import netrc

    try:
        hosts = netrc.netrc(os.fspath(path)).hosts
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError) as fault:
        # not the parser's words: they quote what it stumbled over, which may be part of a password
        reason = "cannot be read"
        if isinstance(fault, netrc.NetrcParseError):
            reason = f"makes no sense at line {fault.lineno} or before"
        return (), (f"{path}: {reason}",)
    return tuple((host.lower(), login or "", password or "") for host, (login, _, password) in hosts.items()
                 if host != "default"), ()
