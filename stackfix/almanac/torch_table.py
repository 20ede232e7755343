"""The table of all torch minors: which of them export a key, from which library. Pure; the text is `full.tsv`.

The text begins with a line for each release, oldest first, and a line of column names:

    # release <tab> 2.3 <tab> 2.3.1 <tab> file <tab> sha256 <tab> old <tab> other patches, a blank between them
    key <tab> minors <tab> libraries

Then follow the keys, sorted. `minors` as almanac/intervals writes sets; `libraries` with a blank between them, each
with `@` and its own minors where these are fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from stackfix.abi.records import BookRelease
from stackfix.almanac.intervals import make_room, parse_set, render_set
from stackfix.almanac.torch_exports import Exports
from stackfix.errors import BadInput

COLUMNS = "key\tminors\tlibraries"
RELEASE = "# release"
HINT = "Make the file anew with `python -m stackfix.almanac torch --make`."
CORE = frozenset({"libc10.so", "libc10_cuda.so"})
LINE = re.compile(rf"{RELEASE}\t(?P<minor>[0-9]{{1,4}}\.[0-9]{{1,4}})\t(?P<version>[0-9.]+)\t(?P<file>\S+)\t"
                  r"(?P<sha256>[0-9a-f]{64})\t(?P<abi>old|new)\t(?P<patches>[0-9. ]*)")

Rows = Mapping[str, Mapping[str, int]]      # by key, then by library: a set of releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One column for each minor, oldest first."""

    releases: tuple[BookRelease, ...]
    rows: Rows


def minor_of(version: str) -> str:
    """"2.3" of "2.3.1"."""
    return ".".join(version.split(".")[:2])


def number_of(version: str) -> tuple[int, ...]:
    """What releases are sorted by."""
    return tuple(map(int, version.split(".")))


def with_column(table: Table, exports: Exports, patches: Sequence[str]) -> Table:
    """The table with the column of a minor, new or in place of the one that it had."""
    wheel = exports.wheel
    minor = minor_of(wheel.version)
    release = BookRelease(minor=minor, version=wheel.version, file=wheel.file, sha256=wheel.sha256,
                          string_abi=exports.string_abi, patches=tuple(patches))
    others = [each for each in table.releases if each.minor != minor]
    releases = sorted([*others, release], key=lambda each: number_of(each.minor))
    place = releases.index(release)
    bit = 1 << place
    fresh = len(releases) > len(table.releases)
    rows: dict[str, dict[str, int]] = {}
    for key, libraries in table.rows.items():
        left = {library: make_room(mask, place) if fresh else mask & ~bit for library, mask in libraries.items()}
        left = {library: mask for library, mask in left.items() if mask}
        if left:
            rows[key] = left
    for key, names in exports.names.items():
        row = rows.setdefault(key, {})
        for library in names:
            row[library] = row.get(library, 0) | bit
    return replace(table, releases=tuple(releases), rows=rows)


def union(libraries: Mapping[str, int]) -> int:
    """In which releases any of the libraries has a key."""
    mask = 0
    for each in libraries.values():
        mask |= each
    return mask


def is_core(key: str, libraries: Mapping[str, int]) -> bool:
    """Whether a key is one of c10's, or a C name: the part whose changes are worth a look."""
    return not key.startswith("_Z") or not CORE.isdisjoint(libraries)


def render_rows(table: Table, *, core: bool = False) -> Iterator[str]:
    """A line for each key, or for each of the core, sorted."""
    minors = [each.minor for each in table.releases]
    shown = lru_cache(maxsize=None)(lambda mask: render_set(mask, minors))      # a few hundred sets
    for key in sorted(table.rows):
        libraries = table.rows[key]
        if core and not is_core(key, libraries):
            continue
        whole = union(libraries)
        parts = [library if libraries[library] == whole else f"{library}@{shown(libraries[library])}"
                 for library in sorted(libraries)]
        yield f"{key}\t{shown(whole)}\t{' '.join(parts)}\n"


def render_full(table: Table) -> str:
    """The whole text of `full.tsv`."""
    head = ["\t".join([RELEASE, each.minor, each.version, each.file, each.sha256, each.string_abi,
                       " ".join(each.patches)]) + "\n" for each in table.releases]
    return "".join([*head, f"{COLUMNS}\n", *render_rows(table)])


def render_core(table: Table) -> str:
    """The whole text of `core.tsv`: c10, c10_cuda and the C names, with the very lines of `full.tsv`."""
    return "".join([f"{COLUMNS}\n", *render_rows(table, core=True)])


def parse_full(text: str, name: str) -> Table:
    """The table of a text. Raises BadInput with the line for any text that `render_full` does not write."""
    lines = text.split("\n")
    releases = tuple(release_of(line, f"{name}:{number}") for number, line in
                     enumerate(lines[:lines.index(COLUMNS)] if COLUMNS in lines else [], 1))
    if not releases or lines[-1]:
        raise BadInput(name, "is no table of torch's names, or is cut short", HINT)
    minors = [each.minor for each in releases]
    parsed = lru_cache(maxsize=None)(lambda text: parse_set(text, minors))
    rows: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines[len(releases) + 1:-1], len(releases) + 2):
        try:
            key, whole, names = line.split("\t")
            row = rows[key] = {}
            for each in names.split(" "):
                library, at, own = each.partition("@")
                row[library] = parsed(own if at else whole)
            if union(row) != parsed(whole):
                raise ValueError("the minors are not those of its libraries")   # noqa: TRY301 - told with its line
        except ValueError as error:
            raise BadInput(f"{name}:{number}", str(error), HINT) from None
    table = Table(releases=releases, rows=rows)
    if render_full(table) != text:
        raise BadInput(name, "is not written as the generator writes it", HINT)
    return table


def release_of(line: str, where: str) -> BookRelease:
    """The release that a line of the head tells of. Raises BadInput."""
    parts = LINE.fullmatch(line)
    if parts is None:
        raise BadInput(where, "is no line about a release", HINT)
    return BookRelease(minor=parts["minor"], version=parts["version"], file=parts["file"], sha256=parts["sha256"],
                       string_abi=parts["abi"], patches=tuple(parts["patches"].split()))



__all__ = ["Table", "minor_of", "number_of", "parse_full", "render_core", "render_full", "union", "with_column"]
