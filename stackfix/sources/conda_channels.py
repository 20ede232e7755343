"""Fills the Protocol Channels with py-rattler: live channels, folders, and the bundled records in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.conda.records import Channel, CondaAsk, CondaConflict, CondaRecord, CondaSolved, Snapshot
from stackfix.errors import BadInput
from stackfix.sources.conda_absent import no_records, told, told_left_out
from stackfix.sources.conda_ahead import Ahead
from stackfix.sources.conda_conflict import ChannelFacts
from stackfix.sources.conda_errors import BadChannel, ChannelUnreachable
from stackfix.sources.conda_files import ReadText
from stackfix.sources.conda_live import Live
from stackfix.sources.conda_names import DEFAULT, Place, Places, public_address
from stackfix.sources.conda_records import our_record
from stackfix.sources.conda_settings import CondaSettings, read_conda_settings
from stackfix.sources.conda_snapshot import BundledRecords
from stackfix.sources.conda_solve import solve_asked

if TYPE_CHECKING:
    from rattler import RepoDataRecord


def open_channels(  # noqa: PLR0913 - where everything is
    names: tuple[str, ...] = (), *, bases: tuple[tuple[str, str], ...], environ: Mapping[str, str], home: Path,
    cache_dir: Path, offline: bool = False, snapshot_dir: Path | None = None, progress: bool = False,
    read: ReadText | None = None,
) -> CondaChannels:
    """The channels of these names (`--channel`), else the user's of .condarc and CONDA_CHANNELS, else conda-forge.

    `bases`: the addresses of matrices/sources.toml. `snapshot_dir`: the folder of the bundled records. `progress`:
    show bars on stderr. `read`: reads a settings file. Nothing is asked yet. Raises BadInput for a setting or a name
    that makes no sense.
    """
    settings = read_conda_settings(environ, home, read=read)
    if names and settings.override is not None:
        raise BadInput("--channel", f"override_channels_enabled is false in {settings.override.origin}",
                       "leave it out: the channels of .condarc are used")
    places = Places(dict(bases), settings, home=home, folder=Path.cwd())
    found = places.all_of(("--channel", name) for name in names) or places.all_of(
        named for named in settings.channels if named[1] != "nodefaults")
    explicit = bool(found)
    live = Live(settings, environ, cache_dir, offline=_offline(settings, asked=offline), progress=progress)
    return CondaChannels(
        places, found or places.all_of([("channel", DEFAULT)]), explicit=explicit, asked=bool(names),
        settings=settings, live=live, bundled=None if snapshot_dir is None else BundledRecords(snapshot_dir, cache_dir))


def _offline(settings: CondaSettings, *, asked: bool) -> str | None:
    """Who says that nothing may be asked, without the path of a file: the text goes into lockfiles."""
    if asked:
        return "--offline"
    if settings.offline is None:
        return None
    origin = settings.offline.origin
    return origin if origin.startswith("CONDA_") else f"offline of {Path(origin).name}"


class CondaChannels:
    """Conda channels behind our records. Asks nothing twice."""

    def __init__(self, places: Places, found: tuple[Place, ...], *, explicit: bool, asked: bool,
                 settings: CondaSettings, live: Live, bundled: BundledRecords | None) -> None:
        """`explicit`: these are the user's channels; `asked`: of the command line."""
        self.channels = tuple(place.channel for place in found)     # without what turns out to be left out
        self.explicit = explicit
        self.priority = settings.priority   # the user's channel_priority, where there is one
        self.ignored = settings.ignored     # settings that are not followed, each with its place
        self._places, self._live, self._bundled = places, live, bundled
        self._ahead = Ahead(live)
        self._own = () if asked else found      # the channels of the settings
        self._left_out: dict[str, Place] = {}
        self._reasons: dict[str, str | None] = {}       # by address: why the bundled records stand in
        self._sources: dict[tuple[str, str], list[Any]] = {}
        self._records: dict[tuple[str, str, str], tuple[CondaRecord, ...]] = {}

    @property
    def offline(self) -> bool:
        """Whether nobody is asked: what is in the cache, and the bundled records, are all there is."""
        return self._live.offline is not None

    @property
    def snapshot(self) -> Snapshot | None:
        missed = {url: reason for url, reason in self._reasons.items()
                  if reason is not None and url not in self._left_out}
        if not missed or self._bundled is None:
            return None
        reason = self._live.offline or told(missed, self._places)
        return Snapshot(date=self._bundled.date, digest=self._bundled.digest, holes=self._bundled.holes,
                        reason=f"{reason}{told_left_out(tuple(self._left_out.values()), self._places)}")

    def named(self, name: str) -> Channel:
        return self._places.one(name, "channel").channel

    def records(self, channels: tuple[Channel, ...], platform: str, name: str) -> tuple[CondaRecord, ...]:
        places = [self._places.of(channel) for channel in dict.fromkeys(channels)]
        self._open(places, platform)
        return tuple(record for place in places for record in self._records_of(place, platform, name))

    def solve(self, ask: CondaAsk) -> CondaSolved | CondaConflict:
        places = [self._places.of(channel) for channel in dict.fromkeys(ask.channels)]
        self._open(places, ask.platform)
        sources = [source for place in places for source in self._sources[place.channel.url, ask.platform]]
        facts = ChannelFacts(places, lambda place, name: self._records_of(place, ask.platform, name))
        answer = solve_asked(ask, places, sources, self._live, self._locked(ask, places), facts)
        if isinstance(answer, CondaConflict):
            return answer
        ours = [our_record(record, self._place_of(record, places)) for record in answer]
        return CondaSolved(records=tuple(sorted(ours, key=lambda record: record.name)))

    def prefetch(self, channels: tuple[Channel, ...], platform: str, names: tuple[str, ...]) -> None:
        """Start reading what these packages will need; returns at once and never raises. Counts once."""
        if self._live.offline is None:
            self._ahead.start([self._places.of(channel) for channel in dict.fromkeys(channels)], platform, names)

    def close(self) -> None:
        """Stop reading ahead, and remove what was unpacked where the cache cannot be written."""
        self._ahead.stop()
        self._live.close()
        if self._bundled is not None:
            self._bundled.close()

    def _open(self, places: Sequence[Place], platform: str) -> None:
        """Find out, of all at once, which answer, and open the bundled records in place of the others."""
        fresh = [place for place in places if (place.channel.url, platform) not in self._sources]
        unknown = [place for place in fresh if self._reasons.get(place.channel.url) is None]
        for reached in self._live.reach(unknown, platform) if unknown else ():
            url, reason = reached.place.channel.url, reached.reason
            if reason is not None and self._reasons.get(url, "") is None:   # part of it was read: no mixture
                raise ChannelUnreachable(reached.place.channel.name, f"cannot be reached any more: {reason}",
                                         "try again later")
            self._reasons[url] = reason
        for place in fresh:
            reason = self._reasons[place.channel.url]
            self._sources[place.channel.url, platform] = (
                [self._live.channel(place)] if reason is None else self._stand_in(place, platform, reason))

    def _stand_in(self, place: Place, platform: str, reason: str) -> list[Any]:
        """The bundled repodata, or nothing of a channel that is left out. Raises ChannelUnreachable."""
        from rattler import Channel as TheirChannel
        from rattler import SparseRepoData

        bundled = self._bundled
        lacks = "no records of it come with stackfix"
        if bundled is not None and place.bundled in bundled.names():
            lacks = f"the bundled records have none for {platform}"
        if bundled is not None and self._goes_without(place, bundled, platform):
            self._left_out[place.channel.url] = place
            self.channels = tuple(channel for channel in self.channels if channel != place.channel)
            return []
        if bundled is None or place.bundled not in bundled.names() or (
                platform not in {file.subdir for file in bundled.files}):
            raise no_records(place, reason, self._places, own=self._own, offline=self._live.offline is not None,
                             why=lacks)
        theirs = TheirChannel(place.channel.url)
        paths = [(subdir, bundled.repodata(str(place.bundled), subdir)) for subdir in (platform, "noarch")]
        return [SparseRepoData(theirs, subdir, path) for subdir, path in paths if path is not None]

    def _goes_without(self, place: Place, bundled: BundledRecords, platform: str) -> bool:
        """Whether a public channel of the settings is left out: nothing is known of it, nor of the others as they are.

        A channel of somebody's own is never left out: its packages would come from a public one of the same names.
        """
        if place not in self._own or place.bundled is None or place.bundled in bundled.names():
            return False
        others = [each for each in self._own if each.bundled in bundled.names()]
        self._open([each for each in others if each.channel.url not in self._reasons], platform)
        return bool(others) and all(self._reasons[each.channel.url] is not None for each in others)

    def _records_of(self, place: Place, platform: str, name: str) -> tuple[CondaRecord, ...]:
        key = place.channel.url, platform, name
        if key not in self._records:
            found: list[CondaRecord] = []
            for theirs in self._theirs(place, platform, name):
                with suppress(BadChannel):      # told where a solve takes it
                    found.append(our_record(theirs, place))
            self._records[key] = tuple(found)
        return self._records[key]

    def _theirs(self, place: Place, platform: str, name: str) -> list[RepoDataRecord]:
        return self._live.query(place, self._sources[place.channel.url, platform], platform, name)

    def _locked(self, ask: CondaAsk, places: Sequence[Place]) -> list[RepoDataRecord]:
        """Records of the existing lock that the channels still have."""
        found: list[RepoDataRecord] = []
        for url, name in ask.locked:
            place = next((each for each in places if url.startswith(f"{each.channel.url}/")), None)
            if place is not None:
                theirs = self._theirs(place, ask.platform, name)
                found += [record for record in theirs if our_record(record, place).url == url][:1]
        return found

    def _place_of(self, record: RepoDataRecord, places: Sequence[Place]) -> Place:
        """Whose record it is. rattler hides a login in a record's channel, but not in its address.

        A channel may say that its files are elsewhere (base_url of its repodata, CEP 15).
        """
        bases = [(base, place) for place in places for base in (place.fetch, place.channel.url)]
        by_address = (place for base, place in bases if record.url.startswith(f"{base}/"))
        public = public_address(record.channel)
        by_channel = (place for base, place in bases if public_address(base) == public)
        return next(by_address, None) or next(by_channel)
