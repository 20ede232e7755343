"""The book of NVIDIA's libraries on disk, read to be added to, and written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from stackfix.abi.nvidia_text import parse_exports, parse_packages, parse_uses
from stackfix.almanac.manifest import in_order
from stackfix.almanac.nvidia_tables import MANIFEST_LINE, LibraryExports
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.uses import LibraryUses
from stackfix.matrix.toml_files import read_file
from stackfix.write.replace import replace_files

FOLDER, PACKAGES, USES = "nvidia", "packages.tsv", "uses.tsv"
DIGEST = re.compile(re.escape(MANIFEST_LINE.strip()).replace(re.escape("{digest}"), "([0-9a-f]{64})").encode())


def digest_of(wheels: Iterable[ManifestWheel]) -> str:
    """Of all rows of a manifest: another hash of one wheel is another digest."""
    rows = (f"{each.package} {each.version} {each.file} {each.sha256}\n" for each in in_order(wheels))
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def read_digest(directory: Path) -> str | None:
    """Of the manifest that the files were made of; None where they do not say."""
    found = DIGEST.search(current(directory / FOLDER / PACKAGES) or b"")
    return found[1].decode() if found else None


def read_unread(directory: Path) -> dict[str, tuple[str, ...]]:
    """By package, the versions that the book has as unread. Raises BadInput."""
    path = directory / FOLDER / PACKAGES
    if not path.exists():
        return {}
    return {package: each.unread for package, each in parse_packages(str(path), read_file(path, (PACKAGES,))).items()}


def read_exports(directory: Path) -> LibraryExports:
    """What the book says that wheels export. Raises BadInput."""
    path, found = directory / FOLDER / PACKAGES, LibraryExports()
    carriers: dict[str, dict[str, tuple[str, ...]]] = {}
    for package, each in parse_packages(str(path), read_file(path, (PACKAGES,))).items():
        found.read[package] = dict(each.read)
        for version, sonames in each.read.items():
            for soname in sonames:
                carrying = carriers.setdefault(soname, {})
                carrying[package] = (*carrying.get(package, ()), version)
    for soname, versions in carriers.items():
        file = directory / FOLDER / f"{soname}.tsv"
        for package, exports in parse_exports(str(file), read_file(file, (file.name,)), versions).items():
            having = found.having.setdefault(soname, {}).setdefault(package, {})
            for name, mask in exports.masks.items():
                having[name] = chosen(mask, exports.versions)
    return found


def read_uses(directory: Path, exports: LibraryExports) -> LibraryUses:
    """What the book says that consumers want. Raises BadInput."""
    path, found = directory / USES, LibraryUses(exports.names())
    for consumer, each in parse_uses(str(path), read_file(path, (USES,))).items():
        found.versions[consumer] = set(each.versions)
        wanting = found.wanting.setdefault(consumer, {})
        for wants in each.wants:
            wanting[wants.file, wants.soname] = {name: chosen(mask, each.versions)
                                                 for name, mask in wants.masks.items()}
    return found


def chosen(mask: int, versions: Iterable[str]) -> set[str]:
    return {version for place, version in enumerate(versions) if mask >> place & 1}


def write_book(directory: Path, exports: LibraryExports, uses: LibraryUses, manifest: bytes | None,
               unread: Mapping[str, Iterable[str]], digest: str) -> None:
    """Writes the files, and the manifest beside them where it is given; removes files of libraries that are gone."""
    folder = directory / FOLDER
    found: dict[str, bytes | None] = {**exports.files(unread, digest)}
    gone = {each.name for each in folder.glob("*.tsv")} - found.keys()
    replace_files(folder, found | dict.fromkeys(gone))
    replace_files(directory, {USES: uses.text()} | ({"nvidia.toml": manifest} if manifest is not None else {}))


def differing(directory: Path, exports: LibraryExports, uses: LibraryUses,
              unread: Mapping[str, Iterable[str]], digest: str) -> tuple[str, ...]:
    """Names of files that are not what `write_book` would write, below `directory`."""
    wanted = {f"{FOLDER}/{name}": content for name, content in exports.files(unread, digest).items()}
    wanted[USES] = uses.text()
    there = {each.relative_to(directory).as_posix() for each in (directory / FOLDER).glob("*.tsv")}
    return tuple(sorted(name for name in wanted.keys() | there if current(directory / name) != wanted.get(name)))


def current(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
