"""What a bad server does, one record per fault, applied to the answers of a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from threading import Lock

from tests.replay.http import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Alters the answers of paths that match `path` (fnmatch), `times` times (None: always)."""

    path: str
    times: int | None = None
    status: int | None = None                       # answer with this status and no body
    headers: tuple[tuple[str, str], ...] = ()
    body: Callable[[bytes], bytes] | None = None    # alter the body
    cut: int | None = None                          # send so many bytes of the announced length, then hang up
    drip: float | None = None                       # a byte at a time, so many seconds apart


class Faults:
    """The faults of one server, with how often each struck."""

    def __init__(self, *faults: Fault) -> None:
        self._left = [[fault, fault.times] for fault in faults]
        self._lock = Lock()

    def take(self, path: str) -> Fault | None:
        """The fault that strikes this request, used up by one."""
        with self._lock:
            for entry in self._left:
                fault, left = entry
                assert isinstance(fault, Fault)
                if fnmatchcase(path, fault.path) and left != 0:
                    assert left is None or isinstance(left, int)
                    entry[1] = None if left is None else left - 1
                    return fault
        return None


def apply(fault: Fault, answer: Answer) -> Answer:
    """The answer as the bad server gives it."""
    if fault.status is not None:
        return Answer(status=fault.status, headers=fault.headers)
    headers = tuple(pair for pair in answer.headers if pair[0].lower() != "content-encoding" or fault.body is None)
    answer = replace(answer, headers=headers + fault.headers)
    if fault.body is not None:
        answer = replace(answer, body=fault.body(answer.body))
    if fault.cut is not None:
        answer = replace(answer, body=answer.body[: fault.cut], length=len(answer.body))
    return replace(answer, drip=fault.drip)
