"""py-rattler's records turned into ours. Addresses lose what they hold of a login."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackfix.conda.records import CondaRecord
from stackfix.sources.conda_errors import HINT, BadChannel
from stackfix.sources.conda_names import Place, public_address

if TYPE_CHECKING:
    import datetime as dt

    from rattler import RepoDataRecord

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!~*=-]*")    # as in names of files; neither a slash nor a blank


def our_record(theirs: RepoDataRecord, place: Place) -> CondaRecord:
    """The record, with addresses below the channel's own.

    Raises BadChannel for one whose names would lead out of a folder: installers make paths of them.
    """
    noarch = theirs.noarch
    name, version, build = theirs.name.normalized, str(theirs.version), str(theirs.build)
    for word in (name, version, build, theirs.subdir, theirs.file_name):
        if not _WORD.fullmatch(word):
            raise BadChannel(place.channel.name, f"{theirs.file_name} states {word[:80]!r}, which no package has", HINT)
    return CondaRecord(
        name=name, version=version, build=build, build_number=theirs.build_number, subdir=theirs.subdir,
        channel=place.channel.url, file_name=theirs.file_name,
        url=record_address(theirs.url, place),
        md5=theirs.md5.hex() if theirs.md5 else None, sha256=theirs.sha256.hex() if theirs.sha256 else None,
        depends=tuple(theirs.depends), constrains=tuple(theirs.constrains),
        noarch="python" if noarch.python else "generic" if noarch.generic else None,
        size=theirs.size, timestamp=_milliseconds(theirs.timestamp),
        license=_line(theirs.license), license_family=_line(theirs.license_family), features=theirs.features,
        track_features=tuple(theirs.track_features), python_site_packages_path=theirs.python_site_packages_path)


def record_address(url: str, place: Place) -> str:
    """`url` as it may be written down: below the channel's own address where rattler read it below another."""
    if url.startswith(f"{place.fetch}/"):
        return f"{place.channel.url}/{url[len(place.fetch) + 1:]}"
    return public_address(url)


def _line(text: str | None) -> str | None:
    """The text on one line: lockfiles are read line by line."""
    if text is None or text.isprintable():
        return text
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _milliseconds(time: dt.datetime | None) -> int | None:
    if time is None:
        return None
    return int(time.replace(microsecond=0).timestamp()) * 1000 + time.microsecond // 1000
