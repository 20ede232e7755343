"""The book of NVIDIA's libraries (`matrices/abi/nvidia`, `uses.tsv`), made from the wheels of its manifest.

    python -m stackfix.almanac nvidia --make                            from every wheel of nvidia.toml and torch.toml;
                                                                        downloads what the store lacks: tens of GB
    python -m stackfix.almanac nvidia --add nvidia-cublas-cu12==12.9.1.4    adds wheels; without a version, all new ones
    python -m stackfix.almanac nvidia --published                       asks the index which versions are not read
    python -m stackfix.almanac nvidia --check                           do the files agree with each other and with the
                                                                        wheels in the store? no download

`--add` reads only the new wheels: the rest is in the files.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from stackfix.almanac.fetch import resolve
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.nvidia_check import disagreements, other_manifest
from stackfix.almanac.nvidia_files import digest_of, read_digest, read_exports, read_unread, read_uses, write_book
from stackfix.almanac.nvidia_libraries import PACKAGES, family_of, wanted_of
from stackfix.almanac.nvidia_published import published
from stackfix.almanac.nvidia_tables import LibraryExports
from stackfix.almanac.records import ManifestWheel, WheelTables
from stackfix.almanac.store import default_store, note_left_out, tables
from stackfix.almanac.torch_exports import is_wanted
from stackfix.almanac.uses import LibraryUses
from stackfix.errors import AnswerIsNo
from stackfix.matrix.toml_files import matrix_directory
from stackfix.write.replace import replace_files

MANIFEST, CONSUMERS = "nvidia.toml", "torch.toml"
HEADER = ("# Wheels of NVIDIA's libraries (Linux x86_64) that the almanac is made of.",
          "# `python -m stackfix.almanac nvidia --add NAME==VERSION` adds one.")


class BookDiffers(AnswerIsNo):
    """The files contradict each other, their manifests, or wheels that were read."""

    reference = "book-differs"

    def __init__(self, directory: str, lines: Sequence[str]) -> None:
        super().__init__(directory, lines)
        self.directory, self.lines = directory, lines

    def what(self) -> str:
        more = f" (and {len(self.lines) - 5} more)" if len(self.lines) > 5 else ""
        return f"{self.directory}: not what --make writes: {'; '.join(self.lines[:5])}{more}"

    def next_step(self) -> str | None:
        return "`python -m stackfix.almanac nvidia --make` writes them anew."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `nvidia`."""
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", action="store_true", help="from every wheel of the manifests")
    action.add_argument("--add", nargs="+", metavar="NAME[==VERSION]", help="read wheels and add them")
    action.add_argument("--published", action="store_true", help="list what the index has and the book has not")
    action.add_argument("--check", action="store_true", help="do the files agree, also with the store? no download")
    parser.add_argument("--store", type=Path, help="the tables of wheels; what is not in it is downloaded")
    parser.add_argument("--directory", type=Path, help="the almanac (matrices/abi)")


def run(asked: argparse.Namespace) -> None:
    """Carries out one call."""
    directory = asked.directory or matrix_directory() / "abi"
    store = asked.store or default_store(os.environ, Path.home())
    if asked.add:
        add(asked.add, directory, store)
    elif asked.published:
        look(directory)
    elif asked.check:
        check(directory, store)
    else:
        digest = digest_of(read_manifest(directory / MANIFEST))
        write_book(directory, *gathered(directory, store), manifest=None, unread=not_read(directory), digest=digest)


def check(directory: Path, store: Path) -> None:
    """Raises BookDiffers where the files cannot be what `--make` would write, as far as that can be told here."""
    providers = read_manifest(directory / MANIFEST)
    consumers = read_manifest(directory / CONSUMERS) if (directory / CONSUMERS).exists() else ()
    found, compared = disagreements(directory, providers, consumers, store)
    if found:
        raise BookDiffers(str(directory), found)
    note_left_out(store, compared, len(providers) + len(consumers))


def gathered(directory: Path, store: Path) -> tuple[LibraryExports, LibraryUses]:
    """What all wheels of the manifests export and want, one wheel after the other."""
    exports = LibraryExports()
    for each in of_manifest(directory, MANIFEST, store):
        exports.add(each)
    uses = LibraryUses(exports.names())
    for name in (MANIFEST, CONSUMERS):      # a second time, from the store: whose a name is takes all the exports
        for each in of_manifest(directory, name, store):
            uses.add(each)
    return exports, uses


def of_manifest(directory: Path, name: str, store: Path) -> Iterator[WheelTables]:
    """Tables of the wheels of one manifest; of torch's, where there is one."""
    path = directory / name
    if name == MANIFEST or path.exists():
        for wheel in read_manifest(path):
            yield tables_of(wheel, store)


def tables_of(wheel: ManifestWheel, store: Path) -> WheelTables:
    """What is read of one wheel: the libraries that others are linked against; of torch, those that ask for them."""
    return tables(wheel, store, is_wanted if wheel.package == "torch" else wanted_of(wheel.package))


def not_read(directory: Path) -> dict[str, set[str]]:
    """Versions that the book has as unread, less those that the manifest has by now."""
    known = {(each.package, each.version) for each in read_manifest(directory / MANIFEST)}
    return {package: {version for version in versions if (package, version) not in known}
            for package, versions in read_unread(directory).items()}


def look(directory: Path) -> None:
    """Writes into packages.tsv which published versions were not read. Nothing else changes."""
    digest, exports = made_of(directory), read_exports(directory)
    unread = {package: set(published(package)) - exports.read.get(package, {}).keys() for package in PACKAGES}
    replace_files(directory / "nvidia", {"packages.tsv": exports.files(unread, digest)["packages.tsv"]})


def made_of(directory: Path) -> str:
    """The digest of the manifest. Raises BookDiffers where the files were made of another one."""
    wheels, known = read_manifest(directory / MANIFEST), read_digest(directory)
    if known is not None and (found := [*other_manifest(known, wheels)]):
        raise BookDiffers(str(directory), found)
    return digest_of(wheels)


def add(requirements: Iterable[str], directory: Path, store: Path) -> None:
    """Reads the wheels that are meant, and adds them to the manifest and to the files."""
    made_of(directory)
    exports = read_exports(directory)
    uses = read_uses(directory, exports)
    wheels = list(read_manifest(directory / MANIFEST))
    new = [each for each in map(resolve, asked_for(requirements, exports)) if each not in wheels]
    found = [tables_of(each, store) for each in new]
    for each in found:
        exports.add(each)
    uses.exports = exports.names()
    for each in found:
        uses.add(each)
    manifest = render_manifest(HEADER, [*wheels, *new]).encode()
    unread = {package: set(versions) - exports.read.get(package, {}).keys()
              for package, versions in read_unread(directory).items()}
    write_book(directory, exports, uses, manifest, unread, digest_of([*wheels, *new]))


def asked_for(requirements: Iterable[str], exports: LibraryExports) -> Iterator[str]:
    """Requirements with a version: of a bare package, every published version that the book has not."""
    for requirement in requirements:
        package = requirement.partition("==")[0].strip()
        family_of(package)
        if package != requirement:
            yield requirement
        else:
            yield from (f"{package}=={version}" for version in published(package)
                        if version not in exports.read.get(package, {}))


def main(words: Sequence[str] | None = None) -> int:
    """The exit status of one call."""
    parser = argparse.ArgumentParser(prog="python -m stackfix.almanac nvidia")
    add_arguments(parser)
    run(parser.parse_args(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
