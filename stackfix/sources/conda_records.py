"""py-rattler's records turned into ours. Addresses lose what they hold of a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackfix.conda.records import CondaRecord
from stackfix.sources.conda_names import Place, public_address

if TYPE_CHECKING:
    import datetime as dt

    from rattler import RepoDataRecord


def our_record(theirs: RepoDataRecord, place: Place) -> CondaRecord:
    """The record, with addresses below the channel's own."""
    noarch = theirs.noarch
    return CondaRecord(
        name=theirs.name.normalized, version=str(theirs.version), build=str(theirs.build),
        build_number=theirs.build_number, subdir=theirs.subdir, channel=place.channel.url, file_name=theirs.file_name,
        url=record_address(theirs.url, place),
        md5=theirs.md5.hex() if theirs.md5 else None, sha256=theirs.sha256.hex() if theirs.sha256 else None,
        depends=tuple(theirs.depends), constrains=tuple(theirs.constrains),
        noarch="python" if noarch.python else "generic" if noarch.generic else None,
        size=theirs.size, timestamp=_milliseconds(theirs.timestamp),
        license=theirs.license, license_family=theirs.license_family, features=theirs.features,
        track_features=tuple(theirs.track_features), python_site_packages_path=theirs.python_site_packages_path)


def record_address(url: str, place: Place) -> str:
    """`url` as it may be written down: below the channel's own address where rattler read it below another."""
    if url.startswith(f"{place.fetch}/"):
        return f"{place.channel.url}/{url[len(place.fetch) + 1:]}"
    return public_address(url)


def _milliseconds(time: dt.datetime | None) -> int | None:
    if time is None:
        return None
    return int(time.replace(microsecond=0).timestamp()) * 1000 + time.microsecond // 1000
