"""Where to look, out of options, uv's and pip's settings, and pip's own default.

Each setting is taken from the first of these that states it: options, uv (variables, then the project's settings, the
user's, the machine's), pip (variables, then pip.conf), pip's default. Additional indexes come before the default one,
and the first index that has a project wins for it, as uv does: an additional index can add projects or take them over,
never mix its files in. A project that [tool.uv.sources] pins is looked up on that index alone.

Settings of this machine alone steer no lock: `file:` indexes and paths, find-links, a global constraints file. An index
that is left out is named in `notes`, since projects that it has now come from others; the rest is in `ignored`. What is
no address at all is an error: without it, what is private would be taken from the public index.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from stackfix.errors import BadInput, Unreachable
from stackfix.sources.address import UNREADABLE, parse_address, shown
from stackfix.sources.pip_settings import PipSettings, read_pip_settings
from stackfix.sources.records import IndexSettings
from stackfix.sources.routes import check_pin, has_own_rules, routes_of
from stackfix.sources.settings_files import read_netrc, read_proxies, read_text
from stackfix.sources.uv_settings import UvSettings, read_uv_settings

ReadText = Callable[[Path], str | None]
Named = tuple[str, str]             # (where it is set, address)
_TIMEOUT, _RETRIES = 15.0, 5        # pip's defaults
# What is no folder: it has a scheme (one letter is a drive), or begins with a host's name.
_NO_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|https?/|[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)+(?:[:/]|\Z)")
_LONGEST_REASON = 200
_LOCAL = "holds for this machine alone"
_FLAT = "is flat (a page of links or a folder, and no package index)"


def read_settings(  # noqa: PLR0913 - the options, and the machine they meet
    *, index_url: str | None = None, extra_index_urls: tuple[str, ...] = (), environ: Mapping[str, str], home: Path,
    read: ReadText = read_text, default_index: Callable[[], str] | None = None, platform: str = sys.platform,
    prefix: Path | None = None, project: Path | None = None,
) -> IndexSettings:
    """The settings in force. Raises BadInput for an option or a settings file that makes no sense.

    `prefix` is the environment whose own pip.conf counts (VIRTUAL_ENV, else the running interpreter's), `project` the
    folder whose project's settings of uv count; None: no project's.
    """
    uv = read_uv_settings(environ, home, read, platform, project)
    pip = read_pip_settings(environ, home, read, platform, prefix or Path(environ.get("VIRTUAL_ENV") or sys.prefix))
    left_out: list[str] = []
    indexes = _distinct([*_extras(extra_index_urls, uv, pip, left_out),
                         *_default(index_url, uv, pip, left_out, default_index or pip_default_index)])
    for pin in uv.pins:
        check_pin(pin)
    netrc, fault = read_netrc(environ, home)
    return IndexSettings(
        indexes=tuple(url for _, url in indexes), origin=tuple(origin for origin, _ in indexes),
        ignored=tuple(dict.fromkeys([*uv.ignored, *pip.ignored, *fault])),
        cert=uv.cert or pip.cert or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or None,
        proxies=read_proxies(environ, pip.proxy), no_proxy=environ.get("no_proxy") or environ.get("NO_PROXY") or None,
        timeout=uv.timeout or pip.timeout or _TIMEOUT,
        retries=uv.retries if uv.retries is not None else pip.retries if pip.retries is not None else _RETRIES,
        netrc=netrc, release_token=environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or None,
        client_cert=environ.get("SSL_CLIENT_CERT") or pip.client_cert, pins=uv.pins,
        routes=routes_of(tuple(pin for pin in uv.pins if not has_own_rules(pin))), policies=uv.policies,
        keyring="uv" if uv.keyring else "pip" if pip.keyring and uv.keyring is None else None,
        uploaded_before=(*uv.limits, *pip.limits), constraints=uv.constraints,
        notes=tuple(dict.fromkeys([*uv.notes, *left_out])))


def pip_default_index() -> str:
    """The index that pip asks when nothing is set, read from pip itself."""
    try:
        from pip._internal.models.index import PyPI

        return str(PyPI.simple_url)
    except (ImportError, AttributeError):
        raise Unreachable("the default index", "this version of pip does not say which it is",
                          "name one with --index-url, or install another version of pip") from None


def _default(option: str | None, uv: UvSettings, pip: PipSettings, left_out: list[str],
             default_index: Callable[[], str]) -> list[Named]:
    """The default index; none where uv's settings keep it for pinned projects."""
    if option is not None:
        return [("--index-url", _option("--index-url", option))]
    left_out += [_left_out(named, _FLAT) for named in uv.flat_default]
    if uv.no_default:
        return []
    for named in (*uv.default, *pip.default):
        if _usable(named, "the default index", left_out):
            return [named]
    return [("pip's default", default_index())]


def _extras(options: tuple[str, ...], uv: UvSettings, pip: PipSettings, left_out: list[str]) -> list[Named]:
    if options:
        return [("--extra-index-url", _option("--extra-index-url", url)) for url in options]
    left_out += [_left_out(named, _FLAT) for named in uv.flat_extra]
    found = [named for named in uv.extra if _usable(named, "the additional index", left_out)]
    return found or [named for named in pip.extra if _usable(named, "the additional index", left_out)]


def _option(flag: str, url: str) -> str:
    """`url` of an option. Raises BadInput for what is no web address: it may hold for this machine alone."""
    try:
        parse_address(url)
    except ValueError as fault:
        reason = str(fault)
        if url.startswith("file:") or "://" not in url:
            reason = "is a path of this machine, and a lock must hold elsewhere"
        raise BadInput(f"{flag} {shown(url)}", reason, "give an https:// or http:// address") from None
    return url


def _usable(named: Named, what: str, left_out: list[str]) -> bool:
    """Whether it is a web address; one of this machine is noted. Raises BadInput for what is neither."""
    origin, url = named
    try:
        parse_address(url)
    except ValueError as fault:
        if not _is_local(url):
            reason = str(fault)[:_LONGEST_REASON] if url.strip() else "has no address"
            address = shown(url).replace(UNREADABLE, "")
            raise BadInput(f"{origin}: {what} {address}".rstrip(), reason, "correct it there: write https://… or"
                           " http://…; a folder begins with ./ or /, and is left out") from None
        left_out.append(_left_out(named, _LOCAL))
        return False
    return True


def _is_local(url: str) -> bool:
    """Whether it names a file or folder of this machine."""
    return url[:5].lower() == "file:" or (bool(url.strip()) and _NO_PATH.match(url) is None)


def _left_out(named: Named, why: str) -> str:
    origin, url = named
    return (f"the index {shown(url)} ({origin}) was left out, since it {why}: a project that it has was taken from"
            " another index, or from none")


def _distinct(indexes: list[Named]) -> list[Named]:
    found: dict[str, Named] = {}
    for origin, text in indexes:
        url = text.partition("#")[0].rstrip("/")
        found.setdefault(url, (origin, url))
    return list(found.values())
