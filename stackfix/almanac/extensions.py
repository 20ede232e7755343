"""The table of judged extension wheels (`extensions.tsv`), made from a manifest of its own and the finished almanac.

    python -m stackfix.almanac extensions --make                judges every wheel of extensions.toml; downloads what
                                                                the store lacks
    python -m stackfix.almanac extensions --add vllm==0.33.0    adds wheels to the manifest, and judges these
    python -m stackfix.almanac extensions --check               do table, manifest and store agree? no download

None of them changes the almanac itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stackfix.abi.judged import FILE, open_judged_wheels, render_judged_wheels
from stackfix.abi.records import JudgedWheel, TorchBook
from stackfix.almanac.extensions_judge import judge
from stackfix.almanac.fetch import resolve
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.store import default_store, kept_tables, note_left_out, tables
from stackfix.errors import AnswerIsNo, BadInput
from stackfix.matrix.toml_files import matrix_directory
from stackfix.write.replace import replace_files

MANIFEST = "extensions.toml"
MADE_OF = ("torch.toml", "nvidia.toml")     # the almanac is not to be judged by what it was made of
HEADER = ("# Extension wheels that are judged by the almanac, which is made of none of them.",
          "# `python -m stackfix.almanac extensions --add NAME==VERSION` adds one.")


class TableDiffers(AnswerIsNo):
    """The table is not what its manifest, its wheels and the almanac give."""

    reference = "table-differs"

    def __init__(self, file: str, lines: Sequence[str]) -> None:
        super().__init__(file, lines)
        self.file, self.lines = file, lines

    def what(self) -> str:
        return f"{self.file}: {len(self.lines)} rows are not what --make writes: {'; '.join(self.lines[:3])}"

    def next_step(self) -> str | None:
        return "`python -m stackfix.almanac extensions --make` writes it anew."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `extensions`."""
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", action="store_true", help="judge every wheel of the manifest")
    action.add_argument("--add", nargs="+", metavar="NAME==VERSION", help="add wheels to the manifest and judge these")
    action.add_argument("--check", action="store_true", help="does the table agree with the store? no download")
    parser.add_argument("--python", default="3.11", metavar="MINOR", help="whose wheels --add takes (3.11)")
    parser.add_argument("--store", type=Path, help="the tables of wheels; what is not in it is downloaded")
    parser.add_argument("--directory", type=Path, help="the almanac (matrices/abi)")


def run(asked: argparse.Namespace) -> None:
    """Carries out one call."""
    directory = asked.directory or matrix_directory() / "abi"
    store = asked.store or default_store(os.environ, Path.home())
    if asked.add:
        add(asked.add, directory, store, asked.python)
    elif asked.check:
        check(directory, store)
    else:
        make(directory, store)


def make(directory: Path, store: Path) -> None:
    """Writes the table of the whole manifest."""
    wheels = read_manifest(directory / MANIFEST)
    refuse_own(wheels, directory)
    replace_files(directory, {FILE: rendered(judged(wheels, store, open_book(directory)))})


def check(directory: Path, store: Path) -> None:
    """Raises TableDiffers where the table cannot be what `make` would write, as far as that can be told here."""
    wheels = read_manifest(directory / MANIFEST)
    refuse_own(wheels, directory)
    rows = {each.sha256: each for each in open_judged_wheels(directory).wheels}
    named = {(each.package, each.version, each.file, each.sha256) for each in rows.values()}
    listed = {(each.package, each.version, each.file, each.sha256) for each in wheels}
    found, book, compared = {file for _, _, file, _ in named ^ listed}, open_book(directory), 0
    for wheel in wheels:
        kept = kept_tables(wheel, store, every_file)
        compared += kept is not None
        if kept is not None and rows.get(wheel.sha256) != judge(kept, book):
            found.add(wheel.file)
    if found or (directory / FILE).read_bytes() != rendered(in_table_order(rows)):
        raise TableDiffers(str(directory / FILE), sorted(found) or ["the order of the rows"])
    note_left_out(store, compared, len(wheels))


def add(requirements: Iterable[str], directory: Path, store: Path, python: str) -> None:
    """Adds the wheels that pip would take for these requirements to the manifest, and their rows to the table."""
    wheels = list(read_manifest(directory / MANIFEST)) if (directory / MANIFEST).exists() else []
    rows = {each.sha256: each for each in open_judged_wheels(directory).wheels} if (directory / FILE).exists() else {}
    known = {each.sha256 for each in wheels}
    new = [each for each in (resolve(requirement, python) for requirement in requirements) if each.sha256 not in known]
    refuse_own(new, directory)
    rows |= {each.sha256: each for each in judged(new, store, open_book(directory))}
    replace_files(directory, {
        MANIFEST: render_manifest(HEADER, [*wheels, *new]).encode(), FILE: rendered(in_table_order(rows))})


def judged(wheels: Iterable[ManifestWheel], store: Path, book: TorchBook) -> list[JudgedWheel]:
    """The rows of these wheels, one wheel read after the other, in the order of the table."""
    rows = {each.sha256: judge(tables(each, store, every_file), book) for each in wheels}
    return in_table_order(rows)


def in_table_order(rows: Mapping[str, JudgedWheel]) -> list[JudgedWheel]:
    """Packages by name, a package's newest release first, a release's wheels by file name."""
    from packaging.version import Version

    found = sorted(rows.values(), key=lambda each: each.file)
    found.sort(key=lambda each: Version(each.version), reverse=True)
    return sorted(found, key=lambda each: each.package)


def rendered(rows: Iterable[JudgedWheel]) -> bytes:
    return render_judged_wheels(rows).encode()


def refuse_own(wheels: Iterable[ManifestWheel], directory: Path) -> None:
    """Raises BadInput for a wheel that the almanac itself is made of."""
    for name in MADE_OF:
        if (directory / name).exists():
            own = {each.sha256 for each in read_manifest(directory / name)}
            for each in wheels:
                if each.sha256 in own:
                    raise BadInput(each.file, f"the almanac is made of it ({name})", "A wheel cannot judge itself.")


def every_file(_path: str) -> bool:
    return True


def open_book(directory: Path) -> TorchBook:
    from stackfix.abi.book import open_torch_book

    return open_torch_book(directory)
