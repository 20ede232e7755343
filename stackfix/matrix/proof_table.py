"""proof.toml to records. It stands apart from `Matrix`: only a proof asks for it."""

from __future__ import annotations

from pathlib import Path

from stackfix.matrix.faults import Faults
from stackfix.matrix.proof_records import AssumedLibrary, ProofTable, RuntimeLevel, Surroundings
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import own_or_ours, parse_file, read_file

FILE = "proof.toml"
RELEASES = ("older minor", "newer minor", "older major")
VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def load_proof_table(directory: Path | None = None) -> ProofTable:
    """All rows of the file in `directory`, else of the matrix that comes with stackfix. Raises BadInput.

    A copy of the matrix that has no such file takes the one that comes with stackfix.
    """
    path = own_or_ours(directory, FILE)
    return parse_file(str(path), read_file(path, (FILE,)), parse_proof_table)


def parse_proof_table(document: dict[str, object], faults: Faults) -> ProofTable:
    """Rows in file order, but levels by glibc."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    libraries = tuple(_library(row, origins) for row in top.rows("library", name_by="part"))
    levels = tuple(_level(row, origins) for row in top.rows("level", name_by="glibc"))
    surroundings = tuple(_surroundings(row, origins) for row in top.rows("environment", name_by="name"))
    top.done()
    _refuse_twice([soname for each in libraries for soname in each.sonames], "library", faults)
    _refuse_twice([each.glibc for each in levels], "level", faults)
    _refuse_twice([each.name for each in surroundings], "environment", faults)
    return ProofTable(libraries=libraries, surroundings=surroundings,
                      levels=tuple(sorted(levels, key=lambda each: numbers(each.glibc))))


def _refuse_twice(names: list[str], where: str, faults: Faults) -> None:
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        faults.add(where, f"{name} is given twice")


def _library(row: Row, origins: Origins) -> AssumedLibrary:
    source, confidence = origins.of(row)
    found = AssumedLibrary(
        sonames=row.words("sonames", "text"), part=row.text("part"),
        versions=row.words("versions", "text", needed=False), offers=row.words("offers", "text", needed=False),
        open=row.optional_flag("open"), optional=row.optional_flag("optional"), source=source, confidence=confidence,
    )
    row.done()
    return found


def _level(row: Row, origins: Origins) -> RuntimeLevel:
    source, confidence = origins.of(row)
    found = RuntimeLevel(glibc=row.text("glibc", "version"), versions=row.words("versions", "text"), source=source,
                         confidence=confidence)
    row.done()
    return found


def _surroundings(row: Row, origins: Origins) -> Surroundings:
    source, confidence = origins.of(row)
    brings = row.words("brings", "text", needed=False)
    found = Surroundings(
        name=row.text("name"), title=row.text("title"), brings=brings,
        release=row.chosen("release", RELEASES) if brings else None, folder=row.text("folder") if brings else None,
        variable=row.chosen("variable", VARIABLES) if row.has("variable") else None,
        preload=row.optional("preload"), without=row.words("without", "text", needed=False),
        source=source, confidence=confidence,
    )
    if (found.variable == "LD_PRELOAD") != (found.preload is not None):
        row.fault("preload goes with the variable LD_PRELOAD")
    if not brings and not found.without:
        row.fault("neither brings nor lacks anything")
    row.done()
    return found


def numbers(version: str) -> tuple[int, ...]:
    """(2, 28) of "2.28"."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
