"""Opens shared objects in a process that has imported torch, each in a fork of its own. Runs without stackfix.

A job is a JSON line {"path": FILE, "siblings": {NAME: FILE}}, an answer is one too; the first line of all tells torch.
"""

from __future__ import annotations

import _ctypes
import json
import os
import re
import select
import signal
import sys
from pathlib import Path

TIMEOUT = 120
NO_LIBRARY = re.compile(r"(?P<library>[^/\s:]+): cannot open shared object file")
NO_SYMBOL = re.compile(r"(?P<file>.+?): undefined symbol: (?P<symbol>[^,\s]+)(?:, version (?P<version>\S+))?")
NO_VERSION = re.compile(r"(?P<file>.+?): version `(?P<version>[^']+)' not found")


def open_now(path: str, siblings: dict[str, str], loading: tuple[str, ...] = ()) -> dict[str, str]:
    """What the loader says. A library of the same wheel that it does not find is opened by its path, and again."""
    tried: set[str] = set()
    while True:
        try:
            _ctypes.dlopen(path, os.RTLD_NOW | (os.RTLD_GLOBAL if loading else 0))
        except OSError as error:
            told = str(error)
        else:
            return {"outcome": "loads"}
        lost = NO_LIBRARY.match(told)
        name = lost["library"] if lost else ""
        if name not in siblings or name in tried or siblings[name] in loading:
            return outcome(told)
        tried.add(name)
        found = open_now(siblings[name], siblings, (*loading, path))
        if found["outcome"] != "loads":
            return found


def outcome(told: str) -> dict[str, str]:
    """The loader's words as a record."""
    for kind, pattern in (("library", NO_LIBRARY), ("symbol", NO_SYMBOL), ("version", NO_VERSION)):
        match = pattern.match(told)
        if match:
            return {"outcome": kind, **{key: value for key, value in match.groupdict().items() if value}}
    return {"outcome": "other", "told": told}


def in_a_fork(path: str, siblings: dict[str, str]) -> dict[str, str]:
    """The same, in a fork: what one file's initialisers do is seen by no other file."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.write(writing, json.dumps(open_now(path, siblings)).encode())
        os._exit(0)
    os.close(writing)
    answer = b""
    while select.select([reading], [], [], TIMEOUT)[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        answer += part
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if answer:
        found: dict[str, str] = json.loads(answer)
        return found
    return {"outcome": "timeout" if status == -signal.SIGKILL else "crash", "told": f"exit status {status}"}


def main() -> None:
    import torch  # type: ignore[import-not-found,unused-ignore]    # of the environment under test

    sys.stdout.write(json.dumps({"torch": str(torch.__version__)}) + "\n")
    sys.stdout.flush()
    # torch opens the libraries of NVIDIA's wheels by path where the loader does not find them; so do extensions
    site = Path(torch.__file__).parent.parent
    wheels = {path.name: str(path) for path in sorted(site.glob("nvidia/*/lib/*.so*"))}
    for line in sys.stdin:
        job = json.loads(line)
        sys.stdout.write(json.dumps(in_a_fork(job["path"], {**wheels, **job["siblings"]})) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
