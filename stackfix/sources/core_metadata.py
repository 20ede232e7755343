"""METADATA and PKG-INFO text -> record. Headers only, bounded, and never about another file."""

from __future__ import annotations

import re

from stackfix.sources.errors import BadMetadata
from stackfix.sources.page import normalise
from stackfix.sources.records import CoreMetadata, IndexFile

_WANTED = frozenset((
    "metadata-version", "name", "version", "requires-dist", "requires-python", "provides-extra", "dynamic",
))
_SETTLED_BY_A_BUILD = frozenset(("requires-dist", "requires-python", "provides-extra"))
_MAX_VALUES = 10_000
_MAX_EXTRAS = 2_000     # that the requirements of one file name, each time they do; each is a question to the solver
_EXTRAS = re.compile(r"[\w.-]+\s*\[([^\]]*)\]")
Fields = dict[str, list[str]]


def parse_metadata(content: bytes, file: IndexFile, basis: str) -> CoreMetadata:
    """What `content` says of `file`. Raises BadMetadata when it is damaged or about something else."""
    return record_of(read_fields(content, file), file, basis)


def read_fields(content: bytes, file: IndexFile) -> Fields:
    """Wanted headers, by name in lower case, values in order. The description is not read."""
    fields: Fields = {}
    name = ""
    text = content.decode("utf-8", "replace").replace("\r\n", "\n")
    head, _, _ = text.partition("\n\n")
    for line in head.split("\n"):
        if line[:1] in (" ", "\t"):
            if name in fields:  # folded header (RFC 822)
                fields[name][-1] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        name = name.lower()
        if colon and name in _WANTED:
            values = fields.setdefault(name, [])
            values.append(value.strip())
            if len(values) > _MAX_VALUES:
                raise BadMetadata(file.filename, file.url, f"states {name} more than {_MAX_VALUES} times")
    return fields


def record_of(fields: Fields, file: IndexFile, basis: str) -> CoreMetadata:
    """The record, once it is sure that it is about `file`."""
    for key in ("metadata-version", "name", "version"):
        if len(fields.get(key, ())) != 1:
            raise BadMetadata(file.filename, file.url, f"states {'no' if key not in fields else 'more than one'} {key}")
    form, name, version = (fields[key][0] for key in ("metadata-version", "name", "version"))
    if form.partition(".")[0] not in ("1", "2"):
        raise BadMetadata(file.filename, file.url, f"uses the unknown metadata version {form[:20]!r}")
    if normalise(name) != file.project:
        raise BadMetadata(file.filename, file.url, f"is about {name[:100]!r}")
    if not same_version(version, file.version):
        raise BadMetadata(file.filename, file.url, f"is about version {version[:100]!r}")
    requires = tuple(fields.get("requires-dist", ()))
    if sum(match[1].count(",") + 1 for line in requires if (match := _EXTRAS.match(line))) > _MAX_EXTRAS:
        raise BadMetadata(file.filename, file.url, f"requires more than {_MAX_EXTRAS} extras of projects")
    return CoreMetadata(name=file.project, version=version, requires_dist=requires,
                        requires_python=next(iter(fields.get("requires-python", ())), None) or None,
                        provides_extra=tuple(fields.get("provides-extra", ())), basis=basis)


def same_version(one: str, other: str) -> bool:
    """Whether both spell one version (PEP 440)."""
    if one == other:
        return True
    from packaging.version import Version

    try:
        return Version(one) == Version(other)
    except ValueError:      # InvalidVersion, or a number that int() refuses
        return False


def needs_build(fields: Fields) -> str | None:
    """Why an sdist's PKG-INFO does not settle its dependencies without a build (PEP 643), None when it does."""
    form = fields.get("metadata-version", [""])[0]
    major, _, minor = form.partition(".")
    if not (major.isdigit() and minor.isdigit()) or (int(major[:4]), int(minor[:4])) < (2, 2):
        return f"states its metadata in version {form[:20]}, before static metadata came (2.2)"
    moving = {value.lower() for value in fields.get("dynamic", ())} & _SETTLED_BY_A_BUILD
    return f"declares {', '.join(sorted(moving))} as dynamic" if moving else None
