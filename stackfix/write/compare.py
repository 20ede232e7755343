"""Lockfiles as they should be against the files that are there, for `lock --check`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from stackfix.write.read import read_text
from stackfix.write.records import Difference, PlannedFile
from stackfix.write.stale import stale_files

__all__ = ["Difference", "compare"]

KEYS = 3                        # lines below [[packages]] that say which it is
TEXT = re.compile(r'(?P<key>name|marker) = "(?P<value>[^"]*)"')
SHOWN = 300                     # characters of a marker: it is told again with each line of its package
MOST_CELLS = 4_000_000          # found x expected lines that are still aligned; beyond, they are paired in order


def compare(
    directory: Path, files: Iterable[PlannedFile], inputs: Iterable[Path] = (),
) -> tuple[Difference, ...]:
    """Each line that differs: pins, hashes, markers, URLs, `# via` notes, the target and the second step.

    What an earlier lock has left is named too: files of other targets, a second step that is no longer one, a pylock
    that these take the place of; none of `inputs`. The command in a file's header is not compared: another way to ask
    the same is no difference.
    """
    planned = tuple(files)
    stale = (Difference(path=name, line=number, found=line, expected=None)
             for name, number, line in stale_files(directory, planned, inputs))
    return (*(difference for file in planned for difference in compare_file(directory, file)), *stale)


def compare_file(directory: Path, file: PlannedFile) -> Iterator[Difference]:
    """The differences of one file."""
    path = directory / file.path
    if not path.is_file() and not path.exists():
        yield Difference(path=file.path, line=None, found=None, expected=None)
        return
    text = read_text(path)
    found = compare_lines(file.path, compared_lines(text), compared_lines(file.text))
    if not file.path.endswith(".toml"):
        yield from found
        return
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line == "[[packages]]"]
    yield from (replace(one, about=package_at(lines, starts, one.line or 1)) for one in found)


def package_at(lines: list[str], starts: list[int], number: int) -> str | None:
    """`torch (sys_platform == 'linux')` for a line of a pylock: what it belongs to; None before the first package."""
    place = bisect_right(starts, number - 1)
    if place == 0:
        return None
    first = starts[place - 1] + 1
    stated = {match["key"]: match["value"] for line in lines[first:first + KEYS] if (match := TEXT.fullmatch(line))}
    marker = stated.get("marker", "")
    behind = f" ({marker[:SHOWN]}{'…' if len(marker) > SHOWN else ''})" if marker else ""
    return f"{stated.get('name', '?')}{behind}"


def compared_lines(text: str) -> list[tuple[int, str]]:
    """(number, line) of what counts: not the command that the header quotes."""
    lines = list(enumerate(text.split("\n"), start=1))
    if lines and lines[-1][1] == "":
        lines.pop()             # what follows the last newline
    body = next((index for index, (_, line) in enumerate(lines) if not line.startswith("#")), len(lines))
    header = [pair for pair in lines[:body] if not pair[1].startswith("#    ")]
    return header + lines[body:]


def compare_lines(
    path: str, found: list[tuple[int, str]], expected: list[tuple[int, str]],
) -> Iterator[Difference]:
    """Differences of two lists of numbered lines, in the order of the file."""
    old, new = [line for _, line in found], [line for _, line in expected]
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    room = min(len(old), len(new)) - start
    end = next((i for i in range(room) if old[-1 - i] != new[-1 - i]), room)
    middle_old, middle_new = old[start:len(old) - end], new[start:len(new) - end]
    last = found[-1][0] if found else 0
    for old_from, old_to, new_from, new_to in changed_blocks(middle_old, middle_new):
        for offset in range(max(old_to - old_from, new_to - new_from)):
            index = start + old_from + offset
            has_old, has_new = old_from + offset < old_to, new_from + offset < new_to
            yield Difference(
                path=path,
                line=found[index][0] if index < len(found) else last + 1,
                found=middle_old[old_from + offset] if has_old else None,
                expected=middle_new[new_from + offset] if has_new else None,
            )


def changed_blocks(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """(from, to, from, to) of each run that differs. Aligning is quadratic, so a huge file is one block."""
    if len(old) * len(new) > MOST_CELLS:
        yield 0, len(old), 0, len(new)
        return
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield old_from, old_to, new_from, new_to
