"""frameworks.toml to records."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import BitsandbytesLibraries, Framework, Frameworks
from stackfix.matrix.rows import Origins, Row


def parse_frameworks(document: dict[str, object], faults: Faults) -> Frameworks:
    """Frameworks, each oldest row first, and the libraries of bitsandbytes."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    found = tuple(each for group in top.rows("framework", name_by="project") for each in framework(group, origins))
    table = top.table("bitsandbytes")
    source, confidence = origins.of(table)
    libraries = tuple(bitsandbytes(row, source, confidence) for row in table.rows("rows", name_by="first"))
    table.done()
    top.done()
    return Frameworks(frameworks=found, bitsandbytes=libraries)


def framework(group: Row, origins: Origins) -> Iterator[Framework]:
    """The rows of one project."""
    project, extra = group.text("project", "name"), group.optional("extra")
    preloads_from = group.optional("preloads_from", "number")
    source, confidence = origins.of(group)
    windows = group.optional_flag("windows", default=True)
    for row in group.rows("rows", name_by="first"):
        row_source, row_confidence = origins.of(row, source, confidence)
        yield Framework(project=project, first=row.text("first", "number"), last=row.text("last", "number"),
                        preloads_from=preloads_from, extra=extra, cuda=row.whole("cuda"),
                        cudnn=row.optional("cudnn", "requirement"), windows=windows, source=row_source,
                        confidence=row_confidence)
        row.done()
    group.done()


def bitsandbytes(row: Row, source: str, confidence: str) -> BitsandbytesLibraries:
    found = BitsandbytesLibraries(first=row.text("first", "number"), last=row.text("last", "number"),
                                  cuda=row.words("cuda", "minor"),
                                  windows=row.words("windows", "minor", needed=False), source=source,
                                  confidence=confidence)
    row.done()
    return found
