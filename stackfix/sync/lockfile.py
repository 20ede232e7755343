"""A lockfile and its second step, read and checked whole before anything is installed."""

from __future__ import annotations

import re
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.parse import parse_requirements_lock
from stackfix.sync.pylock import parse_pylock
from stackfix.sync.records import Interpreter, Step

NAME = re.compile(r"requirements(?!-flash-attn)(?:-[A-Za-z0-9_-]+)?\.txt|pylock(?:\.[A-Za-z0-9_-]+)?\.toml")
SHOWN = 8                       # names in a hint
LARGEST = 32 * 1024 * 1024      # bytes; a lock of 400 packages has 2 MB


def read_steps(path: Path, interpreter: Interpreter) -> tuple[Step, ...]:
    """The steps to install, one or two. Raises BadInput for a file that is no lock, LockDoesNotFit for another's."""
    if path.suffix == ".toml":
        entries, second = parse_pylock(read_text(path), path.name, interpreter)
        first = Step(path=path, entries=entries, build=False, native=False)
    else:
        first, second = read_requirements_step(path, interpreter)
    if second is None:
        return (first,)
    beside = path.parent / second
    later, after = read_requirements_step(beside, interpreter)
    if not later.build or after is not None:
        raise BadInput(str(beside), f"is not the second step that {path.name} names", "lock again")
    return first, later


def read_requirements_step(path: Path, interpreter: Interpreter) -> tuple[Step, str | None]:
    """One requirements lock, and the name of the file to install after it."""
    lock = parse_requirements_lock(read_text(path), path.name)
    here = (interpreter.python, interpreter.platform)
    if lock.target is not None and (lock.target != here or interpreter.implementation != "cpython"):
        python, platform = lock.target
        raise LockDoesNotFit(
            lock=path.name, locked_for=f"CPython {python} on {platform}",
            environment=f"{interpreter.implementation} {interpreter.python} on {interpreter.platform}")
    if not lock.entries:
        raise BadInput(str(path), "pins nothing", "name a lockfile that `stackfix lock` wrote")
    return Step(path=path, entries=lock.entries, build=lock.is_second_step, native=True), lock.second_step


def hint_for(path: Path) -> str:
    """What to name in place of a file that is none: the lockfiles that lie where it was looked for."""
    try:
        found = sorted(each.name for each in path.parent.iterdir() if NAME.fullmatch(each.name) and each.is_file())
    except OSError:
        found = []
    return f"there is: {', '.join(found[:SHOWN])}" if found else "name a requirements*.txt or pylock*.toml"


def read_text(path: Path) -> str:
    """The file's text. Raises BadInput where it is missing, too large, no text or no file."""
    try:
        if not path.is_file():
            raise BadInput(str(path), "is not a regular file" if path.exists() else "no such lockfile", hint_for(path))
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise BadInput(str(path), f"is larger than {LARGEST // 1024 // 1024} MB: no lockfile is")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}", "is not UTF-8 text") from error
