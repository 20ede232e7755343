"""Where the text of `stackfix explain` comes from."""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO

from stackfix.errors import BadInput, Unreachable
from stackfix.explain.text import HEAD, MOST_BYTES


def text_of(words: tuple[str, ...]) -> tuple[bytes, bool]:
    """The content, and whether there was more. One word that names a file is that file; else the words are the text."""
    if not words or words == ("-",):
        if sys.stdin is None or (not words and sys.stdin.isatty()):
            raise BadInput("explain", "no text", "give an error line, a file, or - and the text on standard input")
        return bounded(sys.stdin.buffer)
    if len(words) == 1 and "\n" not in words[0] and len(words[0]) < 4096 and os.path.lexists(words[0]):
        return file_content(words[0])
    return "\n".join(words).encode("utf-8", errors="surrogateescape")[:MOST_BYTES], False


def file_content(path: str) -> tuple[bytes, bool]:
    """What a file holds: of one that is too long its beginning and its end. Raises Unreachable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)     # a pipe without a writer must not wait
        with os.fdopen(descriptor, "rb") as stream:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                os.set_blocking(descriptor, True)
            if stat.S_ISDIR(mode):
                raise BadInput(path, "is a folder", "name a file with the text in it")
            return bounded(stream)
    except OSError as error:
        raise Unreachable(path, f"cannot be read: {error.strerror or error}") from None


def bounded(stream: BinaryIO) -> tuple[bytes, bool]:
    """At most MOST_BYTES of a stream: the first HEAD of it, and its end."""
    head = stream.read(HEAD)
    tail = bytearray()
    cut = False
    while block := stream.read(1 << 20):
        tail += block
        if len(tail) > 2 * MOST_BYTES:
            del tail[:-MOST_BYTES]
            cut = True
    if len(head) + len(tail) > MOST_BYTES:
        cut = True
        del tail[:-(MOST_BYTES - HEAD)]
    return head + (b"\n" if cut else b"") + bytes(tail), cut
