"""Running processes that have files of an environment mapped which are about to change."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from stackfix.apply.records import Process
from stackfix.apply.tree import is_below

PROC = Path("/proc")
LONGEST = 200                   # of a command that is shown


def processes_with(prefix: str, paths: Iterable[str]) -> tuple[Process, ...]:
    """Those, other than ours, that have one of `paths` (relative to `prefix`), or a file below, mapped.

    Processes of other users, whose maps are not ours to read, are not among them.
    """
    places = tuple(f"{prefix.rstrip('/')}/{path}".lstrip("/") for path in paths)
    found = []
    for pid in running() if places else ():
        mapped = tuple(sorted(file for file in set(files_mapped_by(pid))
                              if any(is_below(file.lstrip("/"), place) for place in places)))
        if mapped:
            found.append(Process(pid=pid, command=command_of(pid), files=mapped))
    return tuple(found)


def running() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for folder in sorted(PROC.iterdir()):
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                yield int(folder.name)


def files_mapped_by(pid: int) -> Iterator[str]:
    """Absolute paths, as proc(5) writes them; one whose name is gone already is none that changes."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "maps").read_bytes().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith(b"/") and not fields[5].endswith(b" (deleted)"):
                yield os.fsdecode(fields[5].replace(b"\\012", b"\n"))


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        return " ".join(os.fsdecode(word) for word in words if word)[:LONGEST]
    return ""
