"""What an environment holds, from its site-packages: metadata files alone, nothing is imported or run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from stackfix.errors import Unreachable
from stackfix.sync.records import Installed

LARGEST = 1024 * 1024           # bytes that are read of one file; Name and Version stand at its top
NAMED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(?:-py[0-9.]+)?\.(?:dist|egg)-info")
FIELD = re.compile(r"(?P<field>name|version):\s*(?P<value>\S+)\s*", re.IGNORECASE)


def read_installed(sites: Iterable[str]) -> dict[str, Installed]:
    """Normalised name -> what is installed. Raises Unreachable for a folder that cannot be listed."""
    found: dict[str, Installed] = {}
    for site in sites:
        for path in records_in(Path(site)):
            installed = read_record(path)
            if installed is not None:
                found.setdefault(installed.name, installed)     # the first on the path is the one imported
    return found


def records_in(site: Path) -> Iterator[Path]:
    """The .dist-info folders, and .egg-info folders or files, of one site-packages folder."""
    try:
        paths = sorted(site.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unreachable(str(site), f"cannot be listed: {error.strerror}") from error
    yield from (path for path in paths if path.suffix in {".dist-info", ".egg-info"})


def read_record(path: Path) -> Installed | None:
    """One record; None for a folder that says no name, as a removal cut short leaves it."""
    fields = headers(text_of(path / "METADATA") or text_of(path / "PKG-INFO") or text_of(path))
    named = NAMED.fullmatch(path.name)
    name = fields.get("name") or (named["name"] if named else None)
    if name is None:
        return None
    return Installed(
        name=canonicalize_name(name), version=fields.get("version") or (named["version"] if named else None),
        url=direct_url(text_of(path / "direct_url.json")),
    )


def headers(text: str) -> dict[str, str]:
    """`name` and `version` of core metadata."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        if match := FIELD.fullmatch(line):
            found.setdefault(match["field"].lower(), match["value"])
    return found


def direct_url(text: str) -> str | None:
    """The address of PEP 610, None where it came from an index."""
    try:
        stated: Any = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    url = stated.get("url") if isinstance(stated, Mapping) else None
    return url if isinstance(url, str) else None


def text_of(path: Path) -> str:
    """The top of the file; empty where there is none that can be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            return stream.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
