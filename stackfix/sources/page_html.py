"""PEP 503 pages: anchors out of HTML, as entries of the shape that PEP 691 has.

Not html.parser: some of its versions need quadratic time on broken markup, and pages come from servers we do not
know. This reads tags and nothing else, in one pass over the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote, urljoin, urlsplit

from stackfix.sources.page_json import MOST_FILES

_TAG = re.compile(r"(a|base|meta)(?=[\s/>])", re.IGNORECASE)
_STOP = re.compile(r"[>\"']")
_ATTRIBUTE = re.compile(r"([^\s=>\"'/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_SUFFIXES = (".whl", ".tar.gz", ".zip")
_OTHER_KINDS = (".egg", ".exe", ".msi", ".rpm", ".deb", ".dmg", ".tar", ".tar.bz2", ".tar.xz", ".tar.Z", ".tgz")


def entries_of(text: str, url: str) -> tuple[list[dict[str, object]], str | None]:
    """One entry per link to a wheel or sdist, and the repository version that the page states."""
    base, version = url, None
    entries: list[dict[str, object]] = []
    for name, attributes in tags(text):
        if name == "a" and "href" in attributes:
            entry = entry_of(attributes, base)
            if entry is not None:
                entries.append(entry)
                if len(entries) > MOST_FILES:
                    raise ValueError(f"lists more than {MOST_FILES} files")
        elif name == "base" and "href" in attributes and base == url:
            base = _joined(url, attributes["href"])
        elif name == "meta" and attributes.get("name", "").lower() == "pypi:repository-version":
            version = attributes.get("content", "")
    return entries, version


def names_file(text: str, project: str) -> bool:
    """Whether the page links to any file of the project (normalised), of a kind that is read or of an older one."""
    for name, attributes in tags(text):
        filename = _filename(attributes["href"]) if name == "a" and "href" in attributes else None
        if filename is not None and filename.endswith((*_SUFFIXES, *_OTHER_KINDS)):
            spelled = re.sub(r"[-_.]+", "-", filename.rpartition("/")[2]).lower()
            if spelled.startswith(f"{project}-"):
                return True
    return False


def entry_of(attributes: dict[str, str], base: str) -> dict[str, object] | None:
    """What one anchor says of a file, None when it links to something else."""
    target, _, fragment = attributes["href"].strip().partition("#")
    filename = _filename(target)
    if filename is None or not filename.endswith(_SUFFIXES):
        return None
    entry: dict[str, object] = {"filename": filename, "url": _joined(base, target), "hashes": hash_in(fragment)}
    if attributes.get("data-requires-python"):
        entry["requires-python"] = attributes["data-requires-python"]
    if "data-yanked" in attributes:
        entry["yanked"] = attributes["data-yanked"] or True
    advertised = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
    if advertised is not None and advertised.lower() != "false":
        entry["core-metadata"] = hash_in(advertised) or True
    return entry


def _filename(href: str) -> str | None:
    """The last part of the address's path, None where it is no address."""
    try:
        return unquote(urlsplit(href.strip()).path.rpartition("/")[2])
    except ValueError:
        return None


def hash_in(text: str) -> dict[str, str]:
    """The hash in "sha256=…", as PEP 691 has it; nothing for other forms."""
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "sha256":
            return {"sha256": value.strip()}
    return {}


def tags(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Opening tags that matter, in order. Never goes back in the text."""
    at = text.find("<")
    while at >= 0:
        if text.startswith("<!--", at):
            end = text.find("-->", at + 4)
        else:
            end = _tag_end(text, at + 1)
            found = _TAG.match(text, at + 1)
            if found and end >= 0:
                yield found[1].lower(), _attributes(text[found.end():end])
        if end < 0:
            return
        at = text.find("<", end + 1)


def _tag_end(text: str, at: int) -> int:
    """Where the tag's ">" stands; one inside quotes is no end."""
    while True:
        stop = _STOP.search(text, at)
        if stop is None:
            return -1
        if stop[0] == ">":
            return stop.start()
        at = text.find(stop[0], stop.end()) + 1
        if at == 0:
            return -1


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match[2] or match[3] or match[4] or ""
        with suppress(ValueError):      # a character with a number of thousands of digits
            value = html.unescape(value)
        found.setdefault(match[1].lower(), value)
    return found


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError:
        return target  # judged when the file is used
