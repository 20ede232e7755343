"""Reads ahead what a solve will likely need, in a thread of its own, while the rest of a command is loaded.

py-rattler reads and keeps the records of the names, and of all that these depend on, for a request that asks for
something impossible besides: it reads all the same, and has nothing to search for.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Sequence
from contextlib import suppress

from stackfix.errors import StackfixError
from stackfix.sources.conda_live import Live, subdirs
from stackfix.sources.conda_loop import answered, let_threads_leave
from stackfix.sources.conda_names import Place

IMPOSSIBLE = "stackfix-reads-ahead-only"        # a package that no channel has
_PATIENCE = 2.0                     # seconds for a thread to stop


class Ahead:
    """One thread, which stops where nobody waits for it any more."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, places: Sequence[Place], platform: str, names: Sequence[str]) -> None:
        """Begin; returns at once. What goes wrong is told when it is asked for in earnest.

        A folder is not read ahead: nothing is waited for there, and to read more than is needed costs more.
        """
        far = tuple(place for place in places if not place.fetch.startswith("file:"))
        if self._thread is None and far:
            self._live.expect(places)
            self._thread = threading.Thread(target=self._run, args=(far, platform, tuple(names)), daemon=True)
            let_threads_leave()             # the last one that is registered is the first one that runs
            atexit.register(self.stop)
            self._thread.start()

    def stop(self) -> None:
        """End it, whatever it waits for."""
        loop, thread = self._loop, self._thread
        if thread is None or not thread.is_alive():
            return
        if loop is not None:
            with suppress(RuntimeError):    # it has just ended
                loop.call_soon_threadsafe(self._stop.set)
        thread.join(_PATIENCE)
        answered()

    def _run(self, places: tuple[Place, ...], platform: str, names: tuple[str, ...]) -> None:
        with suppress(BaseException):       # py-rattler's panics are no Exception
            asyncio.run(self._read(places, platform, names))
        answered()

    async def _read(self, places: tuple[Place, ...], platform: str, names: tuple[str, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._ask(places, platform, names))
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
        for task in (work, stop):
            task.cancel()
        await asyncio.gather(work, stop, return_exceptions=True)

    async def _ask(self, places: tuple[Place, ...], platform: str, names: tuple[str, ...]) -> None:
        from rattler import MatchSpec, solve
        from rattler.exceptions import GatewayError, SolverError

        answers = await asyncio.gather(*(self._live.reason_against(place, platform) for place in places),
                                       return_exceptions=True)
        sources = [self._live.channel(place) for place, reason in zip(places, answers, strict=True) if reason is None]
        with suppress(StackfixError, GatewayError, SolverError):
            await solve(sources, [MatchSpec(name) for name in (*names, IMPOSSIBLE)], gateway=self._live.gateway,
                        platforms=subdirs(platform), channel_relations="disabled")
