"""The files that a locked stack will have once it is installed, as a simulated loader asks for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stackfix.inspect.records import ElfObject, FileAt, Refused, Symbols, UnreadableElf
from stackfix.prove.records import BASE, SITE, TableSource, WheelTables

PREFIX = "/planned"                 # of the environment; no proof names it, for all its paths are told from the site


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the planned environment has what."""

    python: str                     # "3.11"
    prefix: str = PREFIX

    @property
    def executable(self) -> str:
        return f"{self.prefix}/bin/python{self.python}"

    @property
    def site(self) -> str:
        """Where installers put packages."""
        return f"{self.prefix}/lib/python{self.python}/site-packages"

    def place(self, path: str) -> str | None:
        """Where a wheel's file goes to: "site/torch/lib/libc10.so". None for a path that would lead elsewhere."""
        top, _, rest = path.partition("/")
        folder = {SITE: self.site, BASE: self.prefix}.get(top)
        parts = rest.split("/")
        if folder is None or not rest or "\0" in rest or not {"", ".", ".."}.isdisjoint(parts):
            return None
        return f"{folder}/{rest}"


class Placed(NamedTuple):
    """One file, and who answers for its symbols."""

    elf: ElfObject | UnreadableElf
    symbols: Callable[[], Symbols]


@dataclass(slots=True)
class PlannedFiles:
    """Fills inspect.records.Files from a dictionary. There are no links: a file's identity is its path."""

    files: Mapping[str, Placed]
    _folders: set[str] = field(default_factory=set)
    _found: dict[str, FileAt | None] = field(default_factory=dict)
    _symbols: dict[str, Symbols] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folders = {"", *folders_of(self.files)}

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` gives."""
        if path not in self._found:
            place = self._walk(path)
            known = None if place is None else self.files.get(place)
            self._found[path] = None if known is None or place is None else FileAt(
                path=path, real_path=place, identity=place, elf=known.elf)
        return self._found[path]

    def _walk(self, path: str) -> str | None:
        """The path without `..`, each step through a folder that is there."""
        if path in self.files:
            return path
        here = ""
        *folders, name = path.split("/")
        for part in folders:
            if part == "..":
                here = here.rpartition("/")[0]
            elif part not in {"", "."}:
                here = f"{here}/{part}"
                if here not in self._folders:
                    return None
        return f"{here}/{name}"

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file that `at` gave. Raises BadElf."""
        if file.identity not in self._symbols:
            self._symbols[file.identity] = self.files[file.identity].symbols()
        return self._symbols[file.identity]


def folders_of(paths: Iterable[str]) -> Iterator[str]:
    """Every folder above the paths."""
    seen = set[str]()
    for path in paths:
        here = path.rpartition("/")[0]
        while here and here not in seen:
            seen.add(here)
            yield here
            here = here.rpartition("/")[0]


def place_wheel(tables: WheelTables, layout: Layout, source: TableSource) -> dict[str, Placed]:
    """A wheel's shared objects at their later places."""
    return {place: placed(tables.sha256, each.path, each.elf, place, source)
            for each in tables.libraries if (place := layout.place(each.path)) is not None}


def placed(sha256: str, path: str, elf: ElfObject | UnreadableElf, place: str, source: TableSource) -> Placed:
    """One shared object of a wheel at a place."""
    return Placed(dataclasses.replace(elf, path=place), lambda: source.symbols(sha256, path))
