"""Archives of channels, fetched, hashed and unpacked into a cache that rattler links from.

rattler has a cache of its own, whose word is not taken: with py-rattler 0.28 an archive that fails its hash beside an
unpacked one of the same name is accepted when it is asked for again, and changed files are linked unseen.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.errors import Unreachable
from stackfix.sync.conda_archive import BadPackage, digest_of, info_digests, is_whole, read_unpacked
from stackfix.sync.conda_download import Engine, download
from stackfix.sync.records import Unpacked
from stackfix.sync.source import WrongWheel
from stackfix.write.records import CondaPin

if TYPE_CHECKING:
    from rattler.networking import Client

FOLDER = "conda-packages-v1"    # below the cache folder
AT_ONCE = 8
PART = ".part-"
Progress = Callable[[int, int], None]       # packages that are there, of how many


class WrongArchive(WrongWheel):
    """An archive that is not the one that was locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The cache. One process at a time works on it."""

    folder: Path

    def unpacked(self, pin: CondaPin) -> Path:
        """Where rattler looks for the package."""
        return self.folder / stem(pin)

    def note(self, pin: CondaPin) -> Path:
        """What is known of it: hashes of its archive, of its files below info/."""
        return self.folder / f"{stem(pin)}.archive.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the cache for this process; waits for another."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            stream = (self.folder / ".stackfix.lock").open("a")
        except OSError as error:
            raise Unreachable(str(self.folder), f"cannot be written: {error.strerror}",
                              "name another folder with --cache-dir") from error
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            for left in self.folder.glob(f"{PART}*"):       # of one that was killed
                shutil.rmtree(left, ignore_errors=True)
            yield


def stem(pin: CondaPin) -> str:
    """`numpy-1.26.4-py311_0`."""
    return f"{pin.name}-{pin.version}-{pin.build}"


def fetch_all(store: Store, pins: tuple[CondaPin, ...], engine: Engine, progress: Progress) -> dict[str, Unpacked]:
    """Name -> its unpacked package, every archive's hash checked. Raises WrongArchive, BadPackage or Unreachable."""
    return engine.run(_fetch_all(store, pins, engine, progress))


async def _fetch_all(
    store: Store, pins: tuple[CondaPin, ...], engine: Engine, progress: Progress,
) -> dict[str, Unpacked]:
    import asyncio

    gate, done = asyncio.Semaphore(AT_ONCE), dict[str, Unpacked]()
    client = engine.client()

    async def one(pin: CondaPin) -> None:
        async with gate:
            kept = await asyncio.to_thread(kept_package, store, pin)
            done[pin.name] = kept if kept is not None else await fetch(store, pin, client, engine)
            progress(len(done), len(pins))

    tasks = [asyncio.ensure_future(one(pin)) for pin in pins]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return done


def kept_package(store: Store, pin: CondaPin) -> Unpacked | None:
    """The package as the cache has it; None where it has none of these hashes, or its files were changed."""
    try:
        note: Any = json.loads(store.note(pin).read_bytes())
        stated, info = dict(note["archive"]), dict(note["info"])
        if complaint(pin, stated) is not None:
            return None
        package = read_unpacked(store.unpacked(pin), pin)
        return package if is_whole(package, info) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError, BadPackage):
        return None


async def fetch(store: Store, pin: CondaPin, client: Client, engine: Engine) -> Unpacked:
    """The package, fetched anew. Its bytes are unpacked only once their hash is right."""
    import asyncio

    if engine.offline and not (pin.url or "").startswith("file:"):
        raise Unreachable(pin.file_name or pin.name, "is not in the cache, and --offline forbids asking for it",
                          "run once without it")
    part = Path(tempfile.mkdtemp(prefix=PART, dir=store.folder))
    try:
        archive = part / (pin.file_name or "")
        await download(pin, archive, client, engine)
        return await asyncio.to_thread(unpack, store, pin, archive)
    except OSError as error:
        raise Unreachable(str(store.folder), f"{pin.file_name} cannot be kept: {error.strerror or error}") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, part, True)  # noqa: FBT003 - ignore_errors, of another's signature


def unpack(store: Store, pin: CondaPin, archive: Path) -> Unpacked:
    """The package in its place in the cache. Raises WrongArchive where its hash is not the locked one."""
    from rattler.package_streaming import extract

    stated = {kind: digest_of(archive, kind) for kind in ("sha256", "md5")}
    wrong = complaint(pin, stated)
    if wrong is not None:
        raise WrongArchive(f"{pin.name} ({pin.file_name})", wrong, "nothing was linked; the file was replaced or "
                           "damaged: ask whoever runs the channel, or lock again")
    fresh = archive.parent / "unpacked"
    try:
        extract(archive, fresh)
    except OSError as error:
        raise BadPackage(f"{pin.name} ({pin.file_name})", f"cannot be unpacked: {str(error)[:200]}") from None
    read_unpacked(fresh, pin)
    place, note = store.unpacked(pin), store.note(pin)
    with suppress(FileNotFoundError):
        note.unlink()
    with suppress(FileNotFoundError):
        (store.folder / f"{stem(pin)}.lock").unlink()       # rattler's word about the one before
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)
    draft = archive.parent / "note.json"
    draft.write_text(json.dumps({"archive": stated, "info": info_digests(place)}), encoding="utf-8")
    draft.rename(note)
    return read_unpacked(place, pin)


def complaint(pin: CondaPin, stated: Mapping[str, str]) -> str | None:
    """Why an archive with these hashes is not the locked one; None where every locked hash is met."""
    for kind, locked in (("sha256", pin.sha256), ("md5", pin.md5)):
        if locked is not None and stated.get(kind) != locked:
            return f"has {kind} {stated.get(kind)}, the lock says {locked}"
    return None


def archive_hashes(store: Store, pin: CondaPin) -> dict[str, str]:
    """Both hashes of the archive that the unpacked package came from."""
    return dict(json.loads(store.note(pin).read_bytes())["archive"])
