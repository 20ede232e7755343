"""What is left of a build that killed the child which watched it: it becomes ours, and ends here (Linux)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from stackfix.sources.sdist_build_child import SECONDS, below, living

_SET, _GET = 36, 37     # PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER of prctl(2)
_LOOKS = 2
_ALONE = threading.Lock()       # who adopts orphans cannot tell those of one build from another's


@contextmanager
def orphans_ended() -> Iterator[None]:
    """Whatever was started within and lost its parents is killed at the end, before anything else may start."""
    with _ALONE:
        known = set(_adopted(set()))
        before = _adopts()
        _adopt(1)
        try:
            yield
        finally:
            end_orphans(known)
            _adopt(before)


def end_orphans(known: set[int]) -> None:
    """Kills children in other sessions than ours, but for the `known`, with all that descends from them.

    A look may miss one whose parent ends meanwhile: two in a row have to find none.
    """
    until = time.monotonic() + SECONDS
    missed = 0
    while missed < _LOOKS and not _childless() and time.monotonic() < until:
        processes = living()
        roots = _adopted(known, processes)
        missed = 0 if roots else missed + 1
        for pid, group in [*((root, processes[root][1]) for root in roots), *below(roots, processes)]:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            if group != os.getpgrp():           # dies at once, where a single process may fork meanwhile
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        time.sleep(0.005)
        for pid in roots:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def _childless() -> bool:
    """Whether this process has no child at all."""
    with suppress(AttributeError):      # of systems without waitid
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
    return False


def _adopted(known: set[int], processes: dict[int, tuple[int, int, int]] | None = None) -> set[int]:
    """Living children of this process in sessions of their own: no process can enter ours from another."""
    own, session = os.getpid(), os.getsid(0) if hasattr(os, "getsid") else 0
    found = living() if processes is None else processes
    return {pid for pid, (parent, _, its) in found.items() if parent == own and its != session and pid not in known}


def _adopts() -> int:
    """1 where orphans come to this process already."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        found = ctypes.c_int(0)
        ctypes.CDLL(None).prctl(_GET, ctypes.byref(found), 0, 0, 0)
        return found.value
    return 0


def _adopt(wanted: int) -> None:
    """Makes orphans below this process its children (1), or no longer (0)."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_SET, wanted, 0, 0, 0)
