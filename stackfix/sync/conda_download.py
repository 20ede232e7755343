"""Archives of channels, downloaded by rattler with the user's settings; a server that goes silent is given up."""

from __future__ import annotations

import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from stackfix.errors import Unreachable
from stackfix.write.records import CondaPin

if TYPE_CHECKING:
    from rattler.networking import Client

BEAT = 0.5                      # seconds between two looks at an archive that grows
MOST = 64 * 1024 ** 3           # bytes of an archive whose size the lock does not tell
Answer = TypeVar("Answer")


class Engine(Protocol):
    """What a sync needs of the machine's conda settings."""

    @property
    def offline(self) -> bool:
        """Whether nothing may be asked."""

    @property
    def platform(self) -> str:
        """This machine's: "linux-64"."""

    @property
    def patience(self) -> float:
        """Seconds without a byte after which a server is given up."""

    def run(self, work: Coroutine[Any, Any, Answer], /) -> Answer:
        """What `work` comes to."""

    def client(self) -> Client:
        """rattler's client, with the user's logins, proxies and certificates."""

    def fetched_from(self, url: str, channel: str, /) -> str:
        """The address to ask: with the login that the settings have for the channel."""

    def without_secrets(self, text: str, /) -> str:
        """The text without logins and tokens."""


async def download(pin: CondaPin, archive: Path, client: Client, engine: Engine) -> None:
    """Writes the archive. Raises Unreachable, without a login."""
    from rattler.package_streaming import download_to_path

    url = pin.url or ""
    if url.startswith("file:"):
        try:
            shutil.copyfile(unquote(urlsplit(url).path), archive)
        except OSError as error:
            raise Unreachable(url, f"cannot be read: {error.strerror}") from error
        return
    try:
        await watched(download_to_path(client, engine.fetched_from(url, pin.channel or ""), archive), archive,
                      patience=engine.patience, most=pin.size or MOST)
    except (RuntimeError, TimeoutError) as error:
        reason = engine.without_secrets(str(error).strip().splitlines()[0][:300])
        raise Unreachable(pin.file_name or pin.name, f"cannot be fetched: {reason}",
                          "nothing was linked; check the network and the address in the lock, then sync again"
                          ) from None


async def watched(work: Coroutine[Any, Any, None], archive: Path, *, patience: float, most: int) -> None:
    """Waits for `work`, which writes the archive. Raises TimeoutError where no more bytes come, or too many."""
    import asyncio

    task = asyncio.ensure_future(work)
    size, waited = 0, 0.0
    try:
        while not (await asyncio.wait((task,), timeout=BEAT))[0]:
            now = await asyncio.to_thread(size_of, archive)
            size, waited = now, waited + BEAT if now == size else 0.0
            if waited >= patience:
                raise TimeoutError(f"no bytes came for {patience:.0f} s")
            if size > most:
                raise TimeoutError(f"more than {most} bytes came")
    finally:
        task.cancel()
    await task


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none yet."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
