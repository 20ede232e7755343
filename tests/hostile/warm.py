"""Runs `stackfix lock` once per line of its input, each in a fork of a process that has imported everything.

A scenario then costs a tenth of a second and not a whole start, and its memory and its end are its own. Each line in
is a JSON object (words, environ, cwd, out, err, patience, hurry, limits), each line out one of status, peak, killed.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import threading
import time
from contextlib import redirect_stderr
from dataclasses import replace
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

IMPORTED = (
    "packaging.metadata", "resolvelib", "click", "email.utils", "urllib.parse", "ipaddress", "html", "gzip", "tarfile",
    "zipfile", "ssl", "rich.console", "stackfix.cli.app", "stackfix.cli.lock", "stackfix.cli.early",
    "stackfix.cli.wiring", "stackfix.cli.wiring_conda", "stackfix.resolve.decide", "stackfix.sources.index",
    "stackfix.sources.releases", "stackfix.sources.torch_index", "stackfix.sources.archives", "stackfix.write.files",
)
MOST_MEMORY = 12 << 30      # of addresses, threads' stacks among them: what is far beyond every bound ends there


def main() -> None:
    """Answers until its input ends."""
    for name in IMPORTED:
        import_module(name)
    rehearse()
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(measured(json.loads(line))) + "\n")
        sys.stdout.flush()


def rehearse() -> None:
    """Asks nobody, and fails: what a lock reads before it asks is read now, once."""
    from stackfix.cli.app import run

    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        run(["lock", "--torch", "2.3", "--python", "3.11", "--offline", "--cache-dir", folder, "-o", folder,
             "--index-url", "http://127.0.0.1:9/simple", "--format", "requirements", "--no-flash-attn"])
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(5)


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """The exit status of one command, the most memory it held (bytes), and whether it had to be killed."""
    child = os.fork()
    if not child:
        serve(asked)
    until, killed = time.monotonic() + asked["patience"], False
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            break
        if not killed and time.monotonic() > until:
            killed = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    return {"status": os.waitstatus_to_exitcode(status), "peak": usage.ru_maxrss * 1024, "killed": killed}


def serve(asked: dict[str, Any]) -> None:
    """The command in this process, which ends with it."""
    status = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        os.environ.clear()
        os.environ.update(asked["environ"])
        os.chdir(asked["cwd"])
        for number, path in ((1, asked["out"]), (2, asked["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        hasten(asked["hurry"], f"{asked['err']}.hasten")
        narrow(asked["limits"])
        sys.argv = ["stackfix", *asked["words"]]
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  # until the process ends
        status = command()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def command() -> int:
    """The exit status of what stands in sys.argv; a bug is told as Python tells it."""
    from stackfix.cli import main as entry

    try:
        entry()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # the whole of it is what the test wants to see
        import traceback

        traceback.print_exc()
        return 70
    return 0


def hasten(times: float, sign: str) -> None:
    """Lets time run faster for the client once there is the file `sign`: what drips for ever is given up, too."""
    real, since = time.monotonic, [0.0]

    def fast() -> float:
        now = real()
        if not since[0]:
            if not os.path.exists(sign):  # noqa: PTH110  # asked thousands of times
                return now
            since[0] = now
        return since[0] + (now - since[0]) * times
    if times != 1:
        time.monotonic = fast


def narrow(limits: dict[str, int]) -> None:
    """Lets a lock read less in all: what has no end is given up in a test, too."""
    if limits:
        from stackfix.sources.answers import LIMITS
        from stackfix.sources.index import PackageIndex

        defaults = PackageIndex.__init__.__kwdefaults__
        assert defaults is not None
        defaults["limits"] = replace(LIMITS, **limits)


if __name__ == "__main__":
    main()
