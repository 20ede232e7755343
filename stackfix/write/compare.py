"""Lockfiles as they should be against the files that are there, for `lock --check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stackfix.write.compare_lines import compare_lines, compared_lines
from stackfix.write.compare_pylock import compare_pylock
from stackfix.write.read import read_text
from stackfix.write.records import Difference, PlannedFile
from stackfix.write.stale import stale_files

__all__ = ["Difference", "compare"]

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
    if file.path.endswith(".toml"):
        yield from compare_pylock(file.path, text, file.text)
        return
    yield from compare_lines(file.path, compared_lines(text), compared_lines(file.text))
