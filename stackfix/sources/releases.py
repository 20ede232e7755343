"""The flash-attn release source: a release API, a mirror's listing, or a folder.

Releases are mutable: files are added for months. So what a release holds is asked anew in every run, and that a wheel
is not there is kept nowhere. What a file's bytes are is kept: by address, size and time of its last change.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from stackfix.errors import BadInput, Unreachable
from stackfix.matrix.records import Sources
from stackfix.sources.address import base_of, parse_address, resolve_link, shown, without_credentials
from stackfix.sources.answers import Limits, Response, Sink, refused
from stackfix.sources.cache import Cache, etag_of, usable_until
from stackfix.sources.errors import BadPage, BadRelease, NoIndexPage, NotAllowedOffline, RateLimited
from stackfix.sources.page import parse_page
from stackfix.sources.records import Answered, IndexSettings, ReleaseAsset
from stackfix.sources.transport import Transport
from stackfix.sources.wire import FORBIDDEN, NOT_THERE, OK
from stackfix.sources.workers import Task, Workers

PROJECT = "flash-attn"
# A lock does not need this source: when it is not there, that must show soon.
QUICK = Limits(total=30.0, connect=4.0, retry_wait=3.0, dial_tries=1)
_LIMIT = 32 * 1024 * 1024           # of one answer of the API
_LARGEST = 8 * 1024 * 1024 * 1024   # of one wheel
_SLOWEST = 50_000                   # bytes per second below which a download is given up
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!~%-]{0,300}")


class Progress(Protocol):
    """Told how far a download is. Called from the thread that downloads."""

    def __call__(self, file: str, done: int, total: int | None, /) -> object:
        """`done` of `total` bytes of `file` are there; `total` is None where nobody knows."""


class AnyReleases(Protocol):
    """What open_releases gives; fills resolve.records.Releases."""

    @property
    def answers(self) -> tuple[Answered, ...] | None:
        """What servers said; None where that is not all that counted."""

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]: ...
    def sha256(self, asset: ReleaseAsset) -> str: ...
    def close(self) -> None: ...
    def __enter__(self) -> AnyReleases: ...
    def __exit__(self, *_: object) -> None: ...


def open_releases(source: str | None, *, sources: Sources, settings: IndexSettings, cache_dir: Path, offline: bool,
                  progress: Progress | None = None, limits: Limits = QUICK) -> AnyReleases:
    """The release source: the matrix's own for None, else the API or listing at a URL, or a folder of wheels.

    Raises BadInput for what is neither.
    """
    if source is None or "://" in source:
        base = (source or sources.release_api).rstrip("/")
        try:
            parse_address(base)
        except ValueError as fault:
            raise BadInput(f"--flash-attn-source {shown(base)}", str(fault),
                           "give an https:// address or a folder with wheels") from None
        transport = Transport(settings, limits, retries=1)
        transport.credentials.learn(base, is_index=False)
        if settings.release_token and _same_server(base, sources.release_api):
            transport.credentials.give_token(base, settings.release_token)
        return WebReleases(base, Cache(cache_dir), transport, offline=offline, may_be_listing=source is not None,
                           progress=progress)
    folder = Path(source)
    if not folder.is_dir():
        raise BadInput(f"--flash-attn-source {source}", "is no folder",
                       "give a folder with wheels, or an https:// address")
    return FolderReleases(folder)


class WebReleases:
    """Releases at an address."""

    def __init__(self, base: str, cache: Cache, transport: Transport, *, offline: bool, may_be_listing: bool,
                 progress: Progress | None) -> None:
        self._base, self._cache, self._transport = base, cache, transport
        self._offline, self._may_be_listing, self._progress = offline, may_be_listing, progress
        self._workers = Workers(8, "stackfix-releases")
        self._releases: dict[str, tuple[ReleaseAsset, ...]] = {}
        self._hashes: dict[str, str] = {}
        self._said: dict[str, Answered] = {}
        self._unsure = False            # whether it ever failed to answer

    @property
    def answers(self) -> tuple[Answered, ...] | None:
        """What the source said; None once it failed to."""
        return None if self._unsure else tuple(self._said.values())

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        """Assets by version; () for a version without a release. Raises Unreachable."""
        missing = tuple(version for version in dict.fromkeys(versions) if version not in self._releases)
        if missing:
            if self._offline:
                raise NotAllowedOffline(f"releases at {shown(self._base)}")
            before, self._unsure = self._unsure, True
            self._releases.update(self._ask(missing))
            self._unsure = before
        return {version: self._releases[version] for version in versions}

    def sha256(self, asset: ReleaseAsset) -> str:
        """The asset's sha256: stated, kept, or of one whole download. Raises Unreachable."""
        if asset.sha256 is not None:
            return asset.sha256
        if asset.url not in self._hashes:
            self._hashes[asset.url] = self._hash(asset)
        return self._hashes[asset.url]

    def close(self) -> None:
        """Drop all connections."""
        self._workers.close(Unreachable(shown(self._base), "the release source was closed"))
        self._transport.close()

    def __enter__(self) -> WebReleases:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        tasks = {version: Task(partial(self._release, version)) for version in versions}
        for task in tasks.values():
            self._workers.submit(task)
        faults: list[BadRelease] = []
        found: dict[str, tuple[ReleaseAsset, ...] | None] = {}
        for version, task in tasks.items():
            try:
                found[version] = task.result()
            except BadRelease as fault:
                faults.append(fault)
                found[version] = None
        if self._may_be_listing and not any(found.values()):
            listed = self._listing(versions)
            if listed is not None:
                return listed
        if faults:
            raise faults[0]
        return {version: assets or () for version, assets in found.items()}

    def _release(self, version: str) -> tuple[ReleaseAsset, ...] | None:
        """Assets of one release, None where the API knows no such release."""
        url = f"{self._base}/releases/tags/v{version}"
        answer = self._get(url, "application/vnd.github+json")
        if answer.status in NOT_THERE:
            return None
        _require_ok(answer, url)
        try:
            release = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise BadRelease(shown(url), "the answer is no valid JSON") from None
        listed = release.get("assets") if isinstance(release, dict) else None
        if not isinstance(listed, list):
            raise BadRelease(shown(url), "the answer describes no release")
        return tuple(_asset_of(entry, version, url) for entry in listed if _is_wheel(entry))

    def _get(self, url: str, accept: str) -> Response:
        answer = self._transport.get(url, limit=_LIMIT, headers={"Accept": accept})
        self._said[url] = Answered(
            url=without_credentials(url), status=answer.status, until=usable_until(answer.headers, time.time()),
            etag=etag_of(answer.headers), packed=answer.packed, accept=accept,
            final=base_of(answer.url), kind=answer.headers.get("content-type", ""))
        return answer

    def _listing(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]] | None:
        """Wheels that a page of links at the base names, None where there is no such page."""
        url = self._base + "/"
        answer = self._get(url, "*/*")
        if answer.status != OK:
            return None
        try:
            page = parse_page(answer.body, answer.headers.get("content-type", ""), project=PROJECT,
                              index=without_credentials(self._base), url=answer.url)
            files = [file for text in page.version_strings() for file in page.files(text) if file.is_wheel]
        except NoIndexPage:
            return None         # whatever a server of the API says at its root
        except BadPage as fault:
            raise BadRelease(shown(url), f"neither a release API nor a list of wheels: it {fault.reason}") from None
        return {version: tuple(
            ReleaseAsset(version=version, file=file.filename, url=file.url, sha256=file.sha256, size=file.size,
                         updated_at=file.upload_time)
            for file in files if file.version.partition("+")[0] == version) for version in versions} if files else None

    def _hash(self, asset: ReleaseAsset) -> str:
        key = hashlib.sha256(f"{asset.url}\n{asset.size}\n{asset.updated_at}".encode()).hexdigest()
        dated = asset.size is not None and asset.updated_at is not None  # else a changed file would not show
        kept = (self._cache.record("hashes-v1", key) or {}).get("sha256") if dated else None
        if isinstance(kept, str) and _DIGEST.fullmatch(f"sha256:{kept}"):
            return kept
        if self._offline:
            raise NotAllowedOffline(f"sha256 of {asset.file}")
        found = self._download(asset)
        if dated:
            self._cache.keep_record("hashes-v1", key, {"sha256": found, "file": asset.file})
        return found

    def _download(self, asset: ReleaseAsset) -> str:
        """sha256 of the asset's bytes, which are not kept."""
        size = asset.size
        meter = _Meter(asset.file, size, self._progress)
        answer = self._transport.get(asset.url, limit=_LARGEST if size is None else size, unpack=False,
                                     open_sink=meter.start, total=max(600.0, (size or 1_000_000_000) / _SLOWEST))
        _require_ok(answer, asset.url)
        if size is not None and meter.done != size:
            raise BadRelease(f"{asset.file} at {shown(asset.url)}", f"{meter.done} bytes came, {size} are stated")
        return meter.sha256()


class FolderReleases:
    """Wheels in a folder of this machine."""

    answers = None                      # files may change without a sign

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes: dict[str, str] = {}

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        """Assets by version. Raises BadInput for a wheel that is a link out of the folder."""
        inside = self._folder.resolve()
        found: dict[str, list[ReleaseAsset]] = {version: [] for version in versions}
        for path in sorted(self._folder.glob("flash_attn-*.whl")):
            version = path.name.split("-")[1].partition("+")[0]
            if version not in found or not path.is_file():
                continue
            if path.resolve().parent != inside:
                raise BadInput(str(path), "is a link out of its folder", "copy the wheel into the folder")
            found[version].append(ReleaseAsset(
                version=version, file=path.name, url=path.absolute().as_uri(), sha256=None, size=path.stat().st_size,
                updated_at=None))
        return {version: tuple(assets) for version, assets in found.items()}

    def sha256(self, asset: ReleaseAsset) -> str:
        """Hash of the file in the folder. Raises Unreachable when it cannot be read."""
        if asset.file not in self._hashes:
            digest = hashlib.sha256()
            try:
                with (self._folder / Path(asset.file).name).open("rb") as stream:
                    while piece := stream.read(1024 * 1024):
                        digest.update(piece)
            except OSError as fault:
                raise Unreachable(asset.file, f"cannot be read ({fault.strerror})") from None
            self._hashes[asset.file] = digest.hexdigest()
        return self._hashes[asset.file]

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> FolderReleases:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Meter:
    """Counts and hashes a download."""

    def __init__(self, file: str, total: int | None, progress: Progress | None) -> None:
        self._file, self._total, self._progress = file, total, progress
        self._digest = hashlib.sha256()
        self.done = 0

    def start(self) -> Sink:
        self._digest, self.done = hashlib.sha256(), 0
        return self._take

    def sha256(self) -> str:
        return self._digest.hexdigest()

    def _take(self, piece: bytes) -> None:
        self._digest.update(piece)
        self.done += len(piece)
        if self._progress is not None:
            self._progress(self._file, self.done, self._total)


def _is_wheel(entry: Any) -> bool:
    """Whether the entry is a finished wheel of the project; names of other files do not matter."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return isinstance(name, str) and name.endswith(".whl") and entry.get("state", "uploaded") == "uploaded"


def _asset_of(entry: dict[str, Any], version: str, url: str) -> ReleaseAsset:
    name, digest, size = entry["name"], entry.get("digest"), entry.get("size")
    if not _FILENAME.fullmatch(name) or ".." in name:
        raise BadRelease(shown(url), f"it lists a file with the impossible name {name[:200]!r}")
    link, updated = entry.get("browser_download_url"), entry.get("updated_at")
    try:
        address = resolve_link(url, link if isinstance(link, str) else "none:")
    except ValueError as fault:
        raise BadRelease(shown(url), f"its address of {name} {fault}") from None
    stated = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if isinstance(digest, str) and digest.startswith("sha256:") and stated is None:
        raise BadRelease(shown(url), f"it states a hash of {name} that is no sha256")
    return ReleaseAsset(version=version, file=name, url=address, sha256=stated[1].lower() if stated else None,
                        size=size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
                        updated_at=updated if isinstance(updated, str) else None)


def _require_ok(answer: Response, url: str) -> None:
    if answer.status == OK:
        return
    if answer.status == FORBIDDEN and answer.headers.get("x-ratelimit-remaining") == "0":
        raise RateLimited(url, "its limit of requests without a login is used up", status=FORBIDDEN,
                          hint="set GITHUB_TOKEN, or wait an hour")
    raise refused(answer, url)


def _same_server(one: str, other: str) -> bool:
    return urlsplit(one)[:2] == urlsplit(other)[:2]
