"""What the members of a wheel are and where an installer puts them, by the binary distribution format."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.errors import BadInput
from stackfix.inspect.environment_objects import SHARED_OBJECT
from stackfix.inspect.environment_records import Distribution, Environment, SiteFolder
from stackfix.inspect.places import KIB
from stackfix.inspect.wheel_archive import BadMember, WheelArchive
from stackfix.inspect.wheels import METADATA_LIMIT, RECORD_LIMIT, first, normalised, parse_headers

METADATA = re.compile(r"(?P<folder>[^/]+\.dist-info)/METADATA")
LIMITS = {"METADATA": METADATA_LIMIT, "WHEEL": 64 * KIB, "RECORD": RECORD_LIMIT + 1}
FILE_NAME = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-\d[^-]*)?-(?P<tags>[^-]+-[^-]+-[^-]+)\.whl")
SITE_SCHEMES = frozenset({"purelib", "platlib"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A wheel's metadata folder and what is in it."""

    info: str                       # "torch-2.3.1.dist-info"
    metadata: Mapping[str, bytes]   # "METADATA", "WHEEL", "RECORD", those that are there
    pure: bool                      # Root-Is-Purelib

    def place(self, name: str, site: str, base: str) -> str | None:
        """Where a member goes, None for scripts and headers, whose folders depend on the installer."""
        start = f"{self.info.removesuffix('.dist-info')}.data/"
        if not name.startswith(start):
            return f"{site}/{name}"
        scheme, _, rest = name.removeprefix(start).partition("/")
        if not rest or scheme not in {*SITE_SCHEMES, "data"}:
            return None
        return f"{site}/{rest}" if scheme in SITE_SCHEMES else f"{base}/{rest}"


def is_shared_object(name: str) -> bool:
    return SHARED_OBJECT.fullmatch(posixpath.basename(name)) is not None


def read_parts(archive: WheelArchive) -> Parts:
    """The metadata of a wheel. Raises BadInput where it has none that can be read."""
    found = [match["folder"] for match in map(METADATA.fullmatch, archive.members) if match]
    if len(found) != 1:
        reason = "has metadata of several projects" if found else "has no NAME-VERSION.dist-info/METADATA"
        raise BadInput(str(archive.path), f"is no wheel: it {reason}")
    metadata = {}
    for name, limit in LIMITS.items():
        member = f"{found[0]}/{name}"
        if member not in archive.members:
            archive.fault("missing (installers refuse such a wheel)", member)
            continue
        try:
            metadata[name] = archive.read(member, limit)
        except BadMember as error:
            raise BadInput(str(archive.path), f"is no wheel: {member}: {error}") from error
    pure = first(parse_headers(metadata.get("WHEEL", b"")), "root-is-purelib") or ""
    return Parts(info=found[0], metadata=metadata, pure=pure.lower() == "true")


def compare_name(archive: WheelArchive, distribution: Distribution) -> tuple[str, ...]:
    """The tags in the file's name; where the name does not fit the metadata, that is a fault."""
    name = archive.path.name
    match = FILE_NAME.fullmatch(name)
    if match is None:
        archive.fault("no name of a wheel (installers refuse it)", name)
        return ()
    if normalised(match["name"]) != distribution.name or not same_version(match["version"], distribution.version):
        archive.fault(f"METADATA calls it {distribution.spelling} {distribution.version}, not", name)
    return tuple("-".join(each) for each in itertools.product(*(part.split(".") for part in match["tags"].split("-"))))


def same_version(one: str, other: str) -> bool:
    """Whether two spellings are one version: 1.0 and 1.0.0."""
    if one.replace("_", "-") == other:
        return True
    from packaging.version import InvalidVersion, Version

    try:
        return Version(one.replace("_", "-")) == Version(other)
    except InvalidVersion:
        return False


def site_for(environment: Environment, site: str | None, *, pure: bool) -> SiteFolder:
    """The folder that an installer would use: of Fedora's two, lib64 for wheels with compiled code. Raises BadInput."""
    if site is not None:
        found = [each for each in environment.sites if each.path == site]
    else:
        found = [each for each in environment.sites if each.kind == "environment"]
        found.sort(key=lambda each: ("/lib64/" in each.path) == pure)
    if not found:
        raise BadInput(site or environment.prefix, "is no folder of the environment that a wheel could go to")
    return found[0]
