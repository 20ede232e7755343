"""Lines of two texts beside each other: what is found, and what is expected in its place."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from stackfix.write.records import Difference

MOST_CELLS = 4_000_000          # found x expected lines that are still aligned; beyond, they are paired in order
Numbered = tuple[int, str]      # a line with its number in the file, from 1


def compared_lines(text: str) -> list[Numbered]:
    """(number, line) of what counts: not the command that the header quotes."""
    lines = list(enumerate(text.split("\n"), start=1))
    if lines and lines[-1][1] == "":
        lines.pop()             # what follows the last newline
    body = next((index for index, (_, line) in enumerate(lines) if not line.startswith("#")), len(lines))
    header = [pair for pair in lines[:body] if not pair[1].startswith("#    ")]
    return header + lines[body:]


def compare_lines(
    path: str, found: list[Numbered], expected: list[Numbered],
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
