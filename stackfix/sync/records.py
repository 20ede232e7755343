"""What `sync` installs, where to, and the commands that do it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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

    action: str                     # "install", "change" or "keep"
    name: str
    installed: str | None           # version that is there
    locked: str                     # version, or the URL where that says none
    build: bool                     # of the second step


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole sync."""

    prefix: str
    installer: str                  # "uv" or "pip"
    changes: tuple[Change, ...]
