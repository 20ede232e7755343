"""A real process that is killed with SIGKILL right before one call that changes the disk."""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from stackfix.apply import syscalls


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    killed: bool
    status: int                 # 0 where it came to its end, and 1 where it raised


def run_killed_before(call: int, work: Callable[[], object]) -> Ended:
    """Runs `work` in a child that is killed right before its call number `call`, counted from 1."""
    return in_child(work, lambda count, _: os.kill(os.getpid(), signal.SIGKILL) if count == call else None)


def in_child(work: Callable[[], object], before: Callable[[int, str], object]) -> Ended:
    """Runs `work` in a child; `before` is told number and name of each call before it is made."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            count = Counter[str]()

            def tell(name: str) -> None:
                count.update([name])
                before(count.total(), name)

            syscalls.before_call = tell
            work()
            status = 0
        except BaseException:       # noqa: BLE001 - the child must never come back into the tests
            traceback.print_exc()
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    return Ended(killed=os.WIFSIGNALED(how) and os.WTERMSIG(how) == signal.SIGKILL,
                 status=os.WEXITSTATUS(how) if os.WIFEXITED(how) else -1)


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """How often `work` makes each call, made here and now."""
    count = Counter[str]()
    syscalls.before_call = lambda name: count.update([name])
    try:
        work()
    finally:
        syscalls.before_call = None
    return count
