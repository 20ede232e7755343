"""A text of unknown origin as lines that are safe to judge and to show."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.explain.records import Line, Text
from stackfix.explain.text_prefix import without_frame, without_prefixes
from stackfix.explain.text_wrapped import unwrapped

MOST_BYTES = 4 * 1024 * 1024        # of a text: of a longer one the first eighth and the rest from its end
MOST_LINE = 4096                    # characters of a line; more is not looked at
MOST_LINES = 100_000                # of a text; more are left out in its middle
HEAD = MOST_BYTES // 8

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]",
)
_QUOTES = str.maketrans("\u2018\u2019\u00a0", "'' ")   # what word processors and issue forms make of ' and spaces


def read_text(content: bytes, *, cut: bool = False) -> Text:
    """The lines of a text: UTF-8 or what can be read of it, without colours, controls, prefixes and empty lines.

    What a terminal broke at its width is one line again. `cut`: there was more than `content`.
    """
    lines = bounded(list(unwrapped(list(cleaned(decoded(content))))))
    stripped = ((number, without_prefixes(text.strip())) for number, text in lines)
    return Text(lines=tuple(Line(number=number, text=text) for number, text in stripped if text),
                size=len(content), cut=cut)


def decoded(content: bytes) -> str:
    """The text. UTF-16 with its mark is what PowerShell's `>` writes; without one it is told by its zeros."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    head = content[:4096]
    for encoding, zeros, others in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if len(head) >= 4 and zeros.count(0) * 10 > len(zeros) * 7 and others.count(0) * 10 < len(others):
            return content.decode(encoding, errors="replace")
    return content.decode("utf-8", errors="replace")


def cleaned(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number. A progress bar's carriage returns part lines of one number; repeats are one."""
    text = _UNSAFE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).translate(_QUOTES).replace("\t", "    ")
    before = ""
    for number, raw in enumerate(text.split("\n"), 1):
        for part in raw.split("\r") if "\r" in raw else (raw,):
            shown = part[:MOST_LINE].rstrip(" ") and without_frame(part[:MOST_LINE])
            if shown != before:
                yield number, shown
            before = shown


def bounded(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """All lines, or of too many the first eighth and the last."""
    if len(lines) <= MOST_LINES:
        return lines
    return lines[:MOST_LINES // 8] + lines[-(MOST_LINES - MOST_LINES // 8):]
