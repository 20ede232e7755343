"""Files that a new lock leaves behind: ones nobody should install any more."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from stackfix.errors import StackfixError
from stackfix.write.foreign import read_pylock
from stackfix.write.names import SECOND_STEP, TARGET
from stackfix.write.read import read_text, variant_of
from stackfix.write.records import PlannedFile
from stackfix.write.requirements import FIRST_WORDS

SECOND_STEP_NAME = re.compile(rf"requirements-{SECOND_STEP}(?:-[A-Za-z0-9_-]+)?\.txt")
PYLOCK_NAME = re.compile(r"pylock(?:\.(?P<name>[A-Za-z0-9_-]+))?\.toml")
# One file a target, as earlier releases wrote it; one a variant, as it is written where no marker tells two apart
APART = re.compile(r"(?:^|-)(?:cp3\d{1,3}-[a-z]+-[a-z0-9]+|(?P<variant>cpu))$")
AFTER = re.compile(r"# second step of: (?P<first>\S+)")
HEADER_LINES = 20
# Files that carry a target or a Python in their names where the lock has several; explicit files are told by platform
PARTED = tuple(map(re.compile, (
    r"(?P<kind>requirements|constraints)(?:-(?P<suffix>[A-Za-z0-9_-]+))?\.txt",
    r"(?P<kind>environment)(?:-(?P<suffix>[A-Za-z0-9_-]+))?\.yml",
    r"(?:(?P<suffix>[A-Za-z0-9_-]+)\.)?(?P<kind>conda-lock)\.yml",
    r"(?:(?P<suffix>[A-Za-z0-9_-]+)\.)?(?P<kind>conda-[a-z]+-[a-z0-9]+)\.lock",
)))


def stale_files(
    directory: Path, files: Iterable[PlannedFile], inputs: Iterable[Path] = (),
) -> Iterator[tuple[str, int, str]]:
    """(name, line number, line) of each file of an earlier lock that `files` take the place of: the line says so.

    `inputs` are files that the request was read from: what is asked by is not left behind.
    """
    planned = {file.path: file.text for file in files}
    parts = tuple(stale_parts(directory, planned, inputs))
    yield from parts
    yield from stale_second_steps(directory, planned, gone={name for name, _, _ in parts})
    yield from stale_pylocks(directory, planned)


def stale_parts(
    directory: Path, planned: Mapping[str, str], inputs: Iterable[Path] = (),
) -> Iterator[tuple[str, int, str]]:
    """Each file of ours of the same kind and name as some of `planned`, for targets that are not locked any more."""
    held = {lock_of(path) for path in planned} - {None}
    there = {name for pattern in PARTED for name in present(directory, pattern)} if held else set()
    read = tuple(inputs)
    for name in sorted(there - planned.keys()):
        if lock_of(name) in held and not any(is_same(directory / name, path) for path in read):
            for number, line in enumerate(header(directory / name), start=1):
                if line.startswith(f"# {FIRST_WORDS} "):
                    yield name, number, line
                    break


def lock_of(path: str) -> tuple[str, str] | None:
    """(kind, name) of a lock's file, without its target; None for second steps and for what is one file in any case."""
    match = next((match for pattern in PARTED if (match := pattern.fullmatch(path))), None)
    suffix = (match["suffix"] or "") if match else ""
    if match is None or suffix == SECOND_STEP or suffix.startswith(f"{SECOND_STEP}-"):
        return None
    return match["kind"], TARGET.sub("", suffix)


def stale_second_steps(
    directory: Path, planned: Mapping[str, str], gone: Collection[str] = (),
) -> Iterator[tuple[str, int, str]]:
    """Each second step that follows one of `planned` and is not among them, or one that is `gone`.

    A file whose header does not say that it follows one of them is somebody else's.
    """
    for name in sorted(present(directory, SECOND_STEP_NAME) - planned.keys()):
        for number, line in enumerate(header(directory / name), start=1):
            match = AFTER.fullmatch(line)
            if match and (match["first"] in planned or match["first"] in gone):
                yield name, number, line
                break


def stale_pylocks(directory: Path, planned: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Each pylock of ours, of the same name, for a variant alone or for some of the environments of `planned`."""
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
        held = isinstance(markers, list) and markers and all(f'"{marker}"' in text for marker in markers)
        if held or apart["variant"]:
            yield file, *first_line(directory / file, '"python_version')


def is_same(place: Path, path: Path) -> bool:
    """Whether both are there and are one file, through links too."""
    try:
        return place.samefile(path)
    except OSError:
        return False            # missing, or a link to itself: replace_files says so


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
