"""Second steps that a new lock leaves behind: a file nobody should install any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from stackfix.errors import StackfixError
from stackfix.write.names import SECOND_STEP
from stackfix.write.read import read_text
from stackfix.write.records import PlannedFile

SECOND_STEP_NAME = re.compile(rf"requirements-{SECOND_STEP}(?:-[A-Za-z0-9_-]+)?\.txt")
AFTER = re.compile(r"# second step of: (?P<first>\S+)")
HEADER_LINES = 20


def stale_second_steps(directory: Path, files: Iterable[PlannedFile]) -> Iterator[tuple[str, int, str]]:
    """(name, line number, line) of each second step that follows one of `files` and is not among them.

    A file whose header does not say that it follows one of them is somebody else's.
    """
    planned = {file.path for file in files}
    for name in sorted(present(directory) - planned):
        for number, line in enumerate(header(directory / name), start=1):
            match = AFTER.fullmatch(line)
            if match and match["first"] in planned:
                yield name, number, line
                break


def present(directory: Path) -> set[str]:
    """Names of the folder's regular files that could be second steps; none where there is no folder."""
    try:
        return {path.name for path in directory.iterdir()
                if SECOND_STEP_NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink()}
    except OSError:
        return set()


def header(path: Path) -> list[str]:
    """The file's leading comment lines; none where it cannot be read."""
    try:
        lines = read_text(path).split("\n")[:HEADER_LINES]
    except StackfixError:
        return []
    end = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return lines[:end]
