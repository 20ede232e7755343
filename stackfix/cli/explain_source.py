"""Where the text of `stackfix explain` comes from."""

from __future__ import annotations

import os
import re
import stat
import sys
from typing import BinaryIO

from stackfix.errors import BadInput, Unreachable
from stackfix.explain.text import HEAD, MOST_BYTES

__all__ = ["HEAD", "MOST_BYTES", "MOST_READ", "bounded", "file_content", "text_of"]
MOST_READ = 256 << 20           # bytes of a pipe, of which MOST_BYTES are kept: `yes | stackfix explain -` ends, too
GIVE = "give an error line in quotes, a file, or - and the text on standard input"
FILE_LIKE = re.compile(r"(?:\.{0,2}/|~|[A-Za-z]:\\)[^\s:]*|[\w.+/-]+\.(?:log|txt|out|err)", re.ASCII)
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}


def text_of(words: tuple[str, ...]) -> tuple[bytes, bool]:
    """The content, and whether there was more. One word that names a file is that file; else the words are the text.

    Raises BadInput where there is no text, where a file is given beside one, and for what is no text at all.
    """
    if not words or words == ("-",):
        if sys.stdin is None or (not words and sys.stdin.isatty()):
            raise BadInput("explain", "no text", GIVE)
        return checked("standard input", *bounded(sys.stdin.buffer))
    if len(words) == 1:
        word = words[0]
        if is_there(word):
            return checked(word, *file_content(word))
        if FILE_LIKE.fullmatch(word):
            raise BadInput(word, "no such file", GIVE)
    else:
        one_kind(words)
    text = gap_of(words).join(words).encode("utf-8", errors="surrogateescape")
    return text[:MOST_BYTES], len(text) > MOST_BYTES


def gap_of(words: tuple[str, ...]) -> str:
    """What joins the words: those of a text without quotes are one line, several texts in quotes are a line each."""
    return "\n" if all(" " in each.strip() for each in words) else " "


def one_kind(words: tuple[str, ...]) -> None:
    """Raises BadInput where a file, or standard input, is given beside a text."""
    for word in words:
        if word == "-" and word in {words[0], words[-1]}:
            raise BadInput("-", "standard input is named beside a text", GIVE)
        if FILE_LIKE.fullmatch(word) and is_there(word) and any(
                " " in each or is_there(each) or FILE_LIKE.fullmatch(each) for each in words if each != word):
            raise BadInput(word, "a file is named beside a text", "explain one of them; a text goes into quotes")


def is_there(word: str) -> bool:
    """Whether a word names something on disk."""
    return "\n" not in word and len(os.fsencode(word)) < 4096 and os.path.lexists(word)


def file_content(path: str) -> tuple[bytes, bool]:
    """What a file holds: of one that is too long its beginning and its end. Raises BadInput, Unreachable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)     # a pipe without a writer must not wait
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                os.set_blocking(descriptor, True)
            elif status.st_size > MOST_BYTES:
                return ends(stream, status.st_size), True
            return bounded(stream)
    except IsADirectoryError:
        raise BadInput(path, "is a folder", "name a file with the text in it") from None
    except OSError as error:
        raise Unreachable(path, f"cannot be read: {error.strerror or error}") from None


def ends(stream: BinaryIO, size: int) -> bytes:
    """The beginning and the end of a long file; nothing between them is read."""
    head = stream.read(HEAD)
    stream.seek(size - (MOST_BYTES - HEAD))
    return head + b"\n" + stream.read(MOST_BYTES - HEAD)


def bounded(stream: BinaryIO) -> tuple[bytes, bool]:
    """At most MOST_BYTES of a stream: the first HEAD of it, and the end of its first MOST_READ."""
    head = stream.read(HEAD)
    tail = bytearray()
    taken, cut = len(head), False
    while taken < MOST_READ and (block := stream.read(1 << 20)):
        taken += len(block)
        tail += block
        if len(tail) > 2 * MOST_BYTES:
            del tail[:-MOST_BYTES]
            cut = True
    if len(head) + len(tail) > MOST_BYTES:
        cut = True
        del tail[:-(MOST_BYTES - HEAD)]
    return head + (b"\n" if cut else b"") + bytes(tail), cut


def checked(thing: str, content: bytes, cut: bool) -> tuple[bytes, bool]:
    """The content, where it is a text. Raises BadInput."""
    if content.startswith(b"\x7fELF"):
        raise BadInput(thing, "is a compiled file, no text", "`stackfix abi FILE` tells what it can load with")
    for start, name in PACKED.items():
        if content.startswith(start):
            raise BadInput(thing, f"is packed ({name})", "unpack it first")
    if not content.strip(b" \t\r\n\0\xff\xfe\xef\xbb\xbf"):
        raise BadInput(thing, "is empty", GIVE)
    return content, cut
