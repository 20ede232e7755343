"""The development lock against the index page: every hash it holds must be one that the page states.

pip-compile hashes the answers it gets. Where an index has no per-project JSON endpoint it downloads each file to
hash it, and has been seen to hash the body of an error page and exit 0, so its result is compared with the page.

    python -m tests.dev_lock FILE           compares; exit 1 names each difference
    python -m tests.dev_lock FILE --mend    writes the page's hashes where they differ, then compares
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from tests.replay.live import default_index

PAGE_TYPES = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
HASH = re.compile(r"--hash=(\w+):([0-9a-f]+)")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")

Stated = dict[Version, frozenset[str]]      # sha256 of every file of a release, as the page states them


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPin:
    """One `name==version` of a requirements file, with its lines in that file (first, one past the last)."""

    name: str
    version: Version
    hashes: frozenset[str]
    span: tuple[int, int]


def parse_lock(text: str) -> tuple[LockedPin, ...]:
    """The pins of a pip-compile file in file order. A requirement that is no pin is a ValueError."""
    return tuple(_parse_pins(text.splitlines()))


def _parse_pins(lines: list[str]) -> Iterator[LockedPin]:
    number = 0
    while number < len(lines):
        start = number
        number += 1
        if not lines[start].strip() or lines[start].lstrip().startswith("#"):
            continue
        while lines[number - 1].rstrip().endswith("\\") and number < len(lines):
            number += 1
        entry = " ".join(lines[start:number])
        found = PIN.match(entry)
        if found is None or any(algorithm != "sha256" for algorithm, _ in HASH.findall(entry)):
            message = f"line {start + 1} is no sha256-hashed pin: {lines[start]}"
            raise ValueError(message)
        hashes = frozenset(digest for _, digest in HASH.findall(entry))
        yield LockedPin(name=canonicalize_name(found["name"]), version=Version(found["version"]), hashes=hashes,
                        span=(start, number))


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.extend(value for name, value in attrs if name == "href" and value)


def parse_page(body: bytes, content_type: str) -> Stated:
    """sha256 by release, from a PEP 691 or PEP 503 project page."""
    found: dict[Version, set[str]] = {}
    for name, digest in _files_of(body, content_type):
        version = _version_of(name)
        if version is not None and digest:
            found.setdefault(version, set()).add(digest)
    return {version: frozenset(digests) for version, digests in found.items()}


def _files_of(body: bytes, content_type: str) -> Iterator[tuple[str, str]]:
    if content_type.partition(";")[0].strip().endswith("+json"):
        for file in json.loads(body)["files"]:
            yield file["filename"], file["hashes"].get("sha256", "")
        return
    anchors = _Anchors()
    anchors.feed(body.decode())
    for link in anchors.links:
        parts = urlsplit(link)
        yield unquote(parts.path.rpartition("/")[2]), parts.fragment.removeprefix("sha256=")


def _version_of(filename: str) -> Version | None:
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[1]
        return parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None         # eggs, installers and names from before PEP 440: nothing that pip-compile takes


def differences(pins: tuple[LockedPin, ...], page: Callable[[str], Stated]) -> Iterator[tuple[LockedPin, str]]:
    """Pins whose hashes are not those of the page, each with what is wrong."""
    for pin in pins:
        stated = page(pin.name).get(pin.version, frozenset())
        if not stated:
            yield pin, "the page states no hash for this release"
        elif not pin.hashes:
            yield pin, "no hash in the lock"
        elif pin.hashes - stated:
            yield pin, f"not on the page: {', '.join(sorted(pin.hashes - stated))}"


def mend(text: str, page: Callable[[str], Stated]) -> str:
    """The lock with the page's hashes in each pin that differs from the page; comments and order stay."""
    lines = text.splitlines()
    for pin, _ in reversed(list(differences(parse_lock(text), page))):
        digests = sorted(page(pin.name).get(pin.version, ()))
        if digests:
            start, end = pin.span
            head = HASH.sub("", lines[start]).rstrip(" \\")
            lines[start:end] = [" \\\n".join([head, *(f"    --hash=sha256:{digest}" for digest in digests)])]
    return "\n".join(lines) + "\n"


class Pages:
    """Project pages of one index, each read once."""

    def __init__(self, base: str) -> None:
        self._base = base.rstrip("/")
        self._read: dict[str, Stated] = {}

    def __call__(self, project: str) -> Stated:
        """What the project's page states. An httpx.HTTPError after three tries."""
        if project not in self._read:
            self._read[project] = self._fetch(project)
        return self._read[project]

    def _fetch(self, project: str, tries: int = 3) -> Stated:
        import httpx

        for left in reversed(range(tries)):
            try:
                answer = httpx.get(f"{self._base}/{project}/", headers={"Accept": PAGE_TYPES}, timeout=60,
                                   follow_redirects=True)
                answer.raise_for_status()
                return parse_page(answer.content, answer.headers.get("content-type", ""))
            except httpx.HTTPError:
                if not left:
                    raise
                time.sleep(2)
        raise AssertionError(project)


def main(arguments: list[str]) -> int:
    """0 when every hash is one of the page's, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.dev_lock")
    parser.add_argument("file", type=Path)
    parser.add_argument("--mend", action="store_true")
    parser.add_argument("--index", default=None, help="base address; pip's default index when left out")
    asked = parser.parse_args(arguments)
    page = Pages(asked.index or default_index())
    text = asked.file.read_text(encoding="utf-8")
    if asked.mend and (mended := mend(text, page)) != text:
        beside = asked.file.with_name(asked.file.name + ".new")
        beside.write_text(mended, encoding="utf-8")
        os.replace(beside, asked.file)
        sys.stderr.write(f"{asked.file}: hashes replaced by those of the index page\n")
        text = mended
    pins = parse_lock(text)
    wrong = [f"{pin.name}=={pin.version}: {what}" for pin, what in differences(pins, page)]
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    count = sum(len(pin.hashes) for pin in pins)
    sys.stderr.write(f"{asked.file}: {len(pins)} pins, {count} hashes, {len(wrong)} pins differ from the index page\n")
    return 1 if wrong or not pins else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
