"""The journal of one transaction: JSON lines, each on the disk before what it says is done."""

from __future__ import annotations

import contextlib
import json
import os
from typing import get_args

from stackfix.apply import syscalls
from stackfix.apply.errors import JournalDamaged
from stackfix.apply.journal_records import FORMAT, Begin, Doing, Expanded, Line, Move
from stackfix.apply.tree import Tree, is_below, join, parts_of
from stackfix.errors import BadInput
from stackfix.inspect.plain import from_json, to_json

NAME = "journal"
KINDS = {kind.__name__: kind for kind in get_args(Line)}


class Journal:
    """Appends lines; `close` it."""

    def __init__(self, tree: Tree, home: str, *, fresh: bool = False) -> None:
        self._path = join(home, NAME)
        with tree.folder(home) as folder:
            if fresh:
                self._descriptor = syscalls.create(NAME, folder=folder)     # writes go on where the last one ended
                syscalls.sync(folder)
                return
            self._descriptor = os.open(NAME, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            whole = whole_length(tree.read(join(home, NAME)))
            if whole < os.fstat(self._descriptor).st_size:      # a line that a kill cut short: it was never acted on
                syscalls.cut(self._descriptor, whole)

    def append(self, line: Line) -> None:
        """Writes a line and brings it to the disk. Raises OSError."""
        text = json.dumps(to_json(line), separators=(",", ":")) + "\n"
        before = os.fstat(self._descriptor).st_size
        try:
            syscalls.write(self._descriptor, text.encode("ascii"))
            syscalls.sync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):      # a full disk took a part: the next line must not follow it
                syscalls.cut(self._descriptor, before)
            error.filename = self._path
            raise

    def close(self) -> None:
        os.close(self._descriptor)


def whole_length(content: bytes) -> int:
    """Bytes up to the end of the last whole line."""
    return content.rfind(b"\n") + 1


def read_journal(tree: Tree, home: str) -> tuple[Line, ...]:
    """All whole lines; none where there is no journal yet. Raises JournalDamaged."""
    path = join(home, NAME)
    try:
        content = tree.read(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise damaged(tree, path, f"cannot be read: {error.strerror}") from error
    lines = content[:whole_length(content)].splitlines()
    read = tuple(parse_line(tree, path, number, line) for number, line in enumerate(lines, start=1))
    if read and not isinstance(read[0], Begin):
        raise damaged(tree, path, "does not begin as a journal does")
    return read


def parse_line(tree: Tree, path: str, number: int, content: bytes) -> Line:
    """One record. Raises JournalDamaged for anything else, and for a path that leads out."""
    try:
        value = json.loads(content)
        name = value.get("is") if isinstance(value, dict) else None
        if name == Begin.__name__ and value.get("format") != FORMAT:
            raise damaged(tree, path, f"has format {value.get('format')!r:.20}, which this stackfix does not know")
        if name not in KINDS:
            raise damaged(tree, path, f"line {number} is none that is known")
        line: Line = from_json(value, KINDS[name])
        check_paths(line)
    except (ValueError, RecursionError, BadInput) as error:
        raise damaged(tree, path, f"line {number} cannot be read: {error}") from error
    return line


def check_paths(line: Line) -> None:
    """Raises BadInput for a path that no transaction of ours has: a prefix may come from anywhere."""
    if isinstance(line, Doing):
        for each in line.moves:
            check_move(each)
    elif isinstance(line, Expanded):
        check_place(line.path, line.store)


def check_move(each: Move) -> None:
    check_place(each.path, each.store)
    if each.kind not in {"aside", "place"}:
        raise BadInput(each.path, f"is moved as {each.kind!r:.20}")
    for entry in each.entries:
        parts_of(entry.path)


def check_place(path: str, store: str) -> None:
    if not parts_of(path) or is_below(path, ".stackfix"):
        raise BadInput(repr(path), "is not a place of a move")
    if parts_of(store)[:1] not in (["kept"], ["new"]) or len(parts_of(store)) == 1:
        raise BadInput(repr(store), "is not a place of a kept or a new file")


def damaged(tree: Tree, path: str, reason: str) -> JournalDamaged:
    home = path.rpartition("/")[0]
    return JournalDamaged(f"{tree.prefix}/{path}", reason,
                          f"what it had moved aside is in {home}/kept, under its own path: put back what you need, "
                          f"then delete {home}")
