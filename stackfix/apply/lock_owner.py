"""Who holds a lock, and whether that process is known to be dead."""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One process, so that another one, also on another host, can tell whether it is the same."""

    token: str                      # of this lock alone
    host: str
    machine: str                    # /etc/machine-id: two containers may have one host name
    boot: str                       # of the kernel: process numbers start anew
    space: str                      # PID namespace: in another one the number is another process
    pid: int
    started: str                    # in clock ticks since boot: numbers are used again

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Owner:
    """This process, with a fresh token."""
    return Owner(
        token=secrets.token_hex(8), host=socket.gethostname(), machine=line_of("/etc/machine-id"),
        boot=line_of("/proc/sys/kernel/random/boot_id"), space=space_of_processes(), pid=os.getpid(),
        started=started_at(os.getpid()) or "",
    )


def is_dead(owner: Owner) -> bool:
    """Whether the process is known to be gone. One of another host, or of another container, never is."""
    here = this_process()
    if (owner.host, owner.machine) != (here.host, here.machine):
        return False
    if owner.boot != here.boot:
        return True
    if owner.space != here.space or not owner.space:
        return False
    started = started_at(owner.pid)
    return started != owner.started and not (started is None and is_hidden(owner.pid))


def is_hidden(pid: int) -> bool:
    """Whether there is a process that we may not look at: /proc may be mounted with hidepid."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def started_at(pid: int) -> str | None:
    """When a process started; None where there is none. A zombie is none: it does nothing any more."""
    text = line_of(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split()    # the name before may hold blanks and brackets
    if len(fields) < 20 or fields[0] in {"Z", "X"}:
        return None
    return fields[19]


def space_of_processes() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")         # noqa: PTH115 - text, no path
    except OSError:
        return ""


def line_of(path: str) -> str:
    """The first line of a small file; empty where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return stream.readline(4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def to_bytes(owner: Owner) -> bytes:
    return (json.dumps(asdict(owner), sort_keys=True) + "\n").encode()


def parse_owner(content: bytes) -> Owner | None:
    """The owner that a lock file names; None where it is not whole, or not ours."""
    try:
        read: Any = json.loads(content)
        owner = Owner(**read)
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (owner.token, owner.host, owner.machine, owner.boot, owner.space, owner.started)
    whole = all(isinstance(text, str) for text in texts) and isinstance(owner.pid, int)
    return owner if whole and owner.token.isalnum() else None
