"""What other patch releases of torch have otherwise than the newest of their minor: `matrices/abi/patches.tsv`.

UTF-8 lines of four columns with a tab between them; first of all a line with the columns' names:

    version     the patch release: 2.4.0
    change      `+`: it exports the key, and the newest patch of its minor does not; `-`: the other way round
    key         ABI-neutral name
    library     libraries that export it, in whichever of the two releases does; a space between them
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stackfix.abi.book_format import HINT
from stackfix.abi.records import PatchException
from stackfix.errors import BadInput

COLUMNS = ("version", "change", "key", "library")
VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9][0-9a-z.]{0,20}")


def parse_patches(content: bytes, name: str) -> Mapping[str, tuple[PatchException, ...]]:
    """By version, in the order of the file. Raises BadInput, which names the line, for the first fault."""
    try:
        first, *lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name}:{line}", f"not UTF-8 (byte {error.start})", HINT) from None
    if tuple(first.split("\t")) != COLUMNS:
        raise BadInput(f"{name}:1", f"the columns are not {' '.join(COLUMNS)}", HINT)
    if not lines or lines.pop():
        raise BadInput(f"{name}:{len(lines) + 1}", "the last line does not end", HINT)
    found: dict[str, list[PatchException]] = {}
    for number, row in enumerate(lines, 2):
        columns = row.split("\t")
        if len(columns) != len(COLUMNS):
            raise BadInput(f"{name}:{number}", f"{len(columns)} columns instead of {len(COLUMNS)}", HINT)
        version, change, key, _ = columns
        if not VERSION.fullmatch(version) or change not in {"+", "-"} or not key:
            raise BadInput(f"{name}:{number}", f"{row[:60]!r} is no patch release, change and key", HINT)
        found.setdefault(version, []).append(PatchException(version=version, key=key, exported=change == "+"))
    return {version: tuple(exceptions) for version, exceptions in found.items()}


def render_patches(rows: Iterable[tuple[str, str, str, str]]) -> str:
    """The whole text of such a file, of rows that are in its order."""
    return "".join("\t".join(row) + "\n" for row in (COLUMNS, *rows))


__all__ = ["parse_patches", "render_patches"]
