"""libraries.toml and imports.toml to records: what is known of the libraries themselves.

They stand apart from `Matrix`: whoever looks at an environment reads these two first, and often these alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stackfix.matrix.faults import Faults
from stackfix.matrix.library_records import ImportLoads, ImportStep, Libraries, LibraryFamily, OpenedByName
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import matrix_directory, parse_file, read_file

FILES = ("libraries.toml", "imports.toml")
LEVELS = ("driver", "cuda", "cudnn", "torch", "extensions", "environment")


def load_libraries(directory: Path | None = None) -> Libraries:
    """All rows of the two files in `directory` (default: the matrix that comes with stackfix).

    Raises BadInput about the first file that cannot be read or has faults; it names all faults of that file.
    """
    directory = matrix_directory() if directory is None else directory
    texts = {name: read_file(directory / name, FILES) for name in FILES}
    families, opened = parse_file(str(directory / FILES[0]), texts[FILES[0]], parse_libraries)
    imports = parse_file(str(directory / FILES[1]), texts[FILES[1]], parse_imports)
    return Libraries(families=families, opened=opened, imports=imports)


def parse_libraries(document: dict[str, object],
                    faults: Faults) -> tuple[tuple[LibraryFamily, ...], tuple[OpenedByName, ...]]:
    """Families and what libraries open by name, both in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    families = tuple(_family(row, origins) for row in top.rows("family", name_by="name"))
    seen = set[str]()
    for family in families:
        for stem in family.stems:
            if stem in seen:
                faults.add(f"family {family.name}", f"{stem} belongs to another family too")
            seen.add(stem)
    opened = tuple(each for group in top.rows("opened", name_by="library") for each in _opened(group, origins))
    top.done()
    return families, opened


def _family(row: Row, origins: Origins) -> LibraryFamily:
    source, confidence = origins.of(row)
    family = LibraryFamily(
        name=row.text("name"),
        level=row.chosen("level", LEVELS),
        stems=row.words("stems", "text"),
        symbols=row.words("symbols", "text", needed=False),
        projects=row.words("projects", "name", needed=False),
        conda=row.words("conda", "text", needed=False),
        one_per_process=row.flag("one_per_process"),
        source=source,
        confidence=confidence,
    )
    row.done()
    return family


def _opened(group: Row, origins: Origins) -> Iterable[OpenedByName]:
    """The rows of one library: each has its own names, and what the group states of all."""
    library = group.text("library")
    source, confidence = origins.of(group)
    for row in group.rows("rows", name_by="names"):
        row_source, row_confidence = origins.of(row, source, confidence)
        yield OpenedByName(
            library=library,
            versions=row.optional("versions", "specifier"),
            names=row.words("names", "text"),
            when=row.chosen("when", ("load", "first use"), "first use"),
            optional=row.optional_flag("optional"),
            why=row.text("why"),
            source=row_source,
            confidence=row_confidence,
        )
        row.done()
    group.done()


def parse_imports(document: dict[str, object], faults: Faults) -> tuple[ImportLoads, ...]:
    """What imports open, in file order. Of two rows that hold for one release the first counts."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    found: list[ImportLoads] = []
    for group in top.rows("import", name_by="project"):
        project = group.text("project", "name")
        module = group.optional("module", "name") or project
        after = group.words("after", "name", needed=False)
        source, confidence = origins.of(group)
        for row in group.rows("rows", name_by="versions"):
            row_source, row_confidence = origins.of(row, source, confidence)
            found.append(ImportLoads(
                project=project, module=module, versions=row.optional("versions", "specifier"), after=after,
                steps=tuple(_step(step) for step in row.rows("steps", name_by="file")), source=row_source,
                confidence=row_confidence,
            ))
            row.done()
        group.done()
    top.done()
    return tuple(found)


def _step(row: Row) -> ImportStep:
    step = ImportStep(
        file=row.text("file"),
        to_global=row.optional_flag("to_global"),
        now=row.optional_flag("now", default=True),
        when=row.chosen("when", ("always", "failed", "first use"), "always"),
        may_fail=row.optional("may_fail"),
    )
    row.done()
    return step
