"""pip's settings that say where to look: PIP_* variables and pip.conf files, in pip's order of precedence.

Order of files: global, user (old place, then new), environment, PIP_CONFIG_FILE; later ones win. [install] wins over
[global] wherever they stand, and variables win over files (pip's documentation, "Configuration").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import BadInput
from stackfix.quick import dataclass
from stackfix.sources.address import shown
from stackfix.sources.records import UploadLimit
from stackfix.sources.uv_values import number_within

if TYPE_CHECKING:
    import configparser

Named = tuple[str, str]             # (where it is set, value)
_LOCAL = ("find-links", "constraint", "no-index", "trusted-host")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipSettings:
    """What pip is told. Several values for one thing: the first usable one counts."""

    default: tuple[Named, ...]
    extra: tuple[Named, ...]
    ignored: tuple[str, ...]
    cert: str | None
    client_cert: str | None
    proxy: str | None
    timeout: float | None
    retries: int | None
    keyring: bool                   # whether the program `keyring` may be asked for passwords
    limits: tuple[UploadLimit, ...]


def read_pip_settings(environ: Mapping[str, str], home: Path, read: Callable[[Path], str | None], platform: str,
                      prefix: Path) -> PipSettings:
    """Settings of pip in force. Raises BadInput for a file that cannot be parsed."""
    layers: list[dict[str, Named]] = []  # the one that wins first
    variables = {key[4:].lower().replace("_", "-"): (key, value) for key, value in environ.items()
                 if key.startswith("PIP_") and value}
    layers.append(variables)
    files = [(path, parsed) for path in config_files(environ, home, platform, prefix)
             if (parsed := _parsed(path, read)) is not None]
    for section in ("install", "global"):
        for path, parsed in reversed(files):
            if parsed.has_section(section):
                layers.append({key.lower().replace("_", "-"): (f"{path} [{section}]", value)
                               for key, value in parsed.items(section, raw=True) if value})
    first = _first(layers)
    default = [layer[key] for layer in layers for key in ("index-url", "pypi-url") if key in layer]
    extra = first.get("extra-index-url")
    timeout, retries = first.get("timeout") or first.get("default-timeout"), first.get("retries")
    return PipSettings(
        default=tuple((origin, value.strip()) for origin, value in default),
        extra=() if extra is None else tuple((extra[0], url) for url in extra[1].split()),
        ignored=tuple(_ignored(first)), cert=_path(first.get("cert"), home),
        client_cert=_path(first.get("client-cert"), home), proxy=_text(first.get("proxy")),
        timeout=None if timeout is None else _number(timeout, 0.1, 3600.0),
        retries=None if retries is None else int(_number(retries, 0, 20)),
        keyring=_text(first.get("keyring-provider")) == "subprocess", limits=tuple(_limits(first)))


def config_files(environ: Mapping[str, str], home: Path, platform: str, prefix: Path) -> tuple[Path, ...]:
    """Files that pip reads, later ones winning. PIP_CONFIG_FILE=/dev/null (os.devnull) turns all of them off."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ()
    if platform == "win32":
        roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        wide = [Path(environ.get("PROGRAMDATA") or "C:/ProgramData") / "pip" / "pip.ini"]
        user = [home / "pip" / "pip.ini", roaming / "pip" / "pip.ini"]
    else:
        xdg = [Path(part) for part in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if part]
        wide = [Path("/Library/Application Support/pip/pip.conf")] if platform == "darwin" else \
            [*(part / "pip" / "pip.conf" for part in xdg), Path("/etc/pip.conf")]
        own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        user = [home / ".pip" / "pip.conf", own / "pip" / "pip.conf"]
        if platform == "darwin":
            user.append(home / "Library" / "Application Support" / "pip" / "pip.conf")
    site = prefix / ("pip.ini" if platform == "win32" else "pip.conf")
    return (*wide, *user, site, *([Path(named)] if named else []))


def _parsed(path: Path, read: Callable[[Path], str | None]) -> configparser.RawConfigParser | None:
    text = read(path)
    if text is None:
        return None
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as fault:
        raise BadInput(str(path), f"is no valid pip configuration ({fault.message.splitlines()[0]})",
                       "correct it, or set PIP_CONFIG_FILE to leave it out") from None
    return parser


def _first(layers: list[dict[str, Named]]) -> dict[str, Named]:
    """Each setting of the layer that states it first."""
    found: dict[str, Named] = {}
    for layer in layers:
        for key, value in layer.items():
            found.setdefault(key, value)
    return found


def _ignored(settings: Mapping[str, Named]) -> list[str]:
    return [f"{settings[key][0]}: {key} = {' '.join(shown(value) for value in settings[key][1].split())}"
            for key in _LOCAL if key in settings]


def _limits(settings: Mapping[str, Named]) -> Iterator[UploadLimit]:
    if "uploaded-prior-to" in settings:
        origin, text = settings["uploaded-prior-to"]
        import time

        from stackfix.sources.uv_time import parse_limit

        yield parse_limit(text, f"{origin}, uploaded-prior-to", time.time(), whole_day=False)


def _text(named: Named | None) -> str | None:
    return None if named is None else named[1].strip()


def _path(named: Named | None, home: Path) -> str | None:
    text = _text(named)
    return str(home / text[2:]) if text is not None and text.startswith("~/") else text


def _number(named: Named, least: float, most: float) -> float:
    origin, text = named
    return number_within(text, origin, least, most)
