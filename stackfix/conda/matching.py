"""Whether a MatchSpec admits a record, by the reading of the solver itself (py-rattler), which is imported late."""

from __future__ import annotations

from functools import lru_cache

from stackfix.conda.records import CondaRecord


def admits(line: str, record: CondaRecord) -> bool | None:
    """Whether a dependency line admits a record; None where the line or the record's version cannot be read."""
    return _admits(line, record.name, record.version, record.build, record.build_number)


def admits_version(line: str, version: str) -> bool | None:
    """Whether the version part of a dependency line admits a version; None where one of the two cannot be read."""
    parts = line.split()
    if len(parts) < 2:
        return True
    return _admits(f"x {parts[1]}", "x", version, "0", 0)


@lru_cache(maxsize=65_536)
def _admits(line: str, name: str, version: str, build: str, number: int) -> bool | None:
    from rattler import BuildString, MatchSpec, PackageRecord
    from rattler.exceptions import InvalidMatchSpecError, InvalidPackageNameError, InvalidVersionError

    try:
        record = PackageRecord(
            name=name, version=version, build=BuildString(build), build_number=number, subdir="noarch")
        return bool(MatchSpec(line).matches(record))
    except (InvalidMatchSpecError, InvalidPackageNameError, InvalidVersionError, ValueError):   # the last: of a build
        return None
    except BaseException as error:      # a panic of the library's native part is no Exception
        if type(error).__name__ == "PanicException":
            return None
        raise


@lru_cache(maxsize=65_536)
def newer(one: str, other: str) -> bool | None:
    """Whether conda orders `one` after `other`; None where it can read one of them not."""
    return admits_version(f"x >{other}", one)
