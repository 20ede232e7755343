"""Runs what py-rattler does asynchronously, to its end."""

from __future__ import annotations

import atexit
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

from stackfix.errors import Unreachable
from stackfix.sources.conda_errors import has_only_waited

Answer = TypeVar("Answer")
_LEAVE = 0.1                        # seconds; a hundred times what a thread of py-rattler takes to let go
_TRIES = 3                          # of a question that only waited for the answer to another
_last_answer = [0.0]                # when it came, by time.monotonic


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What `work` comes to. Raises Unreachable where py-rattler itself breaks down."""
    import asyncio

    let_threads_leave()
    try:
        return asyncio.run(work)
    except BaseException as fault:
        if type(fault).__name__ != "PanicException":    # pyo3's: no Exception, and of no module that can be imported
            raise
        reason = str(fault).partition("\n")[0][:200]
        raise Unreachable("py-rattler", f"broke down on what a channel answered ({reason})",
                          "try another version of py-rattler, or take the bundled records with --offline") from None
    finally:
        answered()


async def anew(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What is answered; asked again where it failed with another question of the gateway, whose reason is not told."""
    from rattler.exceptions import GatewayError

    for _ in range(_TRIES - 1):
        try:
            return await ask()
        except GatewayError as fault:
            if not has_only_waited(fault):
                raise
    return await ask()


def answered() -> None:
    """Note that py-rattler has just answered, or was told to stop."""
    _last_answer[0] = time.monotonic()


@cache
def let_threads_leave() -> None:
    """See to it that Python does not end under py-rattler's threads.

    The thread that brings an answer is still inside Python for a moment after the answer is there; if Python ends in
    that moment, the process dies of a signal (seen with py-rattler 0.28, one run in four that ended at once).
    """
    atexit.register(_wait)


def _wait() -> None:
    time.sleep(max(0.0, _LEAVE - (time.monotonic() - _last_answer[0])))
