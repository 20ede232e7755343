"""How a child process answers: lines of JSON on what was its standard output. Runs in any Python from 3.7 on.

A child's script is made of the text of this module and of others (`script.py`), so that the environment that is probed
needs nothing of ours.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import sys
from collections.abc import Callable
from typing import Any

KILL = 9
SET_PARENT_DEATH_SIGNAL = 1     # prctl(2)
MOST_TEXT = 4000                # characters of one error
MOST_ERRORS = 6                 # of a chain of them


class Talk:
    """Where a child tells how far it is, and at last what it found."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._mark: str = request["mark"]
        self._stack = re.compile(request["stack"])
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
        os.dup2(2, 1)           # what packages print, in Python or in C, is no answer

    def at(self, stage: str) -> None:
        """Says what is tried next: all that is known of a child that dies or hangs in it."""
        self._say({"at": stage})

    def answer(self, facts: dict[str, Any]) -> None:
        """Says what came of it."""
        self._say({"answer": facts})

    def _say(self, message: dict[str, Any]) -> None:
        message["mapped"] = mapped(self._stack)
        # The line feed before it: something may have been printed without one before this process was ours.
        self._stream.write(f"\n{self._mark} {json.dumps(message)}\n")
        self._stream.flush()


def mapped(stack: re.Pattern[str]) -> list[str]:
    """Files that this process has mapped and whose names `stack` matches, each once."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123 - start-up counts
        for line in lines:
            parts = line.rstrip("\n").split(None, 5)
            path = parts[5] if len(parts) == 6 else ""
            if path.startswith("/") and path not in found and stack.match(path.rpartition("/")[2]):
                found.append(path)
    return found


def chain_of(error: BaseException) -> list[dict[str, str]]:
    """An exception and what led to it, the one that was raised first in front."""
    told: list[dict[str, str]] = []
    current: Any = error
    while current is not None and len(told) < MOST_ERRORS:
        told.append({"type": type(current).__name__, "text": str(current)[:MOST_TEXT]})
        current = current.__cause__ or current.__context__
    return told


def alone() -> None:
    """This process dies with the one that asks, and writes no core file."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, KILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def run(part: Callable[[dict[str, Any], Talk], dict[str, Any]]) -> None:
    """The whole of a child: the request is its argument."""
    alone()
    request = json.loads(sys.argv[1])
    sys.argv[1:] = []
    talk = Talk(request)
    try:
        facts = part(request, talk)
    except BaseException as error:      # noqa: BLE001 - whatever a package raises, SystemExit too, is the answer
        facts = {"raised": chain_of(error)}
    talk.answer(facts)
