"""Where tables come from: what the cache has, what ships, and the wheels themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import BadElf, Symbols, UnreadableElf
from stackfix.prove.records import Announcement, Fetched, PlannedWheel, Progress, TableSource, WheelTables
from stackfix.sources.cache import Cache
from stackfix.tables.image import open_image
from stackfix.tables.kept import read_kept
from stackfix.tables.packed import unpack
from stackfix.tables.records import ReducedWheel

if TYPE_CHECKING:
    from stackfix.sources.transport import Transport


class WheelTableSource:
    """Fills prove.records.TableSource. Answers are remembered."""

    def __init__(self, cache: Cache, open_transport: Callable[[], Transport], *, offline: bool) -> None:
        self._cache, self._open_transport, self._offline = cache, open_transport, offline
        self._wheels: dict[str, ReducedWheel | None] = {}
        self._symbols: dict[tuple[str, str], MappedSymbols | BadElf] = {}

    def known(self, wheels: Sequence[PlannedWheel]) -> Mapping[str, WheelTables]:
        """Tables by sha256 of those wheels that can be told without any download."""
        found = {wheel.sha256: self._reduced(wheel.sha256) for wheel in wheels}
        return {sha256: each.tables for sha256, each in found.items() if each is not None}

    def announce(self, wheels: Sequence[PlannedWheel]) -> Announcement:
        """What `fetch` would download."""
        ahead = tuple(wheel for wheel in self._unknown(wheels) if not self._is_at_hand(wheel))
        return Announcement(wheels=ahead, size=sum(wheel.size or 0 for wheel in ahead),
                            unsized=tuple(wheel for wheel in ahead if wheel.size is None))

    def fetch(self, wheels: Sequence[PlannedWheel], progress: Progress) -> Fetched:
        """Tables of all these wheels, those that are not known by downloading each once."""
        ahead = self._unknown(wheels)
        if not ahead:
            return Fetched(tables=self.known(wheels))
        from stackfix.tables.fetch import fetch_tables

        found, failed = fetch_tables(ahead, self._cache, self._open_transport, progress, offline=self._offline)
        self._wheels.update(found)
        return Fetched(tables=self.known(wheels), failed=failed)

    def symbols(self, sha256: str, path: str) -> Symbols:
        """Symbols of one library of a wheel whose tables were given out. Raises BadElf."""
        key = sha256, path
        if key not in self._symbols:
            try:
                self._symbols[key] = self._read_symbols(sha256, path)
            except BadElf as error:
                self._symbols[key] = error
        found = self._symbols[key]
        if isinstance(found, BadElf):
            raise found
        return found

    def _unknown(self, wheels: Sequence[PlannedWheel]) -> tuple[PlannedWheel, ...]:
        """Those that nothing is known of, each once."""
        known = self.known(wheels)
        return tuple({wheel.sha256: wheel for wheel in wheels if wheel.sha256 not in known}.values())

    def _is_at_hand(self, wheel: PlannedWheel) -> bool:
        from stackfix.tables.fetch import is_at_hand

        return is_at_hand(wheel, self._cache.directory)

    def _reduced(self, sha256: str) -> ReducedWheel | None:
        if self._wheels.get(sha256) is None:
            self._wheels[sha256] = read_kept(self._cache, sha256)
        return self._wheels[sha256]

    def _read_symbols(self, sha256: str, path: str) -> MappedSymbols:
        wheel = self._reduced(sha256)
        if wheel is None:
            raise LookupError(f"no tables of {sha256} were given out")
        packed = wheel.images.get(path)
        if packed is None:
            elf = next(each.elf for each in wheel.tables.libraries if each.path == path)
            reason = elf.reason if isinstance(elf, UnreadableElf) else "nothing is kept of its symbols"
            raise BadElf(path, reason, crash=elf.crash if isinstance(elf, UnreadableElf) else "cannot tell")
        return MappedSymbols(open_image(unpack(packed, path), path), path)


def open_tables(cache_dir: Path, open_transport: Callable[[], Transport], *, offline: bool) -> TableSource:
    """The source of a command. `open_transport` is called where something has to be downloaded, and closed here."""
    return WheelTableSource(Cache(cache_dir), open_transport, offline=offline)


__all__ = ["WheelTableSource", "open_tables"]
