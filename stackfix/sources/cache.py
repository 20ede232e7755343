"""What is kept between runs. Several processes may use one folder at once.

Every entry is one file: a line with the sha256 of the rest, a line of JSON that says what it is, then the content.
Entries are written beside and moved into place; a damaged one is dropped and counts as not there. No entry's name or
content holds a credential.

    metadata-v1/   what a file's metadata says, for ever, by the file's sha256 and by what vouches for it
    pages-v1/      index pages as they came, with the time until which the server lets us use them unasked, and which
                   projects an index has not got
    hashes-v1/     sha256 of release assets that were downloaded whole
    tables-v1/     what a proof asks of a wheel's shared objects, by the wheel's sha256 (stackfix.tables)
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.quick import dataclass
from stackfix.sources.address import base_of, without_credentials
from stackfix.sources.wire import OverLimit, WireFault, gunzipped

if TYPE_CHECKING:
    import hashlib

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)     # others may write a shared folder: no link of theirs is written through
_LISTED = ("metadata-v1", "pages-v1")       # kinds of which many are asked for: what comes later is not seen
_LARGEST = 64 * 1024 * 1024         # of a page, unpacked; the client takes no larger one
_LONGEST_ETAG = 1024
_LOGIN = re.compile(rb"://[^/\s\"'<>?#\\]*@")
_QUERY = re.compile(rb"\?[^\s\"'<>?]*")
_SECRET = re.compile(
    rb"(?:token|secret|passw|credential|signature|api.?key|auth|jwt)[^=&;]*=|[?&;](?:sig|key)=", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kept thing, checked against its digest."""

    about: dict[str, object]
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPage:
    """A page as it came, and whether it may be used without asking."""

    content: bytes
    stored: bytes                   # the content as it is kept: as the server sent it, compressed or not
    content_type: str
    url: str                        # after redirects, without its query: links are relative to it
    etag: str | None
    fresh: bool
    until: float                    # seconds since the epoch; 0 where it has to be asked for
    packed: str | None              # sha256 of the body as it was sent


class Cache:
    """Entries below one folder. A folder that cannot be written makes `problem`, and nothing is kept."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.problem: str | None = None
        self._trusted: dict[str, bool] = {}     # folder -> whether nobody else can have written what is in it
        self._listed: dict[str, set[str]] = {}      # what there was when a kind was first asked for

    def page(self, url: str) -> KeptPage | None:
        """The kept page of `url`, of whatever age."""
        entry = self._read("pages-v1", _name(url))
        if entry is None:
            return None
        kind, final, etag = (entry.about.get(key) for key in ("content_type", "url", "etag"))
        content = _unpacked(entry)
        if content is None or not isinstance(kind, str) or not isinstance(final, str):
            return None
        stored, until, now = entry.about.get("stored"), entry.about.get("until"), time.time()
        fresh = isinstance(stored, float) and isinstance(until, float) and stored <= now < until
        packed = entry.about.get("packed")
        return KeptPage(content=content, stored=entry.content, content_type=kind, url=final,
                        etag=etag_of({"etag": etag}) if isinstance(etag, str) else None, fresh=fresh,
                        until=until if fresh and isinstance(until, float) else 0.0,
                        packed=packed if isinstance(packed, str) else None)

    def has_page(self, url: str) -> bool:
        """Whether there is an entry for the page, of whatever age or state."""
        return _name(url) in self._names("pages-v1")

    def absence(self, url: str) -> int | None:
        """The status by which the index said last that it has no such project; None where that is not known."""
        entry = self._read("pages-v1", _name(url))
        found = None if entry is None else entry.about.get("absent")
        return found if isinstance(found, int) else None

    def page_entry(self, url: str) -> str:
        """The file that holds the kept page of `url`, or that there is none, if one does."""
        return str(self._path("pages-v1", _name(url)))

    def keep_page(self, url: str, *, final: str, headers: Mapping[str, str], content: bytes, packed: str | None = None,
                  now: float | None = None, gzipped: bool = False) -> None:
        """Keep a page as its headers allow (RFC 9111); without headers it is kept for --offline alone.

        `packed`: sha256 of the content as it was sent. `gzipped`: it is given so.
        """
        if "no-store" in directives(headers.get("cache-control", "")):
            self.drop_page(url)     # what was kept before, that there is none above all, is no answer any more
            return
        now = time.time() if now is None else now
        about = {"url": base_of(final), "content_type": headers.get("content-type", ""), "stored": now,
                 "etag": etag_of(headers), "until": usable_until(headers, now), "packed": packed,
                 "gzipped": gzipped}
        self._write("pages-v1", _name(url), about, content)

    def renew_page(self, url: str, page: KeptPage, headers: Mapping[str, str], now: float | None = None) -> None:
        """The server said 304: the kept content counts as new, under the new headers."""
        self.keep_page(url, final=page.url, content=page.stored, packed=page.packed, now=now,
                       gzipped=page.stored is not page.content,
                       headers={"content-type": page.content_type, **({"etag": page.etag} if page.etag else {}),
                                **{key: headers[key] for key in ("etag", "cache-control", "age") if key in headers}})

    def keep_absence(self, url: str, status: int, headers: Mapping[str, str]) -> None:
        """Keep for --offline that an index has no such project: else it could not be told from one never asked for."""
        if "no-store" in directives(headers.get("cache-control", "")):
            self.drop_page(url)
        else:
            self._write("pages-v1", _name(url), {"absent": status}, b"")

    def drop_page(self, url: str) -> None:
        """Let go what is kept of `url`."""
        self._remove(self._path("pages-v1", _name(url)))

    def record(self, kind: str, key: str) -> dict[str, object] | None:
        """A small record, such as a file's metadata."""
        entry = self._read(kind, key)
        return None if entry is None else entry.about

    def has_record(self, kind: str, key: str) -> bool:
        """Whether there is an entry, of whatever state."""
        return key in self._names(kind)

    def keep_record(self, kind: str, key: str, about: Mapping[str, object]) -> None:
        self._write(kind, key, about, b"")

    def entry(self, kind: str, key: str) -> Entry | None:
        """A record with content."""
        return self._read(kind, key)

    def keep_entry(self, kind: str, key: str, about: Mapping[str, object], content: bytes) -> None:
        self._write(kind, key, about, content)

    def drop_entry(self, kind: str, key: str) -> None:
        """Let an entry go that is not what it seems."""
        self._remove(self._path(kind, key))

    def _path(self, kind: str, key: str) -> Path:
        return self.directory / kind / key      # no folder per prefix: making one costs more than the entry

    def _names(self, kind: str) -> set[str]:
        """The entries of a kind: on a cold run, hundreds are asked for of which there is none."""
        found = self._listed.get(kind)
        if found is None:
            try:
                names = set(os.listdir(self.directory / kind))      # noqa: PTH208 - names, and no paths
            except OSError:
                names = set()
            found = self._listed.setdefault(kind, names)
        return found

    def _read(self, kind: str, key: str) -> Entry | None:
        if kind in _LISTED and key not in self._names(kind):
            return None
        path = self._path(kind, key)
        raw = self._bytes_of(path)
        if raw is None:
            return None
        digest, _, rest = raw.partition(b"\n")
        line, _, content = rest.partition(b"\n")
        if sha256(rest).hexdigest().encode() == digest:
            import json

            try:
                about = json.loads(line)
            except ValueError:
                about = None
            if isinstance(about, dict):
                return Entry(about=about, content=content)
        self._remove(path)
        return None

    def _bytes_of(self, path: Path) -> bytes | None:
        """The file's content; None where there is none, or where somebody else may have written it."""
        folder = str(path.parent)
        try:
            if folder not in self._trusted:
                self._trusted[folder] = is_ours(os.lstat(folder))
            if not self._trusted[folder]:
                return None
            with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as stream:
                return stream.read() if is_ours(os.fstat(stream.fileno())) else None
        except OSError:
            return None

    def _remove(self, path: Path) -> None:
        with suppress(OSError):
            path.unlink(missing_ok=True)

    def _write(self, kind: str, key: str, about: Mapping[str, object], content: bytes) -> None:
        if self.problem is not None:
            return
        if kind in _LISTED:
            self._names(kind).add(key)
        import json  # an answer that is kept is given without it

        line = json.dumps(about, sort_keys=True).encode() + b"\n"
        if _LOGIN.search(line):
            return
        digest = sha256(line)
        digest.update(content)
        path = self._path(kind, key)
        try:
            try:
                self._put(path, (digest.hexdigest().encode(), b"\n", line, content))
            except FileNotFoundError:
                for folder in (self.directory, path.parent):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._put(path, (digest.hexdigest().encode(), b"\n", line, content))
        except OSError as fault:
            self.problem = f"cache folder {self.directory} cannot be written ({fault.strerror})"

    def _put(self, path: Path, parts: tuple[bytes, ...]) -> None:
        """The entry whole in its place, or nothing at all."""
        beside = f"{path.parent}/.{path.name}.{os.getpid()}.{threading.get_ident()}"
        try:
            written = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o600)
            try:
                content = memoryview(b"".join(parts))
                while content:
                    content = content[os.write(written, content):]
            finally:
                os.close(written)
            os.replace(beside, path)
        except OSError:
            self._remove(Path(beside))
            raise


def sha256(content: bytes) -> hashlib._Hash:
    """The hash, of which the library is imported with the first one: requests can be on their way by then."""
    import hashlib

    return hashlib.sha256(content)


def is_ours(found: os.stat_result) -> bool:
    """Whether nobody else can have written a file, or what is in a folder, of which the system says this."""
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def holds_secret(content: bytes) -> bool:
    """Whether a page gives a login in an address, or a query that signs or allows: such a page is not kept."""
    if b"@" in content and _LOGIN.search(content):
        return True
    return b"?" in content and any(_SECRET.search(query[0]) for query in _QUERY.finditer(content))


def _name(url: str) -> str:
    return sha256(without_credentials(url).encode()).hexdigest()


def _unpacked(entry: Entry) -> bytes | None:
    """The page of an entry, None for one that is damaged."""
    if not entry.about.get("gzipped"):
        return entry.content
    try:
        return b"".join(gunzipped(iter((entry.content,)), _LARGEST))
    except (WireFault, OverLimit):
        return None


def usable_until(headers: Mapping[str, str], now: float) -> float:
    """Seconds since the epoch until which an answer of `now` may be used unasked; `now` itself where it may not."""
    orders = directives(headers.get("cache-control", ""))
    return now if "no-store" in orders else now + lifetime(orders, headers.get("age"))


def etag_of(headers: Mapping[str, str]) -> str | None:
    """The ETag of an answer, None where it cannot be sent back as it is."""
    etag = headers.get("etag", "")
    return etag if etag.isascii() and etag.isprintable() and 0 < len(etag) <= _LONGEST_ETAG else None


def directives(text: str) -> dict[str, str]:
    """Cache-Control as a mapping; a directive without a value has ""."""
    pairs = (part.strip().partition("=") for part in text.lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs if name.strip()}


def lifetime(orders: Mapping[str, str], age: str | None) -> float:
    """Seconds for which an answer may be used unasked."""
    stated = orders.get("max-age", "")
    if "no-cache" in orders or not (stated.isascii() and stated.isdigit()):
        return 0.0
    spent = int(age[:9]) if age is not None and age.isascii() and age.isdigit() else 0
    return float(max(0, min(int(stated[:9]), 365 * 86400) - spent))
