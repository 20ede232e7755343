"""Whether the book of NVIDIA's libraries agrees with its manifests, and with the wheels in the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stackfix.almanac.nvidia_files import (
    FOLDER,
    PACKAGES,
    USES,
    differing,
    digest_of,
    read_digest,
    read_exports,
    read_unread,
    read_uses,
)
from stackfix.almanac.nvidia_libraries import wanted_of
from stackfix.almanac.nvidia_tables import LibraryExports
from stackfix.almanac.records import ManifestWheel, WheelTables
from stackfix.almanac.store import kept_tables
from stackfix.almanac.torch_exports import is_wanted
from stackfix.almanac.uses import LibraryUses


def disagreements(directory: Path, providers: Sequence[ManifestWheel],
                  consumers: Sequence[ManifestWheel], store: Path) -> tuple[list[str], int]:
    """(what does not agree, how many of the wheels the store has). Downloads nothing."""
    exports = read_exports(directory)
    uses = read_uses(directory, exports)
    listed = {(each.package, each.version) for each in providers}
    unread = {package: {version for version in versions if (package, version) not in listed}
              for package, versions in read_unread(directory).items()}
    digest = read_digest(directory) or ""
    found = [*other_manifest(digest, providers), *differing(directory, exports, uses, unread, digest),
             *unlisted(exports, uses, listed, consumers)]
    names, compared = exports.names(), 0
    for wheel in (*providers, *consumers):
        provides = (wheel.package, wheel.version) in listed
        tables = kept_tables(wheel, store, wanted_of(wheel.package) if provides else is_wanted)
        if tables is not None:
            compared += 1
            found += exported_otherwise(tables, exports) if provides else ()
            found += used_otherwise(tables, uses, names)
    return found, compared


def other_manifest(digest: str, providers: Sequence[ManifestWheel]) -> Iterator[str]:
    """That the files were made of another manifest: of other wheels, or of wheels with other hashes."""
    if digest != digest_of(providers):
        yield f"nvidia.toml is not the manifest that {FOLDER}/{PACKAGES} was made of: a hash or a file differs"


def unlisted(exports: LibraryExports, uses: LibraryUses, listed: set[tuple[str, str]],
             consumers: Sequence[ManifestWheel]) -> Iterator[str]:
    """Releases that a file has and no manifest, or the other way round."""
    asking = listed | {(each.package, each.version) for each in consumers}
    read = {(package, version) for package, versions in exports.read.items() for version in versions}
    used = {(package, version) for package, versions in uses.versions.items() for version in versions}
    for file, there, wanted in ((f"{FOLDER}/{PACKAGES}", read, listed), (USES, used, asking)):
        yield from (f"{file}: {package} {version} is in it or in the manifests, not in both"
                    for package, version in sorted(there ^ wanted))


def exported_otherwise(tables: WheelTables, exports: LibraryExports) -> Iterator[str]:
    """Files that say something else of what one wheel exports."""
    package, version = tables.wheel.package, tables.wheel.version
    alone = LibraryExports()
    alone.add(tables)
    sonames = exports.read.get(package, {}).get(version, ())
    if alone.read[package][version] != sonames:
        yield f"{FOLDER}/{PACKAGES}: {package} {version}"
    for soname in sonames:
        having = alone.having.get(soname, {}).get(package, {})
        if set(having) != {name for name, versions in exports.having[soname][package].items() if version in versions}:
            yield f"{FOLDER}/{soname}.tsv: {package} {version}"


def used_otherwise(tables: WheelTables, uses: LibraryUses, names: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """That uses.tsv says something else of what one wheel wants."""
    package, version = tables.wheel.package, tables.wheel.version
    alone = LibraryUses(names)
    alone.add(tables)
    if triples(alone, package, version) != triples(uses, package, version):
        yield f"{USES}: {package} {version}"


def triples(uses: LibraryUses, package: str, version: str) -> set[tuple[str, str, str]]:
    """(library, soname, name) of what a release wants."""
    return {(library, soname, name) for (library, soname), names in uses.wanting.get(package, {}).items()
            for name, versions in names.items() if version in versions}


__all__ = ["disagreements"]
