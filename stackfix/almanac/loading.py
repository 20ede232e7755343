"""What loading asks of published wheels (`matrices/abi/loading.bin`): a proof of a usual lock downloads nothing.

    python -m stackfix.almanac loading --make                   from every wheel of loading.toml; downloads what the
                                                                store lacks
    python -m stackfix.almanac loading --add torch==2.16.0      adds the wheels that pip would install for this, but for
                                                                those of no platform, and makes the file anew
    python -m stackfix.almanac loading --check                  do file, manifest and store agree? no download

The store keeps the tables of all shared objects of a wheel, of torch some MB, as `lock --prove` does in its cache.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from stackfix.abi.book import open_torch_book
from stackfix.abi.records import TorchBook
from stackfix.almanac.fetch import PYTHON, closure, download
from stackfix.almanac.loading_check import differing, no_torch, unlike
from stackfix.almanac.loading_facts import WheelFacts, distances, document_of, exports_of, facts_of
from stackfix.almanac.manifest import in_order, read_manifest, render_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.store import default_store, note_left_out, tell, work_folder
from stackfix.errors import AnswerIsNo, BadInput
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import SymbolNames
from stackfix.matrix.toml_files import matrix_directory
from stackfix.prove.records import PlannedWheel
from stackfix.sources.cache import Cache
from stackfix.tables.kept import keep, read_kept
from stackfix.tables.loading_book import FILE, LoadingBook
from stackfix.tables.loading_format import MOST, pack
from stackfix.tables.loading_torch import ReleaseNames, release_names
from stackfix.tables.opened import open_symbols
from stackfix.tables.records import ReducedWheel
from stackfix.tables.reduce import reduce_wheel
from stackfix.write.replace import replace_files

MANIFEST = "loading.toml"
TORCH = "torch.toml"            # the wheels that the book of torch was made of
HEADER = ("# Wheels of which the almanac tells what loading asks of them.",
          "# `python -m stackfix.almanac loading --add NAME==VERSION` adds those of one installation.")


class LoadingDiffers(AnswerIsNo):
    """The file is not what its manifest and its wheels give."""

    reference = "loading-differs"

    def __init__(self, file: str, lines: Sequence[str]) -> None:
        super().__init__(file, lines)
        self.file, self.lines = file, lines

    def what(self) -> str:
        more = f" and {len(self.lines) - 3} more" if len(self.lines) > 3 else ""
        return f"{self.file} is not what --make writes: {'; '.join(self.lines[:3])}{more}"

    def next_step(self) -> str | None:
        return "`python -m stackfix.almanac loading --make` writes it anew."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `loading`."""
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", action="store_true", help="read every wheel of the manifest")
    action.add_argument("--add", nargs="+", metavar="NAME==VERSION", help="add the wheels of these installations")
    action.add_argument("--check", action="store_true", help="does the file agree with the store? no download")
    parser.add_argument("--python", default=PYTHON, metavar="MINOR", help=f"whose wheels --add takes ({PYTHON})")
    parser.add_argument("--store", type=Path, help="the tables of wheels; what is not in it is downloaded")
    parser.add_argument("--directory", type=Path, help="the almanac (matrices/abi)")


def run(asked: argparse.Namespace) -> None:
    """Carries out one call."""
    directory = asked.directory or matrix_directory() / "abi"
    store = Cache(asked.store or default_store(os.environ, Path.home()))
    if asked.add:
        add(asked.add, directory, store, asked.python)
    elif asked.check:
        check(directory, store)
    else:
        replace_files(directory, {FILE: made(read_manifest(directory / MANIFEST), directory, store)})


def add(requirements: Iterable[str], directory: Path, store: Cache, python: str) -> None:
    """Adds the wheels of these installations to the manifest, and makes the file anew."""
    wheels = list(read_manifest(directory / MANIFEST)) if (directory / MANIFEST).exists() else []
    known = {each.sha256 for each in wheels}
    for requirement in requirements:
        for each in closure(requirement, python):
            if each.sha256 not in known and not each.file.endswith("-none-any.whl"):
                known.add(each.sha256)
                wheels.append(each)
    text = render_manifest(HEADER, wheels)
    replace_files(directory, {MANIFEST: text.encode(), FILE: made(wheels, directory, store)})


def made(wheels: Iterable[ManifestWheel], directory: Path, store: Cache) -> bytes:
    """The bytes of the file. Reads wheels that the store lacks."""
    book = ReadByBook(directory)
    facts = [facts_from(wheel, reduced(wheel, store), book) for wheel in in_order(wheels)]
    content = packed(facts)
    if len(content) > MOST:
        raise BadInput(MANIFEST, "its wheels make a larger file than is ever read")
    return content


def packed(facts: Sequence[WheelFacts]) -> bytes:
    """The bytes of the file for these wheels, in their order."""
    looked_for = sorted({symbol.name for each in facts for library in each.libraries.values()
                         for symbol in library.wanted})
    asked = SymbolNames(looked_for)
    exports = [{path: exports_of(library, asked) for path, library in each.libraries.items()} for each in facts]
    names = sorted({*looked_for, *(name for each in exports for found in each.values() for name in found),
                    *(name for each in facts for library in each.libraries.values() for name in library.lacks)})
    places = {name: place for place, name in enumerate(names)}
    return pack(names, distances(places[name] for name in looked_for), [
        ((each.wheel.package, each.wheel.version, each.wheel.file, each.wheel.sha256), document_of(each, found, places))
        for each, found in zip(facts, exports, strict=True)])


def facts_from(wheel: ManifestWheel, found: ReducedWheel, book: ReadByBook) -> WheelFacts:
    """The facts of a wheel whose tables were read."""
    opened: dict[str, MappedSymbols] = {}

    def symbols(path: str) -> MappedSymbols:
        if path not in opened:
            opened[path] = open_symbols(found, path)
        return opened[path]

    return facts_of(wheel, found.tables, symbols, book.names(wheel))


class ReadByBook:
    """The wheels that the book of torch was made of."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._wheels = frozenset(each.sha256 for each in read_manifest(directory / TORCH))
        self._book: TorchBook | None = None

    def names(self, wheel: ManifestWheel) -> ReleaseNames | None:
        """What the book says of a wheel's release; None where it was not made of this wheel."""
        if wheel.sha256 not in self._wheels:
            return None
        self._book = self._book or open_torch_book(self._directory)
        return release_names(self._book, wheel.version)


def reduced(wheel: ManifestWheel, store: Cache) -> ReducedWheel:
    """The tables of a wheel, of the store or of the wheel itself, which is on disk no longer than it is read."""
    found = read_kept(store, wheel.sha256)
    if found is not None:
        return found
    planned = PlannedWheel(name=wheel.package, version=wheel.version, file=wheel.file, sha256=wheel.sha256, url=None,
                           size=None)
    try:
        with work_folder(store.directory) as work:
            tell(f"{wheel.file}: downloading", lasting=True)
            path = download(wheel, work)
            tell(f"{wheel.file}: reading")
            found = reduce_wheel(path, planned, lambda *_: None, work)
    finally:
        tell("")
    keep(store, found)
    return found


def check(directory: Path, store: Cache) -> None:
    """Raises LoadingDiffers where the file cannot be what `made` would give, as far as that can be told here."""
    wheels, path = read_manifest(directory / MANIFEST), directory / FILE
    content = path.read_bytes()
    told = LoadingBook(content, path, no_torch)
    listed = [(each.package, each.version, each.file, each.sha256) for each in wheels]
    lines, compared = [f"{file}: not in both" for _, _, file, _ in sorted({*listed} ^ {*told.wheels})], 0
    if not lines and listed != list(told.wheels):
        lines = ["the order of its wheels"]
    book = ReadByBook(directory)
    for wheel in wheels if not lines else ():
        found = read_kept(store, wheel.sha256)
        if found is not None:
            compared += 1
            lines += unlike(told, facts_from(wheel, found, book))
    if not lines and compared == len(wheels):
        lines = list(differing(content, made(wheels, directory, store), str(path)))
    if lines:
        raise LoadingDiffers(str(path), lines)
    note_left_out(store.directory, compared, len(wheels))


__all__ = ["add_arguments", "run"]
