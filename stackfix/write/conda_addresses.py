"""Addresses and hashes of somebody's conda lockfile, checked before anything is made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from stackfix.write.clean import SHA256, without_credentials
from stackfix.write.conda_clean import MD5
from stackfix.write.yaml_read import Node, Source

FILE_NAME = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)-(?P<version>[A-Za-z0-9_.!+]+)-(?P<build>[A-Za-z0-9_.+]+)"
                       r"\.(?:conda|tar\.bz2)")
SUBDIR = re.compile(r"[a-z]+(?:-[a-z0-9]+)?")
PLATFORM = re.compile(r"[a-z]+-[a-z0-9]+")
BUILD_NUMBER = re.compile(r"(?:.*_)?(\d{1,9})")
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
SCHEMES = frozenset({"http", "https", "file"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaAddress:
    """What the address of a conda package tells."""

    url: str
    channel: str
    subdir: str
    file_name: str
    name: str
    version: str
    build: str

    @property
    def build_number(self) -> int:
        """The digits at the end of the build string, as channels name their files; 0 without."""
        found = BUILD_NUMBER.fullmatch(self.build)
        return int(found[1]) if found else 0


def conda_address(url: str, source: Source, line: int) -> CondaAddress:
    """The parts of a package's address. Raises BadInput for one of no conda package, or one that leads astray."""
    shown = without_credentials(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        source.refuse(line, f"{shown} is no address")
    if parts.scheme not in SCHEMES or (parts.scheme != "file" and not parts.netloc) or parts.query or parts.fragment:
        source.refuse(line, f"{shown} is no address of a conda package")
    base, _, quoted = parts.path.rpartition("/")
    above, _, subdir = base.rpartition("/")
    file_name = unquote(quoted)
    found = FILE_NAME.fullmatch(file_name)
    if found is None or SUBDIR.fullmatch(subdir) is None or ".." in unquote(above).split("/"):
        source.refuse(line, f"{shown} is no address of a conda package")
    return CondaAddress(url=url, channel=url[:len(url) - len(quoted) - len(subdir) - 2], subdir=subdir,
                        file_name=file_name, name=found["name"].lower(), version=found["version"],
                        build=found["build"])


def file_address(url: str, source: Source, line: int) -> str:
    """The address of a file for pip. Raises BadInput for what is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in SCHEMES or (parts.scheme != "file" and not parts.netloc) or any(c.isspace() for c in url):
        source.refuse(line, f"{without_credentials(url)} is no address of a file")
    if "${" in url:
        source.refuse(line, f"{without_credentials(url)} asks for a variable of the environment, which pip and uv "
                            "would fill in for whoever serves the file")
    return url


def digest(node: Node | None, kind: str, source: Source) -> str | None:
    """The hash in lower case; None where there is none. Raises BadInput for what is no md5 or sha256."""
    if node is None or node.value is None:
        return None
    text = source.text(node, kind).lower()
    return checked_digest(text, kind, source, node.line)


def checked_digest(text: str, kind: str, source: Source, line: int) -> str:
    """The same text. Raises BadInput where it is no md5 or sha256."""
    if (MD5 if kind == "md5" else SHA256).fullmatch(text) is None:
        source.refuse(line, f"{text[:80]} is no {kind}")
    return text


def platform_name(text: str, source: Source, line: int) -> str:
    """The same text. Raises BadInput where it is no platform."""
    if PLATFORM.fullmatch(text) is None:
        source.refuse(line, f"{text[:80]} is no platform")
    return text


def package_name(text: str, source: Source, line: int) -> str:
    """The name in lower case. Raises BadInput where it is no name of a package."""
    if NAME.fullmatch(text) is None:
        source.refuse(line, f"{text[:80]} is no name of a package")
    return text.lower()
