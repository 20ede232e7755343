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
from stat import S_ISFIFO

try:
    from _blake2 import blake2b  # hashlib itself takes 4 ms to import
except ImportError:                 # not every Python has the module
    from hashlib import blake2b

from stackfix import __version__

TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    State = Mapping[str, str]       # name -> digest of the file, in one folder

FORM = "stackfix-answer 1"
FOLDER = "answers-v1"               # below the cache folder
ELSEWHERE = "*"                     # stands for an absolute output folder: the answer is the same in another
LARGEST = 8 * 1024 * 1024           # of a file that is compared; a lock of 400 packages has 2 MB
SUFFIXES = (".txt", ".toml", ".yml", ".yaml", ".lock")
PROOF = "stack-proof.json"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
LOCK_WORDS = ("requirements", "pylock", "constraints", "environment", "conda", "pixi")
# Variables that may steer a lock, by the beginning of their names, their whole names, and their ends in lower case.
PREFIXES = ("PIP_", "UV_", "STACKFIX_", "CONDA", "MAMBA", "PIXI_", "RATTLER_", "SSL_", "XDG_", "LC_", "PYTHON")
NAMES = frozenset((
    "HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "VIRTUAL_ENV", "NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "REQUEST_METHOD", "NO_COLOR", "TERM", "LANG", "LANGUAGE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMDRIVE",
))


class Changed(Exception):
    """Something is not as it was, or cannot be told simply: the whole way has to be gone."""


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
        name = blake2b(self.said + there, digest_size=20).hexdigest()
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


def taken_apart(words: Sequence[str]) -> tuple[list[str], str | None, str | None]:
    """The words with an absolute output folder taken out; that folder; the cache folder that they name."""
    found = list(words)
    directory = cache = None
    for number, word in enumerate(words[:-1]):
        value = words[number + 1]
        if word in ("-o", "--output") and is_plain_folder(value) and "--json" not in words:
            directory, found[number + 1] = value, ELSEWHERE
        elif word == "--cache-dir":
            cache = value
    for word in words:
        if word.startswith("--cache-dir="):
            cache = word.partition("=")[2]
    return found, directory, cache


def output_of(words: Sequence[str]) -> str:
    """The output folder that the words name, as they name it."""
    folder = "."
    for number, word in enumerate(words):
        if word in ("-o", "--output"):
            folder = words[number + 1] if number + 1 < len(words) else folder
        elif word.startswith("--output="):
            folder = word.partition("=")[2]
        elif word.startswith("-o") and not word.startswith("--"):
            folder = word[2:]
    return folder


def is_plain_folder(text: str) -> bool:
    """Whether a path is absolute and spelled as pathlib would spell it."""
    return text.startswith("/") and len(text) > 1 and not text.endswith("/") and not any(
        part in ("", ".") for part in text[1:].split("/"))


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where the cache is, as cache_place.default_cache_dir has it; "" on systems that are not asked here."""
    given = environ.get("STACKFIX_CACHE_DIR")
    if given:
        return given
    home = os.path.expanduser("~")
    if sys.platform in ("darwin", "win32"):
        return os.path.join(home, "Library", "Caches", "stackfix") if sys.platform == "darwin" else ""
    base = environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if base.startswith("/") else os.path.join(home, ".cache"), "stackfix")


def environment_digest(environ: Mapping[str, str]) -> str:
    """Of all variables that may steer a lock. Tokens of the release API are left out: they change limits, no answer."""
    return variables_digest((name for name in environ if steers(name)), environ)


def steers(name: str) -> bool:
    """Whether a variable may steer a lock."""
    return name.startswith(PREFIXES) or name in NAMES or name.lower().endswith("_proxy")


def variables_digest(names: Iterable[str], environ: Mapping[str, str]) -> str:
    """Of these variables, set or not."""
    said = "\0".join(f"{name}={environ[name]}" if name in environ else name for name in sorted(names))
    return digest_of(said.encode("utf-8", "surrogateescape"))


def folder_state(folder: str) -> State:
    """The digest of each file that a lock may read or replace; empty where there is no folder. Raises Changed."""
    found: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_lock_name(entry.name):
                    continue
                if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                    raise Changed
                found[entry.name] = digest_of(read_bytes(entry.path)) if entry.is_file() else "folder"
    except FileNotFoundError:
        return {"": "absent"}
    return found


def is_lock_name(name: str) -> bool:
    """Whether a file of that name may be a lock, or the proof of one."""
    return name.endswith(PROOF) or (name.endswith(SUFFIXES) and any(word in name for word in LOCK_WORDS))


def refuse_other_names(name: str) -> None:
    """Raises Changed for a name that no lock has: nothing else is written or removed."""
    if not is_lock_name(name) or "/" in name or os.sep in name:
        raise Changed


def is_ours(path: str) -> bool:
    """Whether nobody else can have written a file, or what is in a folder. Raises OSError where there is none."""
    if not hasattr(os, "geteuid"):
        return True
    found = os.lstat(path)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def state_text(state: State) -> str:
    """The state of a folder as text."""
    return "\n".join(f"{name}\0{digest}" for name, digest in sorted(state.items()))


def file_digest(path: str) -> str:
    """Of the file's content; "-" where there is none. Raises Changed or OSError where it cannot be read."""
    try:
        return digest_of(read_bytes(path))
    except (FileNotFoundError, NotADirectoryError):
        return "-"
    except IsADirectoryError:
        return "folder"


def read_bytes(path: str) -> bytes:
    """The content. Raises Changed for a file that is larger than any that counts, and for a pipe."""
    with open(path, "rb", buffering=0, opener=at_once) as stream:
        if S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            raise Changed       # what is taken out of it here, the whole way would miss
        content = stream.read(LARGEST + 1)
        if content is None or len(content) > LARGEST:
            raise Changed
        return content


def at_once(path: str, flags: int) -> int:
    """The file opened, without waiting for whoever writes into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def signature_of(stats: Iterable[os.stat_result]) -> str:
    """Of files as the system describes them: one that was written or replaced since has another."""
    return digest_of(repr([(one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) for one in stats]).encode())


def digest_of(content: bytes) -> str:
    """The digest of bytes, as it is kept."""
    return blake2b(content, digest_size=32).hexdigest()


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


def is_terminal(stream: object) -> bool:
    """As cli.terminal has it."""
    return stream is not None and bool(stream.isatty())     # type: ignore[attr-defined]


def refuse_unlike(stream: object, text: str) -> None:
    """Raises Changed, or ValueError, for text that click would write in another way than the stream itself."""
    if not text.isascii() and stream is not None and str(getattr(stream, "encoding", "")).lower() != "utf-8":
        raise Changed
    text.encode()


def say(said: Iterable[tuple[bool, str]], status: int) -> int:
    """Says each line on standard error (True) or output; gives the exit status, 141 where nobody reads any more."""
    try:
        for to_err, text in said:
            stream = sys.stderr if to_err else sys.stdout
            if stream is not None:
                stream.write(f"{text}\n")
                stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write(f"error: standard output: {error.strerror or error}\n")
        return 3
    return status
