"""An unchanged `stackfix lock` is answered from what the last one left, before click and all else is imported.

The answer of a run is kept beside what it rests on (`lock_answer` writes it). It is given again only where all of that
is as it was: the words of the command line, variables of the environment, the text of every file that was read, the
files in the output folder, this program and the matrix, and the index pages, which must be the kept ones and fresh by
their Cache-Control; else they are asked for once more (`early_pages`). Whatever is unknown, unreadable or different
leads to the whole way; nothing is decided here.

Only the standard library's quickest modules are imported: no pathlib, json, re, hashlib or dataclasses.
"""

from __future__ import annotations

import os
import sys
import time

from stackfix import __version__
from stackfix.cli.early_said import is_terminal, refuse_unlike, say
from stackfix.cli.early_state import (
    Changed,
    digest_of,
    environment_digest,
    file_digest,
    folder_state,
    is_ours,
    read_bytes,
    refuse_other_names,
    signature_of,
    state_text,
    variables_digest,
)
from stackfix.cli.early_words import ELSEWHERE, cache_folder, output_of, taken_apart

TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackfix.cli.early_state import State

FORM = "stackfix-answer 1"
FOLDER = "answers-v1"               # below the cache folder
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def answered(words: Sequence[str]) -> int | None:
    """The exit status where the kept answer holds and was given; None where the request has to be decided."""
    if not words or words[0] != "lock":
        return None
    try:
        asked = Asked(words)
        kept = read_answer(asked)
        kept.check()
        return kept.give()
    except (Changed, OSError, ValueError):
        return None


class Asked:
    """One command line in its surroundings. Raises Changed."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ
        self.words, self.directory, cache = taken_apart(words)
        self.cache = cache_folder(self.environ) if cache is None else cache
        self.folders: dict[str, State] = {}
        said = "\0".join((
            FORM, __version__, sys.version, sys.executable or "", *sys.path, "", os.getcwd(), *self.words, "",
            f"{is_terminal(sys.stdout)} {is_terminal(sys.stderr)}", environment_digest(self.environ),
        ))
        self.said = said.encode("utf-8", "surrogateescape")

    def state(self, folder: str) -> State:
        """The files of a folder that a lock may read or replace, as they are now. Raises Changed."""
        if folder not in self.folders:
            self.folders[folder] = folder_state(self.place(folder))
        return self.folders[folder]

    def place(self, folder: str) -> str:
        """The path of a folder as it was kept."""
        if folder != ELSEWHERE:
            return folder
        if self.directory is None:
            raise Changed
        return self.directory

    @property
    def primary(self) -> str:
        """Where a lock without a project file lies."""
        return ELSEWHERE if self.directory is not None else output_of(self.words)

    def path(self) -> str:
        """Where the answer is kept. What lies in the output folder is part of the name."""
        there = state_text(self.state(self.primary)).encode("utf-8", "surrogateescape")
        name = digest_of(self.said + there, size=20)
        return os.path.join(self.cache, FOLDER, name)


class Answer:
    """A kept answer, its damage ruled out by its digest."""

    def __init__(self, asked: Asked, path: str, lines: Iterable[str]) -> None:
        self.asked, self.path = asked, path
        self.rows = [[unescaped(part) for part in line.split("\t")] for line in lines]

    def of(self, kind: str) -> list[list[str]]:
        """The rows of one kind, without it."""
        return [row[1:] for row in self.rows if row[0] == kind]

    def pages_are_kept(self) -> bool:
        """Whether the pages in the cache are those that the answer rests on."""
        [[signature, *paths]] = self.of("pages")
        try:
            return signature_of(map(os.stat, paths)) == signature
        except OSError:
            return False

    def check(self) -> None:
        """Raises Changed where something is not as it was."""
        for path, digest in self.of("text"):
            if file_digest(path) != digest:
                raise Changed
        for folder, text in self.of("folder"):
            if state_text(self.asked.state(folder)) != text:
                raise Changed
        [[names, value]] = self.of("variables")
        if variables_digest(names.split(), self.asked.environ) != value:
            raise Changed
        [[signature]] = self.of("signature")
        [paths] = self.of("same")
        if signature_of(map(os.stat, paths)) != signature:
            raise Changed
        [[stored, until]] = self.of("fresh")
        if self.pages_are_kept() and float(stored) <= time.time() < float(until):
            return
        if until == "inf":
            raise Changed       # offline
        from stackfix.cli.early_pages import still_the_same

        if not still_the_same(self):
            raise Changed

    def renew(self, untils: Mapping[str, float], now: float) -> None:
        """Keeps the same answer with what is now known of how long it holds, where that can be written."""
        rows = []
        for row in self.rows:
            if row[0] == "answer" and row[1] in untils:
                row[3] = str(untils[row[1]])
            if row[0] == "pages":
                row[1] = signature_of(map(os.stat, row[2:]))
            if row[0] != "fresh":
                rows.append(row)
        rows.append(["fresh", str(now), str(min(float(row[3]) for row in rows if row[0] == "answer"))])
        try:
            put(self.path, body_of(rows))
        except OSError:
            return

    def give(self) -> int:
        """Writes the files that are not there as they are to be, says what was said, and gives the exit status."""
        [[status]] = self.of("status")
        said = [(stream == "err", f"{self.asked.place(folder)}/{text}" if folder else text)
                for stream, folder, text in self.of("said")]
        for to_err, text in said:
            refuse_unlike(sys.stderr if to_err else sys.stdout, text)
        self.write()
        return say(said, int(status))

    def write(self) -> None:
        """The files in their folders. Raises Changed before anything is written, and what replace_files raises."""
        changes: dict[str, dict[str, bytes | None]] = {}
        content = None
        for folder, name, digest, start, size in self.of("write"):
            refuse_other_names(name)
            if self.asked.state(folder).get(name) == digest:
                continue
            if content is None:
                content = read_bytes(f"{self.path}.files")
            part = content[int(start):int(start) + int(size)]
            if digest_of(part) != digest:
                raise Changed
            changes.setdefault(folder, {})[name] = part
        for folder, name in self.of("remove"):
            refuse_other_names(name)
            if name in self.asked.state(folder):
                changes.setdefault(folder, {})[name] = None
        if changes:
            from pathlib import Path

            from stackfix.errors import StackfixError
            from stackfix.write.replace import replace_files

            for folder, contents in changes.items():
                try:
                    replace_files(Path(self.asked.place(folder)), contents)
                except StackfixError:
                    raise Changed from None     # the whole way says what is wrong


def read_answer(asked: Asked) -> Answer:
    """The kept answer. Raises Changed or OSError where there is none, and where somebody else may have written it."""
    path = asked.path()
    for place in (os.path.dirname(path), path):
        if not is_ours(place):
            raise Changed
    raw = read_bytes(path)
    digest, _, rest = raw.partition(b"\n")
    if digest_of(rest).encode() != digest:
        raise Changed
    form, *lines = rest.decode("utf-8", "surrogateescape").split("\n")
    if form != FORM:
        raise Changed
    return Answer(asked, path, lines)


def body_of(rows: Iterable[Iterable[object]]) -> bytes:
    """The rows as they are kept, with their digest."""
    text = "\n".join((FORM, *("\t".join([escaped(str(part)) for part in row]) for row in rows)))
    body = text.encode("utf-8", "surrogateescape")
    return digest_of(body).encode() + b"\n" + body


def put(path: str, content: bytes) -> None:
    """The file whole in its place. Raises OSError."""
    beside = f"{path}.{os.getpid()}"
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK, 0o600), "wb") as stream:
        stream.write(content)
    os.replace(beside, path)


def escaped(text: str) -> str:
    """Text without tabs and line ends."""
    if "\\" not in text and "\t" not in text and "\n" not in text and "\r" not in text:
        return text
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def unescaped(text: str) -> str:
    """What `escaped` was given."""
    if "\\" not in text:
        return text
    pieces = [piece.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for piece in text.split("\\\\")]
    return "\\".join(pieces)
