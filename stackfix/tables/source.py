"""Where tables come from: what ships, what the cache has, and the wheels themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.inspect.records import BadElf, Symbols
from stackfix.prove.records import (
    Announcement,
    Fetched,
    PlannedWheel,
    Progress,
    TableSource,
    WheelProject,
    WheelTables,
)
from stackfix.sources.cache import Cache
from stackfix.tables.kept import read_kept
from stackfix.tables.loading_book import LoadingBook, open_loading_book
from stackfix.tables.opened import open_symbols
from stackfix.tables.records import ReducedWheel

if TYPE_CHECKING:
    from stackfix.abi.records import TorchBook
    from stackfix.sources.transport import Transport

ANY = "-none-any.whl"           # how names of wheels end that are for every platform
BY_NAME = "its name says that it is for any platform, so that it has no compiled files; it was not read"


class WheelTableSource:
    """Fills prove.records.TableSource. Answers are remembered."""

    def __init__(self, cache: Cache, open_transport: Callable[[], Transport], *, offline: bool,
                 open_book: Callable[[], LoadingBook]) -> None:
        self._cache, self._open_transport, self._offline = cache, open_transport, offline
        self._open_book = open_book
        self._wheels: dict[str, ReducedWheel | None] = {}
        self._exact = set[str]()            # wheels that were asked about exactly
        self._symbols: dict[tuple[str, str, bool], Symbols | BadElf] = {}

    @cached_property
    def _book(self) -> LoadingBook:
        return self._open_book()

    def shipped(self, name: str) -> tuple[PlannedWheel, ...]:
        """Wheels of a project whose tables ship, oldest first."""
        return self._book.shipped(name)

    def known(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Mapping[str, WheelTables]:
        """Tables by sha256 of those wheels that can be told without any download."""
        return dict(self._known(wheels, exactly=exactly))

    def _known(self, wheels: Sequence[PlannedWheel], *, exactly: bool) -> Iterator[tuple[str, WheelTables]]:
        for wheel in wheels:
            if not exactly and wheel.sha256 in self._book:
                yield wheel.sha256, self._book.tables(wheel.sha256)
            elif not exactly and wheel.file.endswith(ANY):
                yield wheel.sha256, by_name(wheel)
            elif (found := self._reduced(wheel.sha256)) is not None:
                self._exact.add(wheel.sha256)
                yield wheel.sha256, found.tables

    def announce(self, wheels: Sequence[PlannedWheel], *, exactly: bool = False) -> Announcement:
        """What `fetch` would download."""
        ahead = tuple(wheel for wheel in self._unknown(wheels, exactly=exactly) if not self._is_at_hand(wheel))
        return Announcement(wheels=ahead, size=sum(wheel.size or 0 for wheel in ahead),
                            unsized=tuple(wheel for wheel in ahead if wheel.size is None))

    def fetch(self, wheels: Sequence[PlannedWheel], progress: Progress, *, exactly: bool = False) -> Fetched:
        """Tables of all these wheels, those that are not known by downloading each once."""
        ahead = self._unknown(wheels, exactly=exactly)
        if not ahead:
            return Fetched(tables=self.known(wheels, exactly=exactly))
        from stackfix.tables.fetch import fetch_tables

        found, failed = fetch_tables(ahead, self._cache, self._open_transport, progress, offline=self._offline)
        self._wheels.update(found)
        return Fetched(tables=self.known(wheels, exactly=exactly), failed=failed)

    def symbols(self, sha256: str, path: str) -> Symbols:
        """Symbols of one library of a wheel whose tables were given out. Raises BadElf."""
        key = sha256, path, sha256 in self._exact
        if key not in self._symbols:
            try:
                self._symbols[key] = self._read_symbols(sha256, path)
            except BadElf as error:
                self._symbols[key] = error
        found = self._symbols[key]
        if isinstance(found, BadElf):
            raise found
        return found

    def _unknown(self, wheels: Sequence[PlannedWheel], *, exactly: bool) -> tuple[PlannedWheel, ...]:
        """Those that nothing is known of, each once."""
        known = self.known(wheels, exactly=exactly)
        return tuple({wheel.sha256: wheel for wheel in wheels if wheel.sha256 not in known}.values())

    def _is_at_hand(self, wheel: PlannedWheel) -> bool:
        from stackfix.tables.fetch import is_at_hand

        return is_at_hand(wheel, self._cache.directory)

    def _reduced(self, sha256: str) -> ReducedWheel | None:
        if self._wheels.get(sha256) is None:
            self._wheels[sha256] = read_kept(self._cache, sha256)
        return self._wheels[sha256]

    def _read_symbols(self, sha256: str, path: str) -> Symbols:
        if sha256 not in self._exact and sha256 in self._book:
            return self._book.symbols(sha256, path)
        wheel = self._reduced(sha256)
        if wheel is None:
            raise LookupError(f"no tables of {sha256} were given out")
        return open_symbols(wheel, path)


def by_name(wheel: PlannedWheel) -> WheelTables:
    """What the name of a wheel for any platform tells."""
    project = WheelProject(name=wheel.name, spelling=wheel.name, version=wheel.version, requires=wheel.requires,
                           requires_python=None, extras=(), tags=("py3-none-any",))
    return WheelTables(sha256=wheel.sha256, file=wheel.file, basis="tag", project=project, libraries=(), listing=None,
                       unknown=(BY_NAME,))


def open_tables(cache_dir: Path, open_transport: Callable[[], Transport], *, offline: bool,
                directory: Path | None = None) -> TableSource:
    """The source of a command. `open_transport` is called where something has to be downloaded, and closed here.

    `directory`: the almanac, ours where none is named.
    """
    def open_torch() -> TorchBook:
        from stackfix.abi.book import open_torch_book

        return open_torch_book(directory)

    return WheelTableSource(Cache(cache_dir), open_transport, offline=offline,
                            open_book=lambda: open_loading_book(directory, open_torch))


__all__ = ["WheelTableSource", "open_tables"]
