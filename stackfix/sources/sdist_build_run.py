"""Runs one command of a build: bounded in time and in what is kept of its output, and nothing of it stays behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.quick import dataclass
from stackfix.sources.sdist_build_orphans import orphans_ended

KEPT = 64 * 1024        # bytes of the output that are kept, the last ones
GRACE = 25.0            # seconds in which the watching child ends all that the command started
_CHILD = str(Path(__file__).with_name("sdist_build_child.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    said: str                       # the end of what it said, on either stream
    too_long: bool = False          # it was ended at its time limit


def run_bounded(
    words: Sequence[str], *, environ: Mapping[str, str], folder: Path, until: float,
    leftovers: Sequence[Path] = (),
) -> Ended:
    """How the command ended in `folder`, killed with all its descendants at `until` (of time.monotonic()).

    It has no input, and `environ` alone. Should this process die, a child of it ends the command and removes these
    `leftovers`; should the command kill that child, this process ends what is left.
    """
    with orphans_ended():
        return _run(words, environ=environ, folder=folder, until=until, leftovers=leftovers)


def _run(
    words: Sequence[str], *, environ: Mapping[str, str], folder: Path, until: float, leftovers: Sequence[Path],
) -> Ended:
    """How the command ended, by its watching child."""
    watched = [sys.executable, "-I", "-S", _CHILD, os.pathsep.join(map(str, leftovers)), *words]
    try:
        process = subprocess.Popen(
            watched, env=dict(environ), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=0, start_new_session=True)
    except OSError as error:
        raise Unreachable(sys.executable, f"cannot be started: {error.strerror}") from error
    said = bytearray()
    try:
        _listen(process, said, until)
        too_long = process.poll() is None
    finally:
        _end(process)
    return Ended(status=process.returncode or 0, said=said.decode("utf-8", "replace"), too_long=too_long)


def _listen(process: subprocess.Popen[bytes], said: bytearray, until: float) -> None:
    """Takes in what is said until the command has ended, or until that time."""
    stream = process.stdout
    open_ = stream is not None
    while (left := until - time.monotonic()) > 0:
        if not open_:
            with suppress(subprocess.TimeoutExpired):
                process.wait(left)
            return
        ended = process.poll() is not None
        if stream is not None and select.select([stream], [], [], 0.0 if ended else min(left, 0.2))[0]:
            piece = os.read(stream.fileno(), 65536)
            said += piece
            del said[:-KEPT]
            open_ = bool(piece)
        elif ended:         # somebody else may hold the pipe open; nothing more is waited for
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what still runs: the child sees its input closed."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
