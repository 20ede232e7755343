"""Project pages, PEP 691 JSON or PEP 503 HTML.

The pages of one lock list some 50,000 files, of which a few hundred matter. So entries are grouped by the version in
their file names, cheaply, and are checked and turned into records only when someone asks for that version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from stackfix.sources.address import resolve_link
from stackfix.sources.errors import BadPage, NoIndexPage
from stackfix.sources.page_json import Decoded, Entries, Entry, read_json
from stackfix.sources.records import IndexFile

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
JSON_KINDS = ("application/vnd.pypi.simple.v1+json", "application/json")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SEPARATORS = re.compile(r"[-_.]+")
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!~-]*")
_VERSION_START = re.compile(r"v?\d", re.IGNORECASE)
_LONGEST_NAME = 400


def normalise(name: str) -> str:
    """`name` as indexes spell it (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


class Page:
    """One project on one index."""

    def __init__(self, name: str, index: str, url: str, entries: Entries,
                 groups: dict[str, list[str]] | None = None) -> None:
        """`groups`: as grouped() gives them, where that is known."""
        self.name, self.index = name, index
        self._url, self.entries = url, entries
        try:
            self.groups = grouped(entries.starts, name) if groups is None else groups
        except ValueError as fault:
            raise self._bad(str(fault)) from None
        self._files: dict[str, tuple[IndexFile, ...]] = {}

    def version_strings(self) -> tuple[str, ...]:
        """Versions that have a wheel or an sdist, as file names write them; they need not be valid (PEP 440)."""
        return tuple(self.groups)

    def files(self, version: str) -> tuple[IndexFile, ...]:
        """Files of one version string, in the page's order. Raises BadPage for a file that cannot be trusted."""
        known = self._files.get(version)
        if known is None:
            known = self._files[version] = self._records(version)
        return known

    def files_named(self, version: str, accept: Callable[[str], bool]) -> tuple[IndexFile, ...]:
        """Files of one version string whose names are accepted; the others are not even decoded. Raises BadPage."""
        known = self._files.get(version)
        if known is not None:
            return tuple(file for file in known if accept(file.filename))
        return self._records(version, accept)

    def _records(self, version: str, accept: Callable[[str], bool] | None = None) -> tuple[IndexFile, ...]:
        found: dict[str, IndexFile] = {}
        for entry in self._entries_of(version, accept):
            filename = entry["filename"]
            if filename.endswith(".whl") and filename.count("-") not in (4, 5):
                continue  # no wheel name (binary distribution format); installers pass over it too
            file = self._record(entry, version)
            before = found.setdefault(file.filename, file)
            if before.sha256 != file.sha256:
                raise self._bad(f"lists {file.filename} twice, with different hashes")
        return tuple(found.values())

    def _entries_of(self, version: str, accept: Callable[[str], bool] | None) -> list[Entry]:
        try:
            return list(self.entries.of(self.groups.get(version, ()), accept))
        except ValueError as fault:
            raise self._bad(str(fault)) from None

    def _record(self, entry: Entry, version: str) -> IndexFile:
        filename = entry["filename"]
        if not _FILENAME.fullmatch(filename) or ".." in filename or len(filename) > _LONGEST_NAME:
            raise self._bad(f"lists a file with the impossible name {filename[:200]!r}")
        url = entry.get("url")
        if not isinstance(url, str):
            raise self._bad(f"gives no address for {filename}")
        try:
            url = resolve_link(self._url, url)
        except ValueError as fault:
            raise self._bad(f"gives an address for {filename} that {fault}") from None
        yanked = entry.get("yanked")
        size = entry.get("size")
        advertised = entry.get("core-metadata", entry.get("dist-info-metadata"))
        return IndexFile(
            project=self.name, filename=filename, version=version, url=url,
            sha256=self._sha256(entry.get("hashes"), filename),
            requires_python=self._text(entry, "requires-python"),
            yanked=yanked if isinstance(yanked, str) and yanked else "" if yanked else None,
            size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
            upload_time=self._text(entry, "upload-time"),
            core_metadata=(self._sha256(advertised, filename) or True) if advertised else None, index=self.index)

    def _text(self, entry: Entry, key: str) -> str | None:
        value = entry.get(key)
        if value is not None and not isinstance(value, str):
            raise self._bad(f"states a {key} for {entry['filename']} that is no text")
        return value or None

    def _sha256(self, hashes: object, filename: str) -> str | None:
        if hashes is None or hashes is True:
            return None
        value = hashes.get("sha256") if isinstance(hashes, dict) else ""
        if value is None:
            return None
        if not isinstance(value, str) or not _SHA256.fullmatch(value.lower()):
            raise self._bad(f"states a hash for {filename} that is no sha256")
        return value.lower()

    def _bad(self, reason: str) -> BadPage:
        return BadPage(self.name, self.index, reason)


def parse_page(
    content: bytes, content_type: str, *, project: str, index: str, url: str, packed: bytes | None = None,
) -> Page:
    """The page of `project` (normalised) that came from `url`. Raises BadPage. `packed`: the content gzipped."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind in JSON_KINDS:
            entries = _json_entries(content, project, packed)
        elif kind in ("application/vnd.pypi.simple.v1+html", "text/html"):
            entries = _html_entries(content, url, project, index)
        else:
            raise BadPage(project, index, f"is of the type {kind[:80]!r}, which is no index page")
    except ValueError as fault:
        raise BadPage(project, index, str(fault)) from None
    return Page(project, index, url, entries)


def _json_entries(content: bytes, project: str, packed: bytes | None) -> Entries:
    page, entries = read_json(content, packed)
    meta, name = page.get("meta"), page.get("name")
    version = meta.get("api-version") if isinstance(meta, dict) else None
    _check_version(version if isinstance(version, str) else "none")
    if name is not None and (not isinstance(name, str) or normalise(name) != project):
        raise ValueError(f"is about {str(name)[:100]!r}")
    return entries


def _html_entries(content: bytes, url: str, project: str, index: str) -> Entries:
    from stackfix.sources.page_html import entries_of, names_file

    text = content.decode("utf-8", "replace")
    entries, version = entries_of(text, url)
    if not entries and "<" not in text:
        raise ValueError("is no HTML")
    if version is not None:
        _check_version(version)
    elif not names_file(text, project):
        # a page that states its version may be empty; one of a captive portal or a login is no word on the project
        raise NoIndexPage(project, index)
    return Decoded(entries)


def _check_version(version: str) -> None:
    if version.partition(".")[0] != "1":
        raise ValueError(f"uses version {version[:20]!r} of the index format; only 1.x is known")


def grouped(starts: Sequence[str], project: str) -> dict[str, list[str]]:
    """What file names begin with (page_json.Entries.starts) by the version in it, in the page's order.

    Sdists of the kinds .tar.gz and .zip count; other kinds and projects are left out. Raises ValueError for a name that
    is a path.
    """
    groups: dict[str, list[str]] = {}
    ours: dict[str, bool] = {}
    for start in starts:
        if len(start) > _LONGEST_NAME:
            continue                # no file system takes it, and what is made of it here may grow with its square
        head, _, rest = start.partition("-")
        version: str | None = None
        if start.endswith(("-", '.whl"')):
            known = ours.get(head)
            if known is None:
                known = ours[head] = _fits(head, project)
            version = rest[:-1] if known and start.endswith("-") else None
        else:
            version = _sdist_version(start[:-1], project, ours)
        if version is not None:
            groups.setdefault(version, []).append(start)
    return groups


def _sdist_version(filename: str, project: str, ours: dict[str, bool]) -> str | None:
    """The version in the name of an sdist of the project; no pattern is made for each project, that takes longer."""
    lower = filename.lower()
    stem = filename[:-7] if lower.endswith(".tar.gz") else filename[:-4] if lower.endswith(".zip") else ""
    at = stem.find("-")
    while at > 0:
        if _VERSION_START.match(stem, at + 1):
            head = stem[:at]
            known = ours.get(head)
            if known is None:
                known = ours[head] = _fits(head, project)
            if known:
                return stem[at + 1:]
        at = stem.find("-", at + 1)
    _fits(filename, project)
    return None


def _fits(head: str, project: str) -> bool:
    if "/" in head or "\\" in head:
        raise ValueError(f"lists a file with the impossible name {head[:200]!r}")
    return normalise(head) == project
