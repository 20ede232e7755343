"""What a path of a step may be."""

from __future__ import annotations

import posixpath

from stackfix.errors import BadInput


def check_inside(path: str) -> str:
    """The path, where it is one below a folder and written plainly. Raises BadInput."""
    if path.startswith("/") or path in {"", "."} or posixpath.normpath(path) != path or f"{path}/".startswith("../"):
        raise BadInput(path or "an empty path", "is no plain path below the folder that it belongs to",
                       "give it relative to that folder, without '..', '.' or '//'")
    return check_text(path)


def check_text(text: str) -> str:
    """The text, where a text file can hold it. Raises BadInput."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(ascii(text), "is not UTF-8, and cannot be written into a script",
                       "rename the folder") from None
    if "\0" in text:
        raise BadInput(ascii(text), "holds a zero byte")
    return text
