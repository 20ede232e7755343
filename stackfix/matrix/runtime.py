"""runtime.toml to records. It stands apart from `Matrix`: only `explain` asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stackfix.matrix.faults import Faults
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.runtime_records import Distribution, Dropped, GccVersion, RunTimes
from stackfix.matrix.toml_files import own_or_ours, parse_file, read_file

FILE = "runtime.toml"
VERSION = re.compile(r"(?:GLIBCXX|CXXABI)_\d+(?:\.\d+)*")
WORDS = ("release", "glibc", "GLIBCXX", "CXXABI")


def load_run_times(directory: Path | None = None) -> RunTimes:
    """All rows of the file in `directory`, else of the matrix that comes with stackfix. Raises BadInput.

    A copy of the matrix that has no such file takes the one that comes with stackfix.
    """
    path = own_or_ours(directory, FILE)
    return parse_file(str(path), read_file(path, (FILE,)), parse_run_times)


def parse_run_times(document: dict[str, object], faults: Faults) -> RunTimes:
    """Rows in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    distributions = tuple(each for row in top.rows("distribution", name_by="name") for each in _releases(row, origins))
    gcc = tuple(each for row in top.rows("gcc") for each in _versions(row, origins))
    dropped = tuple(_dropped(row, origins) for row in top.rows("dropped", name_by="package", needed=False))
    top.done()
    for what, keys in (("distribution", [f"{each.name} {each.release}" for each in distributions]),
                       ("gcc", [each.version for each in gcc])):
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            faults.add(f"{what} {key}", "given twice")
    return RunTimes(distributions=distributions, gcc=gcc, dropped=dropped)


def _releases(row: Row, origins: Origins) -> Iterator[Distribution]:
    name = row.text("name")
    source, confidence = origins.of(row)
    for line in row.lines("releases", "text"):
        words = line.split(" ")
        if len(words) != len(WORDS) or not all(re.fullmatch(r"\d+(?:\.\d+)*", word) for word in words):
            row.fault(f"{line!r} is not \"{' '.join(WORDS)}\" in digits and dots")
            continue
        release, glibc, glibcxx, cxxabi = words
        yield Distribution(name=name, release=release, glibc=glibc, glibcxx=glibcxx, cxxabi=cxxabi, source=source,
                           confidence=confidence)
    row.done()


def _dropped(row: Row, origins: Origins) -> Dropped:
    source, confidence = origins.of(row)
    found = Dropped(package=row.text("package", "name"), name=row.text("name"), until=row.text("until", "version"),
                    gone=row.text("gone", "version"), functions=row.words("functions", "text"), source=source,
                    confidence=confidence)
    row.done()
    return found


def _versions(row: Row, origins: Origins) -> Iterator[GccVersion]:
    source, confidence = origins.of(row)
    for line in row.lines("versions", "text"):
        version, _, gcc = line.partition(" ")
        if not VERSION.fullmatch(version) or not re.fullmatch(r"\d+\.\d+\.\d+", gcc):
            row.fault(f"{line!r} is not a version of libstdc++ and the release of a GCC")
            continue
        yield GccVersion(version=version, gcc=gcc, source=source, confidence=confidence)
    row.done()
