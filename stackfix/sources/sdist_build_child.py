"""Runs one command and ends everything that it started, whatever happens to whoever asked.

    python -I -S sdist_build_child.py FOLDERS COMMAND ...

Its standard input is a pipe that says nothing: once it is closed, by hand or because the asking process is gone, all
is killed and the FOLDERS (as in PATH) are removed. Standard library only: it runs as a file of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

LARGEST = 2 << 30           # bytes of one file that the command may write
SECONDS = 20.0              # for what does not die of SIGKILL at once
GONE = 143                  # status where it was told to end
_SUBREAPER = 36             # PR_SET_CHILD_SUBREAPER of prctl(2)
_TOLD = threading.Event()   # set once it is told to end


def main(words: list[str]) -> int:
    """Exit status of the command; 128 and the signal's number where a signal ended it, as a shell says it."""
    limit_files()
    adopt_orphans()
    try:
        child = subprocess.Popen(words[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{words[1]} cannot be started: {error.strerror}\n")
        return 127
    with suppress(OSError):     # where memory is short, it and what it starts go first
        Path(f"/proc/{child.pid}/oom_score_adj").write_text("1000", encoding="ascii")
    threading.Thread(target=watch, args=(child, words[0]), daemon=True).start()
    status = child.wait()
    end_all(child.pid)
    if _TOLD.is_set():
        threading.Event().wait()        # for the watching thread, which ends the process
    return status if status >= 0 else 128 - status


def watch(child: subprocess.Popen[bytes], folders: str) -> None:
    """Ends all once the other end of standard input is closed."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    _TOLD.set()
    end_all(child.pid)
    for folder in filter(None, folders.split(os.pathsep)):
        remove(folder)
    os._exit(GONE)


def remove(folder: str) -> None:
    """Removes a folder as far as it can be, however deep it is."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:      # before Python 3.13, from some hundred folders on
        with suppress(OSError):
            subprocess.run(["/bin/rm", "-rf", "--", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)


def limit_files() -> None:
    """No file beyond LARGEST, no core dump."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        most = LARGEST if hard == resource.RLIM_INFINITY else min(LARGEST, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def adopt_orphans() -> None:
    """Whoever leaves its session and its parent becomes a child of this process: so none gets away (Linux)."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_all(first: int) -> None:
    """Kills the command's session and all descendants, again until none is left.

    A look at all processes may miss one whose parent ends meanwhile. That no child is left is no matter of looking:
    whoever lives has a living parent below this process, or is its child.
    """
    until = time.monotonic() + SECONDS
    with suppress(OSError):
        os.killpg(first, signal.SIGKILL)
    while time.monotonic() < until:
        for pid, group in descendants():        # by group as well: a group dies at once, one process may fork meanwhile
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            if group != os.getpgrp():
                with suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def descendants() -> list[tuple[int, int]]:
    """(process, its group) of all living descendants of this one; [] where the system has no /proc."""
    return below({os.getpid()}, living())


def living() -> dict[int, tuple[int, int, int]]:
    """Parent, group and session of each process that lives; {} where the system has no /proc."""
    found: dict[int, tuple[int, int, int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            state, parent, group, session = entry.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if state != "Z":
                found[int(entry.parent.name)] = (int(parent), int(group), int(session))
    return found


def below(roots: set[int], processes: dict[int, tuple[int, int, int]]) -> list[tuple[int, int]]:
    """(process, its group) of all that descend from `roots`."""
    found: list[tuple[int, int]] = []
    known = set(roots)
    more = True
    while more:
        new = [(pid, group) for pid, (parent, group, _) in processes.items() if parent in known and pid not in known]
        known.update(pid for pid, _ in new)
        found += new
        more = bool(new)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
