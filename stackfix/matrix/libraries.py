"""libraries.toml and imports.toml to records: what is known of the libraries themselves.

They stand apart from `Matrix`: whoever looks at an environment reads these two first, and often these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
            cuda=row.optional("cuda", "specifier"),
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
    preloads = {}
    for row in top.rows("preload", name_by="name", needed=False):
        preload = _preload(row)
        if preload.name in preloads:
            row.fault("given twice")
        preloads[preload.name] = preload
    found = tuple(each for group in top.rows("import", name_by="project")
                  for each in _imports(group, origins, preloads))
    top.done()
    return found


@dataclass(frozen=True, slots=True)
class Preload:
    """A list of libraries that several rows open: patterns of each, and whether it may be absent."""

    name: str
    libraries: tuple[tuple[tuple[str, ...], bool], ...]


def _preload(row: Row) -> Preload:
    """`folders` are patterns in which `{}` is the folder of a library; libraries are written "folder file"."""
    name = row.text("name")
    folders = row.words("folders", "text")
    libraries = []
    for key, optional in (("libraries", False), ("optional", True)):
        for line in row.lines(key, "text", needed=not optional):
            folder, _, file = line.partition(" ")
            libraries.append((tuple(f"{each.replace('{}', folder)}/{file}" for each in folders), optional))
    row.done()
    return Preload(name, tuple(libraries))


def _imports(group: Row, origins: Origins, preloads: Mapping[str, Preload]) -> Iterator[ImportLoads]:
    """The rows of one project."""
    project = group.text("project", "name")
    module = group.optional("module", "name") or project
    after, then = (group.words(key, "name", needed=False) for key in ("after", "then"))
    modules_may_fail = group.optional("modules_may_fail")
    source, confidence = origins.of(group)
    for row in group.rows("rows", name_by="versions"):
        row_source, row_confidence = origins.of(row, source, confidence)
        steps = row.rows("steps", name_by="file", needed=False)
        yield ImportLoads(
            project=project, module=module, versions=row.optional("versions", "specifier"), after=after, then=then,
            steps=tuple(each for step in steps for each in _steps(step, preloads)), modules_may_fail=modules_may_fail,
            source=row_source, confidence=row_confidence,
        )
        row.done()
    group.done()


def _steps(row: Row, preloads: Mapping[str, Preload]) -> Iterator[ImportStep]:
    """A step; one for each library of a list."""
    when = row.chosen("when", ("always", "failed", "loaded", "first use"), "always")
    given, skip, may_fail = row.optional("given"), row.optional_flag("skip"), row.optional("may_fail")
    if given is not None and when != "loaded":
        row.fault('"given" is for steps with when = "loaded"')
    if row.has("preload"):
        name = row.text("preload")
        if name not in preloads:
            row.fault(f"no [[preload]] is called {name!r}")
        for patterns, optional in preloads[name].libraries if name in preloads else ():
            yield ImportStep(file=patterns[0], also=patterns[1:], when=when, given=given, skip=skip or optional,
                             may_fail=may_fail)
    else:
        yield ImportStep(file=row.text("file"), also=row.words("also", "text", needed=False),
                         to_global=row.optional_flag("to_global"), now=row.optional_flag("now", default=True),
                         when=when, given=given, skip=skip, may_fail=may_fail)
    row.done()
