"""Text of unknown origin (file names, metadata, what a program said) made safe for a terminal and for JSON."""

from __future__ import annotations

import re

# C0 and C1 controls move cursors and colour screens, bidirectional marks reorder what is read, lone surrogates
# (bytes of a file name that are no UTF-8) cannot be written at all.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    """One line that a terminal shows as it is: what would steer it is spelled out."""
    return UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:        # a byte that is no UTF-8
        code -= 0xDC00
    return {10: "\\n", 9: "\\t", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def printable_json(text: str) -> str:
    """A JSON document that says the same, unsafe characters in its strings as escapes; its own line breaks stay."""
    return UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)
