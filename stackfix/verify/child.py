"""Runs one script in another Python: a process of its own, with a limit of time, that always ends or is left."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from stackfix.errors import Unreachable
from stackfix.verify.ended import Ended, ended
from stackfix.verify.script import script_of

GRACE = 5.0             # seconds: one that hangs in the kernel does not die of SIGKILL
LINGER = 0.5            # seconds for what a dead child's own children may still hold open
MOST = 1 << 20          # bytes of each stream that are kept, the last ones
PIECE = 1 << 16


@dataclass(slots=True, kw_only=True)
class Streams:
    """The pipes of a child: the script goes in as it is read, and what comes is kept."""

    process: subprocess.Popen[bytes]
    script: bytes
    kept: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __post_init__(self) -> None:
        for stream, name, event in ((self.process.stdin, "stdin", selectors.EVENT_WRITE),
                                    (self.process.stdout, "stdout", selectors.EVENT_READ),
                                    (self.process.stderr, "stderr", selectors.EVENT_READ)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self.selector.register(stream, event, name)

    def until(self, end: float) -> None:
        """Moves bytes until the child has closed its ends and died, or until that time."""
        died: float | None = None
        while (left := end - time.monotonic()) > 0:
            if died is None and self.process.poll() is not None:
                died = time.monotonic()
            if died is not None and (not self.selector.get_map() or time.monotonic() - died > LINGER):
                return
            if not self.selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(left)
                continue
            for key, _ in self.selector.select(min(left, 0.05)):
                self.move(key.fileobj, key.data)

    def move(self, stream: Any, name: str) -> None:
        """One piece of one stream."""
        try:
            if name == "stdin":
                self.script = self.script[os.write(stream.fileno(), self.script[:PIECE]):]
                over = not self.script
            else:
                piece = os.read(stream.fileno(), PIECE)
                self.kept[name] = (self.kept[name] + piece)[-MOST:]
                over = not piece
        except BlockingIOError:
            return
        except BrokenPipeError:     # it reads no script: no Python, or one that died at its start
            over = True
        if over:
            self.close(stream)

    def close(self, stream: IO[bytes]) -> None:
        self.selector.unregister(stream)
        with contextlib.suppress(OSError):
            stream.close()

    def close_all(self) -> None:
        for key in list(self.selector.get_map().values()):
            self.close(key.fileobj)     # type: ignore[arg-type]
        self.selector.close()


def run_child(python: str, part: str, request: Mapping[str, Any], environ: Mapping[str, str], *,
              timeout: float) -> Ended:
    """How a child of `python` with the script of `part` ended. Raises Unreachable where it cannot be started."""
    mark = f"stackfix-{secrets.token_hex(8)}"
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            [python, "-B", "-", json.dumps({**request, "mark": mark})], env=dict(environ), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
    except OSError as error:
        raise Unreachable(python, f"cannot be started: {error.strerror}") from error
    streams = Streams(process=process, script=script_of(part).encode())
    try:
        streams.until(begin + timeout)
        timed_out = process.poll() is None
    finally:
        left_behind = end(process)
        streams.close_all()
    return ended(text(streams.kept["stdout"]), mark, status=process.returncode or 0, timed_out=timed_out,
                 left_behind=left_behind, said=text(streams.kept["stderr"]), seconds=time.monotonic() - begin)


def end(process: subprocess.Popen[bytes]) -> int | None:
    """Ends a child with all that it has started; its process id where it cannot be ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        return process.pid
    return None


def text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
