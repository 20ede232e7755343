"""`stackfix sync` of conda lockfiles: the machine's conda settings, as the sync needs them."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stackfix.cli.common import CommonOptions

if TYPE_CHECKING:
    from rattler.networking import Client

    from stackfix.matrix.records import Matrix
    from stackfix.sources.conda_live import Live
    from stackfix.sources.conda_names import Places
    from stackfix.sync.conda_store import Store
    from stackfix.write.records import CondaLockFile

Answer = TypeVar("Answer")
LOCKS = (".yml", ".yaml", ".lock")
DOWNLOAD_SECONDS = 24 * 3600        # for a whole archive, which may have gigabytes; `patience` ends a dead line


def conda_lock_of(path: Path) -> CondaLockFile | None:
    """The conda lockfile that `path` is, by its suffix; None for a lock of pip's packages alone."""
    if path.suffix not in LOCKS:
        return None
    from stackfix.write.conda_read import read_conda_file

    return read_conda_file(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Fills the Protocol Engine of stackfix.sync.conda_download."""

    offline: bool
    platform: str
    patience: float
    live: Live
    places: Places

    def run(self, work: Coroutine[Any, Any, Answer], /) -> Answer:
        """What `work` comes to; py-rattler's own break-downs are errors of ours."""
        from stackfix.sources.conda_loop import run

        return run(work)

    def client(self) -> Client:
        """rattler's client."""
        self.live.expect(self.places.known())
        return self.live.client(seconds=DOWNLOAD_SECONDS)

    def fetched_from(self, url: str, channel: str, /) -> str:
        """The lock's address; with the login or through the one mirror that the settings have for its channel."""
        from stackfix.conda.records import Channel

        place = self.places.of(Channel(name=channel, url=channel))
        base = place.channel.url
        return f"{place.fetch}{url[len(base):]}" if url.startswith(f"{base}/") else url

    def without_secrets(self, text: str, /) -> str:
        """The text without logins and tokens."""
        from stackfix.sources.conda_errors import without_secrets

        return without_secrets(text)


def conda_settings(matrix: Matrix, common: CommonOptions) -> Settings:
    """The settings of this machine. Nothing is asked yet."""
    from stackfix.sources.conda_live import Live
    from stackfix.sources.conda_names import Places
    from stackfix.sources.conda_settings import read_conda_settings
    from stackfix.sync.conda_machine import this_platform

    settings = read_conda_settings(os.environ, Path.home())
    places = Places(dict(matrix.sources.conda_channels), settings, home=Path.home(), folder=Path.cwd())
    places.all_of(named for named in settings.channels if named[1] != "nodefaults")
    offline = "--offline" if common.offline else None
    live = Live(settings, os.environ, common.cache_dir, offline=offline)
    return Settings(offline=common.offline, platform=this_platform(), patience=settings.read_timeout, live=live,
                    places=places)


def store_of(common: CommonOptions) -> Store:
    """Where fetched packages are kept."""
    from stackfix.sync.conda_store import FOLDER, Store

    return Store(folder=common.cache_dir / FOLDER)
