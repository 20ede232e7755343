"""What a proof is made from: the wheels of a lock, and the tables of their ELF files without the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stackfix.inspect.records import ElfObject, Symbols, UnreadableElf

# Paths in a wheel are told as an installer lays them: "site/torch/lib/libc10.so" below the folder that Python imports
# from, "base/lib/libmkl_core.so.2" below the prefix (the wheel's `data` scheme). Scripts and headers are not listed.
SITE, BASE = "site", "base"

Progress = Callable[[str, int, int | None], object]     # file name, bytes that are done, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWheel:
    """One wheel that a lock would have installed."""

    name: str                       # normalised project: "nvidia-nvjitlink-cu12"
    version: str
    file: str                       # file name of the wheel
    sha256: str                     # hexadecimal; who asks for tables of a wheel without one asks for nothing
    url: str | None                 # None: it can only be known already
    size: int | None                # bytes to download; None: the index does not say
    requires: tuple[str, ...] = ()  # projects that it pulls in, as the lock knows: for wheels that nobody has to read


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelProject:
    """What a wheel's METADATA and WHEEL say, as an installed Distribution would."""

    name: str                       # normalised
    spelling: str                   # as METADATA writes it
    version: str
    requires: tuple[str, ...]       # Requires-Dist, as written
    requires_python: str | None
    extras: tuple[str, ...]
    tags: tuple[str, ...]           # "cp311-cp311-manylinux_2_28_x86_64"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryAt:
    """One shared object of a wheel. `elf.path` is `path` too."""

    path: str                       # "site/torch/lib/libc10.so"
    elf: ElfObject | UnreadableElf


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelTables:
    """What is known of one wheel's shared objects. Symbols are asked of the source, library by library."""

    sha256: str
    file: str
    basis: str                      # "almanac": facts that ship with stackfix; "wheel": all that the wheel itself has;
    #                                 "tag": by its name it is for any platform, so that it has nothing to load
    project: WheelProject
    libraries: tuple[LibraryAt, ...]        # every shared object of the wheel, by path
    listing: tuple[str, ...] | None         # every file that it installs, by path; None: only `libraries` is known
    unknown: tuple[str, ...] = ()           # what this basis cannot tell, each a sentence fit to be shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What would have to be downloaded before the tables of all wheels are known."""

    wheels: tuple[PlannedWheel, ...]        # in the order in which they were asked about
    size: int                               # bytes of those whose size is stated
    unsized: tuple[PlannedWheel, ...]       # of `wheels`: nothing says how large they are


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFetched:
    """A wheel whose tables could not be had, and why: about this wheel alone, the others are there."""

    wheel: PlannedWheel
    code: str                       # reference of the error: "hash-mismatch", "unreachable", "bad-input"
    reason: str                     # what happened, in a sentence
    next_step: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What fetching gave, by the wheels' sha256."""

    tables: Mapping[str, WheelTables]
    failed: tuple[NotFetched, ...] = ()


class TableSource(Protocol):
    """Where tables come from: what ships, a cache, the wheels themselves. Blocking calls.

    What ships goes before what is cached, so that an answer does not depend on the machine. `exactly` asks for the
    basis "wheel" alone; from then on the wheel's symbols are those too.
    """

    def shipped(self, name: str) -> tuple[PlannedWheel, ...]:
        """Wheels of a project whose tables ship with stackfix, oldest version first; they have no address."""
        ...

    def known(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Mapping[str, WheelTables]:
        """Tables by sha256 of those wheels that can be told without any download. Never raises for a damaged cache."""
        ...

    def announce(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Announcement:
        """Which of the wheels would be downloaded, each once, and how much that is."""
        ...

    def fetch(self, wheels: Sequence[PlannedWheel], progress: Progress, *, exactly: bool = False) -> Fetched:
        """Tables of all these wheels, those that are not known by downloading each once. The wheels are not kept.

        `progress` is called from several threads. An interrupted run goes on at the next wheel.
        """
        ...

    def symbols(self, sha256: str, path: str) -> Symbols:
        """Symbols of one library of a wheel whose tables were given out. Raises BadElf, as reading the file would."""
        ...


__all__ = ["BASE", "SITE", "Announcement", "Fetched", "LibraryAt", "NotFetched", "PlannedWheel", "Progress",
           "TableSource", "WheelProject", "WheelTables"]
