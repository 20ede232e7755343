"""The book of torch (`matrices/abi/core.tsv`, `full.tsv.xz`, `full.bin`, `patches.tsv`), made from published wheels.

    python -m stackfix.almanac torch --make             from every wheel of torch.toml; downloads what the store lacks
    python -m stackfix.almanac torch --add 2.16.0       a new release: into torch.toml, and into the files
    python -m stackfix.almanac torch --check            tells whether the files agree with each other; asks no wheel

`--add` reads the wheels of that release's minor: for a new minor just the new one.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from stackfix.almanac.fetch import PYTHON, resolve
from stackfix.almanac.manifest import in_order, read_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.store import default_store, tables
from stackfix.almanac.torch_exports import Exports, exports_of, is_wanted
from stackfix.almanac.torch_files import (
    MANIFEST,
    by_minor,
    contents,
    faults,
    patches_of,
    read_patches,
    read_table,
    strangers,
    write_files,
)
from stackfix.almanac.torch_patches import PatchRow, differences
from stackfix.almanac.torch_table import Table, minor_of, with_column
from stackfix.errors import AnswerIsNo, BadInput
from stackfix.matrix.toml_files import matrix_directory

PACKAGE = "torch"
STABLE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

FOLLOWING = ("now: `python -m stackfix.almanac nvidia --make` (what the new torch asks of NVIDIA's libraries), then"
             " `python -m stackfix.almanac extensions --make` (which extensions it can load)")


class FilesDisagree(AnswerIsNo):
    """The files of the almanac contradict each other."""

    reference = "almanac-disagrees"

    def __init__(self, directory: str, lines: Sequence[str]) -> None:
        super().__init__(directory, lines)
        self.directory, self.lines = directory, lines

    def what(self) -> str:
        more = f" (and {len(self.lines) - 3} more)" if len(self.lines) > 3 else ""
        return f"{self.directory}: {'; '.join(self.lines[:3])}{more}"

    def next_step(self) -> str | None:
        return "`python -m stackfix.almanac torch --make` writes them anew."


def make(directory: Path, store: Path) -> None:
    """Writes all files from every wheel of the manifest."""
    wheels = checked(directory / MANIFEST)
    table, patches = Table(releases=(), rows={}), list[PatchRow]()
    for group in by_minor(wheels).values():
        table, rows = with_minor(table, group, store)
        patches += rows
    write_files(directory, contents(table, patches, wheels))


def add(versions: Sequence[str], directory: Path, store: Path, python: str = PYTHON) -> None:
    """Puts releases into the manifest, and their minors into the files: the very bytes that `make` would write."""
    wheels = checked(directory / MANIFEST)
    table, patches = read_table(directory), read_patches(directory)
    others = strangers(table, wheels)
    if others:
        raise FilesDisagree(str(directory), others)
    for version in versions:
        if not STABLE.fullmatch(version):
            raise BadInput(version, "is no stable release of three numbers", "name one such as 2.16.0")
        if any(each.version == version for each in wheels):
            raise BadInput(version, f"is in {MANIFEST} already", "`--make` reads it again")
    new = [resolve(f"{PACKAGE}=={version}", python) for version in versions]
    wheels = tuple(in_order([*wheels, *new]))
    groups = by_minor(wheels)
    for minor in dict.fromkeys(minor_of(each.version) for each in new):
        table, rows = with_minor(table, groups[minor], store)
        patches = [row for row in patches if minor_of(row[0]) != minor] + rows
    write_files(directory, contents(table, patches, wheels))


def with_minor(table: Table, group: Sequence[ManifestWheel], store: Path) -> tuple[Table, list[PatchRow]]:
    """The table with one minor's column, and what its other patches have otherwise. `group`: newest patch first."""
    newest = read(group[0], store)
    rows = [row for wheel in group[1:] for row in differences(newest, read(wheel, store))]
    return with_column(table, newest, patches_of(group)), rows


def read(wheel: ManifestWheel, store: Path) -> Exports:
    return exports_of(tables(wheel, store, is_wanted))


def checked(path: Path) -> tuple[ManifestWheel, ...]:
    """The wheels of the manifest: of torch, one for each release. Raises BadInput."""
    wheels = read_manifest(path)
    versions = [each.version for each in wheels]
    wrong = [each.file for each in wheels
             if each.package != PACKAGE or not STABLE.fullmatch(each.version) or versions.count(each.version) > 1]
    if wrong or not wheels:
        reason = f"no stable torch, or a release twice: {', '.join(wrong[:3])}" if wrong else "has no wheel"
        raise BadInput(str(path), reason, "one wheel of torch for each stable release")
    return wheels


def check(directory: Path) -> None:
    """Raises FilesDisagree, and BadInput for a file that cannot be read."""
    found = faults(directory)
    if found:
        raise FilesDisagree(str(directory), found)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `torch`."""
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", action="store_true", help="from every wheel of the manifest")
    action.add_argument("--add", nargs="+", metavar="VERSION", help="put new releases into the manifest and the files")
    action.add_argument("--check", action="store_true", help="whether the files agree with each other")
    parser.add_argument("--python", default=PYTHON, metavar="MINOR", help=f"whose wheels --add takes ({PYTHON})")
    parser.add_argument("--store", type=Path, help="the tables of wheels; what is not in it is downloaded")
    parser.add_argument("--directory", type=Path, help="the almanac (matrices/abi)")


def run(asked: argparse.Namespace) -> None:
    """Carries out one call."""
    directory = asked.directory or matrix_directory() / "abi"
    store = asked.store or default_store(os.environ, Path.home())
    if asked.add:
        add(asked.add, directory, store, asked.python)
        sys.stderr.write(f"{FOLLOWING}\n")
    elif asked.check:
        check(directory)
    else:
        make(directory, store)


def main(words: Sequence[str] | None = None) -> int:
    """The exit status of one call."""
    parser = argparse.ArgumentParser(prog="python -m stackfix.almanac torch")
    add_arguments(parser)
    run(parser.parse_args(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
