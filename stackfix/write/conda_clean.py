"""Addresses, hashes and dependencies of conda packages as a lockfile holds them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.errors import BadInput
from stackfix.write.clean import SHA256, comment_text, without_credentials

MD5 = re.compile(r"[0-9a-f]{32}")
TOKEN = re.compile(r"^/t/[^/]*(?=/|$)")
DEPENDENCY = re.compile(r"(?:[^\s\[\]]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<rest>.*)")
SAFE = "/+:@!&'()*,;=~-._"        # not `$`, not `{`: conda, pip and conda-lock put variables of the environment there


def conda_url(url: str) -> str:
    """The address of a channel or of a package as a lockfile holds it, without credentials, query and fragment.

    A token (`/t/TOKEN/`) goes too: what is left may then not download, but it gives nothing away. `file:` addresses
    come only from a channel that the user named so. Raises BadInput for any other scheme.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in {"http", "https", "file"} or (parts.scheme != "file" and not host):
        raise BadInput(comment_text(url) or "a conda package without address",
                       "only an http, https or file address can be locked")
    # `%` stays: the address is quoted already
    path = quote(TOKEN.sub("", parts.path), safe=f"%{SAFE}")
    return urlunsplit((parts.scheme, host, path, "", ""))


def package_url(record: CondaRecord) -> str:
    """The address of the record's file. Raises BadInput where it is not that of the file below its channel."""
    url = conda_url(record.url)
    below = f"{conda_url(record.channel).rstrip('/')}/{record.subdir}/"
    if not url.startswith(below) or "/" in url.removeprefix(below) or ".." in url.removeprefix(below).split("."):
        raise BadInput(record.file_name, f"its address {url} is not in {record.subdir} of its channel")
    return url


def locked_md5(record: CondaRecord) -> str:
    """The record's md5. Raises BadInput where it has none: conda-lock.yml and explicit files name packages by it."""
    if record.md5 is None or MD5.fullmatch(record.md5) is None:
        raise BadInput(record.file_name, f"its channel {record.channel} states no usable md5, so "
                       "conda-lock.yml and explicit files cannot hold it", "--format pixi needs sha256 alone")
    return record.md5


def record_sha256(record: CondaRecord) -> str | None:
    """The record's sha256; None where the channel states none. Raises BadInput for what is no sha256."""
    if record.sha256 is not None and SHA256.fullmatch(record.sha256) is None:
        raise BadInput(record.file_name, f"its channel {record.channel} states a sha256 that is none")
    return record.sha256


def dependency_map(depends: Iterable[str]) -> dict[str, str]:
    """Name -> the rest of each dependency, sorted; several lines about one name are joined, as conda-lock does.

    "libblas * *mkl" is `{"libblas": "* *mkl"}`: conda-lock itself drops the build part, but reads it so.
    """
    found: dict[str, str] = {}
    for text in depends:
        match = DEPENDENCY.fullmatch(text.strip())
        if match is None:
            raise BadInput(comment_text(text), "is no dependency of a conda package")
        name, rest = match["name"].lower(), " ".join(match["rest"].split())
        found[name] = joined(found[name], rest) if name in found else rest
    return dict(sorted(found.items()))


def joined(one: str, other: str) -> str:
    """Both conditions on one package as one: versions joined by a comma, and whichever build was named."""
    (version, _, build), (version2, _, build2) = one.partition(" "), other.partition(" ")
    versions = dict.fromkeys(part for part in (version, version2) if part not in {"", "*"})
    return " ".join(part for part in (",".join(versions) or ("*" if build or build2 else ""), build or build2) if part)


def check_records(target: CondaTarget) -> None:
    """Raises BadInput where a package is for another platform, or from a channel that the lock does not name."""
    named = {conda_url(channel.url).rstrip("/") for channel in target.channels}
    for record in target.records:
        if conda_url(record.channel).rstrip("/") not in named:
            raise BadInput(record.file_name, f"comes from {without_credentials(record.channel)}, which is none of the "
                           "channels of the lock")
        if record.subdir not in {target.target.platform, "noarch"}:
            raise BadInput(record.file_name, f"is for {record.subdir}, the lock for {target.target.platform}")
