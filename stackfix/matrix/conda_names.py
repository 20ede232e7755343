"""conda_names.toml to records. It stands apart from `Matrix`: only the conda side asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import CondaName, CondaNames
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import matrix_directory, parse_file, read_file

FILE = "conda_names.toml"
_DASHES = re.compile(r"[-_.]+")         # PEP 503
VERSIONS = ("same", "longer")


def load_conda_names(directory: Path | None = None) -> CondaNames:
    """All rows of the file in `directory` (default: the matrix that comes with stackfix). Raises BadInput."""
    path = (matrix_directory() if directory is None else directory) / FILE
    return parse_file(str(path), read_file(path, (FILE,)), parse_conda_names)


def parse_conda_names(document: dict[str, object], faults: Faults) -> CondaNames:
    """The four tables in file order; no package may be in two rows."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    stack = tuple(_stack(row, origins) for row in top.rows("stack", name_by="conda"))
    table = top.table("other")
    other = tuple(_other(table, origins, faults))
    same = tuple(_same(top.table("same"), origins))
    without = top.table("none")
    none = without.several("names", "text")
    origins.of(without)
    without.done()
    top.done()
    seen = set[str]()
    for package in (*(row.package for row in (*stack, *other, *same)), *none):
        if package in seen:
            faults.add(package, "given twice")
        seen.add(package)
    return CondaNames(stack=stack, other=other, same=same, none=none)


def _stack(row: Row, origins: Origins) -> CondaName:
    source, confidence = origins.of(row)
    found = CondaName(
        package=row.text("conda"), projects=row.words("pip", "name"), versions=row.chosen("versions", VERSIONS),
        source=source, confidence=confidence,
    )
    row.done()
    return found


def _other(table: Row, origins: Origins, faults: Faults) -> Iterator[CondaName]:
    source, confidence = origins.of(table)
    for line in table.lines("names", "text"):
        package, *projects = line.split()
        if not projects:
            table.fault(f"{line!r} names no project")
        for project in projects:
            faults.check(project, "name", f"{table.where} {package}")
        yield CondaName(
            package=package, projects=tuple(projects), versions="same", source=source, confidence=confidence,
        )
    table.done()


def _same(table: Row, origins: Origins) -> Iterator[CondaName]:
    source, confidence = origins.of(table)
    for package in table.several("names", "text"):
        yield CondaName(
            package=package, projects=(_DASHES.sub("-", package).lower(),), versions="same", source=source,
            confidence=confidence,
        )
    table.done()
