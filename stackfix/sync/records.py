"""What `sync` installs, where to, and the commands that do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackfix.write.records import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """What the environment's own Python says of itself."""

    executable: str
    prefix: str
    python: str                     # "3.11"
    implementation: str             # "cpython"
    platform: str                   # conda subdir: "linux-64"; "other-…" for what has none here
    externally_managed: bool        # PEP 668: its files belong to a package manager
    has_pip: bool
    markers: tuple[tuple[str, str], ...]  # PEP 508 environment, sorted
    sites: tuple[str, ...] = ()     # folders that packages are installed into


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One lockfile to install."""

    path: Path
    entries: tuple[Entry, ...]
    build: bool                     # the second step: an sdist, built without isolation
    native: bool                    # the file can be given to pip as it is; a pylock cannot
    foreign: bool = False           # nor can it be given to uv: the entries of a conda lockfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """`uv` or `pip`, as the words that start it."""

    name: str                       # "uv" or "pip"
    words: tuple[str, ...]          # up to and with `install`
    after: tuple[str, ...]          # options that name the environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One run of the installer. `text`: requirements to write to a file first; None where `file` is there already."""

    words: tuple[str, ...]          # without the `-r FILE` at the end
    file: Path                      # the lockfile it installs
    text: str | None
    environment: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One package of the environment, as its record says."""

    name: str                       # normalised
    version: str | None
    url: str | None                 # of direct_url.json; None: from an index


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a sync does about one pin."""

    action: str                     # "install", "change", "keep" or "remove"
    name: str
    installed: str | None           # version that is there
    locked: str                     # version, or the URL where that says none
    build: bool                     # of the second step
    manager: str = "pip"            # or "conda"


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaInstalled:
    """One linked package, as its record in conda-meta says."""

    name: str
    version: str
    build: str
    sha256: str | None
    md5: str | None
    url: str | None
    channel: str | None
    subdir: str | None
    path: Path                      # of its record
    files: tuple[str, ...]          # below the prefix
    sizes: Mapping[str, int] = field(default_factory=dict)      # bytes of those that linking leaves as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """One unpacked package of a channel, checked."""

    folder: Path
    index: Mapping[str, Any]        # its info/index.json
    is_python: bool                 # noarch: its files go into the site-packages of whatever Python is there
    paths: tuple[str, ...]          # relative to the prefix, or to what `is_python` says
    links: tuple[tuple[str, str], ...]      # (path, target) of its symbolic links
    commands: tuple[str, ...]       # that are made for it in bin/
    scripts: tuple[str, ...]        # that conda would run; none is run here


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """What a sync was at work on when it was killed."""

    packages: frozenset[str]        # names
    paths: Mapping[str, str]        # below the prefix, that it may have written -> file in `store` ("": unknown)
    store: str                      # the folder of unpacked packages


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole sync."""

    prefix: str
    installer: str                  # "uv" or "pip"
    changes: tuple[Change, ...]
