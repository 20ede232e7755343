"""Fills the Protocol Channels with py-rattler: live channels, folders, and the bundled records in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.conda.records import Channel, CondaAsk, CondaConflict, CondaRecord, CondaSolved, Snapshot
from stackfix.errors import Unreachable
from stackfix.sources.conda_live import Live
from stackfix.sources.conda_names import Place, Places
from stackfix.sources.conda_records import our_record
from stackfix.sources.conda_snapshot import BundledRecords
from stackfix.sources.conda_solve import solve_asked

if TYPE_CHECKING:
    from rattler import RepoDataRecord

DEFAULT = ("conda-forge",)


def open_channels(
    names: tuple[str, ...] = (), *, bases: tuple[tuple[str, str], ...], environ: Mapping[str, str], home: Path,
    cache_dir: Path, offline: bool = False, snapshot_dir: Path | None = None,
) -> CondaChannels:
    """The channels of these names, else the user's, else the default ones. Raises BadInput."""
    places = Places(dict(bases), home)
    found = [places.place(name, "--channel") for name in names]
    explicit = bool(found)
    found = found or [places.place(name, "channel") for name in DEFAULT]
    bundled = None if snapshot_dir is None else BundledRecords(snapshot_dir, cache_dir)
    live = Live(cache_dir, offline=offline or environ.get("CONDA_OFFLINE", "").lower() in {"1", "true", "yes", "on"})
    return CondaChannels(places, tuple(found), explicit=explicit, live=live, bundled=bundled)


class CondaChannels:
    """Conda channels behind our records. Asks nothing twice."""

    def __init__(self, places: Places, found: tuple[Place, ...], *, explicit: bool, live: Live,
                 bundled: BundledRecords | None) -> None:
        self.channels = tuple(place.channel for place in found)
        self.explicit = explicit
        self._places, self._live, self._bundled = places, live, bundled
        self._sources: dict[tuple[str, str], list[object]] = {}
        self._records: dict[tuple[str, str, str], tuple[CondaRecord, ...]] = {}
        self._reason: str | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        if self._reason is None or self._bundled is None:
            return None
        return Snapshot(date=self._bundled.date, digest=self._bundled.digest, holes=self._bundled.holes,
                        reason=self._reason)

    def named(self, name: str) -> Channel:
        return self._places.place(name, "channel").channel

    def records(self, channels: tuple[Channel, ...], platform: str, name: str) -> tuple[CondaRecord, ...]:
        found: list[CondaRecord] = []
        for channel in dict.fromkeys(channels):
            key = channel.url, platform, name
            if key not in self._records:
                place = self._places.of(channel)
                theirs = self._live.query(self._source(place, platform), platform, name)
                self._records[key] = tuple(self._ours(place, record) for record in theirs)
            found += self._records[key]
        return tuple(found)

    def solve(self, ask: CondaAsk) -> CondaSolved | CondaConflict:
        places = [self._places.of(channel) for channel in dict.fromkeys(ask.channels)]
        sources = [source for place in places for source in self._source(place, ask.platform)]
        by_base = {place.fetch.rstrip("/"): place for place in places}
        by_base |= {place.channel.url: place for place in places}
        answer = solve_asked(ask, sources, self._live, self._locked(ask, places))
        if isinstance(answer, CondaConflict):
            return answer
        ours = (self._ours(by_base[record.channel.rstrip("/")], record) for record in answer)
        return CondaSolved(records=tuple(sorted(ours, key=lambda record: record.name)))

    def _locked(self, ask: CondaAsk, places: list[Place]) -> list[RepoDataRecord]:
        """Records of the existing lock that the channels still have."""
        found: list[RepoDataRecord] = []
        for url, name in ask.locked:
            place = next((each for each in places if url.startswith(each.channel.url + "/")), None)
            if place is not None:
                theirs = self._live.query(self._source(place, ask.platform), ask.platform, name)
                found += [record for record in theirs if self._ours(place, record).url == url][:1]
        return found

    def _ours(self, place: Place, record: RepoDataRecord) -> CondaRecord:
        return our_record(record, fetched=record.channel, public=place.channel.url)

    def _source(self, place: Place, platform: str) -> list[object]:
        """What rattler reads for this channel: the channel itself, or the bundled repodata."""
        key = place.channel.url, platform
        if key not in self._sources:
            reason = self._live.reason_against(place, platform)
            self._sources[key] = (self._live.channel(place) if reason is None
                                  else self._stand_in(place, platform, reason))
        return self._sources[key]

    def _stand_in(self, place: Place, platform: str, reason: str) -> list[object]:
        from rattler import Channel as RattlerChannel
        from rattler import SparseRepoData

        bundled = self._bundled
        if bundled is None or place.bundled is None or place.bundled not in bundled.names():
            raise Unreachable(place.channel.name, reason)
        self._reason = self._reason or reason
        theirs = RattlerChannel(place.channel.url)
        paths = [(subdir, bundled.repodata(place.bundled, subdir)) for subdir in (platform, "noarch")]
        return [SparseRepoData(theirs, subdir, path) for subdir, path in paths if path is not None]
