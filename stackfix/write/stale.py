"""Files that a new lock leaves behind: ones nobody should install any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stackfix.errors import StackfixError
from stackfix.write.foreign import read_pylock
from stackfix.write.names import SECOND_STEP
from stackfix.write.read import read_text, variant_of
from stackfix.write.records import PlannedFile

SECOND_STEP_NAME = re.compile(rf"requirements-{SECOND_STEP}(?:-[A-Za-z0-9_-]+)?\.txt")
PYLOCK_NAME = re.compile(r"pylock(?:\.(?P<name>[A-Za-z0-9_-]+))?\.toml")
# One file a target, as earlier releases wrote it; one a variant, as it is written where no marker tells two apart
APART = re.compile(r"(?:^|-)(?:cp3\d{1,3}-[a-z]+-[a-z0-9]+|(?P<variant>cpu))$")
AFTER = re.compile(r"# second step of: (?P<first>\S+)")
HEADER_LINES = 20


def stale_files(directory: Path, files: Iterable[PlannedFile]) -> Iterator[tuple[str, int, str]]:
    """(name, line number, line) of each file of an earlier lock that `files` take the place of: the line says so."""
    planned = {file.path: file.text for file in files}
    yield from stale_second_steps(directory, planned)
    yield from stale_pylocks(directory, planned)


def stale_second_steps(directory: Path, planned: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Each second step that follows one of `planned` and is not among them.

    A file whose header does not say that it follows one of them is somebody else's.
    """
    for name in sorted(present(directory, SECOND_STEP_NAME) - planned.keys()):
        for number, line in enumerate(header(directory / name), start=1):
            match = AFTER.fullmatch(line)
            if match and match["first"] in planned:
                yield name, number, line
                break


def stale_pylocks(directory: Path, planned: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Each pylock of ours for some of the environments of `planned` alone, of the same name."""
    names = {match["name"] or "": text for path, text in planned.items() if (match := PYLOCK_NAME.fullmatch(path))}
    if not names:
        return
    for file in sorted(present(directory, PYLOCK_NAME) - planned.keys()):
        match = PYLOCK_NAME.fullmatch(file)
        name = match["name"] or "" if match else ""
        apart = APART.search(name)
        text = names.get(name[:apart.start()]) if apart else None
        if apart is None or text is None:
            continue
        document = read_pylock(directory / file)
        markers = document.get("environments")
        if document.get("created-by") != "stackfix" or variant_of(document) != (apart["variant"] or ""):
            continue
        if isinstance(markers, list) and markers and all(f'"{marker}"' in text for marker in markers):
            yield file, *first_line(directory / file, '"python_version')


def first_line(path: Path, start: str) -> tuple[int, str]:
    """The first line that starts so, blanks aside, with its number."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.lstrip().startswith(start):
            return number, line
    return 1, ""


def present(directory: Path, pattern: re.Pattern[str]) -> set[str]:
    """The folder's regular files whose whole name is `pattern`; none where there is no folder."""
    try:
        return {path.name for path in directory.iterdir()
                if pattern.fullmatch(path.name) and path.is_file() and not path.is_symlink()}
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
