"""py-rattler's records turned into ours. Addresses lose what they hold of a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackfix.conda.records import CondaRecord

if TYPE_CHECKING:
    import datetime as dt

    from rattler import RepoDataRecord


def our_record(theirs: RepoDataRecord, *, fetched: str, public: str) -> CondaRecord:
    """The record, with addresses below `public` where rattler has them below `fetched`, the address that it reads."""
    noarch = theirs.noarch
    return CondaRecord(
        name=theirs.name.normalized, version=str(theirs.version), build=str(theirs.build),
        build_number=theirs.build_number, subdir=theirs.subdir, channel=public, file_name=theirs.file_name,
        url=public_address(theirs.url, fetched=fetched, public=public),
        md5=theirs.md5.hex() if theirs.md5 else None, sha256=theirs.sha256.hex() if theirs.sha256 else None,
        depends=tuple(theirs.depends), constrains=tuple(theirs.constrains),
        noarch="python" if noarch.python else "generic" if noarch.generic else None,
        size=theirs.size, timestamp=_milliseconds(theirs.timestamp),
        license=theirs.license, license_family=theirs.license_family, features=theirs.features,
        track_features=tuple(theirs.track_features), python_site_packages_path=theirs.python_site_packages_path)


def public_address(url: str, *, fetched: str, public: str) -> str:
    """`url` as it may be written down."""
    base = fetched.rstrip("/") + "/"
    if url.startswith(base):
        return f"{public}/{url[len(base):]}"
    from stackfix.sources.address import without_credentials

    return without_credentials(url)


def _milliseconds(time: dt.datetime | None) -> int | None:
    if time is None:
        return None
    return int(time.replace(microsecond=0).timestamp()) * 1000 + time.microsecond // 1000
