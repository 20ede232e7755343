"""A text of unknown origin as lines that are safe to judge and to show."""

from __future__ import annotations

import re

from stackfix.explain.records import Line, Text

MOST_BYTES = 4 * 1024 * 1024        # of a text: of a longer one the first eighth and the rest from its end
MOST_LINE = 4096                    # characters of a line; more is not looked at
HEAD = MOST_BYTES // 8

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_BREAK = re.compile(r"\r\n|\n|\r")  # a progress bar's carriage returns part lines, too


def read_text(content: bytes, *, cut: bool = False) -> Text:
    """The lines of a text: UTF-8 or what can be read of it, without colours, controls and empty lines.

    `cut`: there was more than `content`.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):      # what PowerShell's `>` writes
        decoded = content.decode("utf-16", errors="replace")
    else:
        decoded = content.decode("utf-8", errors="replace")
    lines = []
    for number, raw in enumerate(_BREAK.split(decoded), 1):
        shown = _UNSAFE.sub("", _ESCAPES.sub("", raw[:MOST_LINE])).replace("\t", " ").strip()
        if shown:
            lines.append(Line(number=number, text=shown))
    return Text(lines=tuple(lines), size=len(content), cut=cut)
