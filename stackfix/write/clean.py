"""Text that may stand in a lockfile: nothing of the machine, no credential, nothing that could end a line."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from stackfix.errors import BadInput
from stackfix.sources.records import IndexFile

USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"@]*(?:@[^/\s'\"@]*)*@")
ABSOLUTE_PATH = re.compile(r"(?P<before>^|[\s='\"])(?P<path>(?:~|/|[A-Za-z]:\\)[^\s'\"]*)")
FILE_ADDRESS = re.compile(r"file:/[^\s'\"]*?(?P<name>[^\s'\"/]*)/*(?=[\s'\"]|$)", re.IGNORECASE)
SECRET_KEY = re.compile(r"token|secret|passw|credential|signature|api.?key|^sig$|^key$|auth", re.IGNORECASE)
SHA256 = re.compile(r"[0-9a-f]{64}")


def one_line(text: str) -> str:
    """`text` without control characters, runs of blanks as one, and nothing at its end that continues a line."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split()).rstrip("\\ ")


def without_credentials(text: str) -> str:
    """`text` with `user:password@` taken out of every address in it."""
    return USERINFO.sub(lambda match: match["scheme"], text)


def without_absolute_paths(text: str) -> str:
    """`text` with each absolute path cut to its last part; relative paths stay."""
    def cut(match: re.Match[str]) -> str:
        path = match["path"]
        name = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
        return match["before"] + (name or ".")

    return ABSOLUTE_PATH.sub(cut, FILE_ADDRESS.sub(lambda match: f"file:{match['name']}", text))


def comment_text(text: str) -> str:
    """`text` fit to stand in a comment of a lockfile."""
    return one_line(without_absolute_paths(without_credentials(text)))


def locked_url(url: str) -> str:
    """`url` as a lockfile holds it: no credentials, no fragment, `+` as %2B. Raises BadInput for one of this machine.

    A query with a secret in it goes too: what is left may then not download, but it gives nothing away.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in {"http", "https"} or not host:
        raise BadInput(comment_text(url) or "a file without address", "only an http or https address can be locked")
    # without `$` and `{`: installers replace `${NAME}` from the environment
    path = quote(parts.path, safe="/%:@!&'()*,;=~-._")
    query = quote(parts.query, safe="%=&;:,/?@!'()*~-._")
    if any(SECRET_KEY.search(key) for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
        query = ""
    return urlunsplit((parts.scheme, host, path, query, ""))


def locked_sha256(file: IndexFile) -> str:
    """The file's sha256. Raises BadInput where the index states none that is one: such a file is never locked."""
    if file.sha256 is None or SHA256.fullmatch(file.sha256) is None:
        raise BadInput(file.filename, "the index states no usable sha256, so it cannot be locked")
    return file.sha256
