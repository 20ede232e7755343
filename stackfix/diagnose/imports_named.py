"""Which libraries a mapped object opens by name, from the rows that the matrix has for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.releases import admits
from stackfix.inspect.environment_records import Environment
from stackfix.matrix.library_records import Libraries, OpenedByName

AFTER_SO = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")


class NamedRows:
    """Rows of libraries that open others by name, for the objects of one environment."""

    def __init__(self, environment: Environment, libraries: Libraries) -> None:
        self._rows = libraries.opened
        self._owner_versions = {each.path: each.owners[0].version for each in environment.shared_objects if each.owners}
        self._known: dict[str, tuple[OpenedByName, ...]] = {}

    def rows(self, object_: LoadedObject) -> tuple[OpenedByName, ...]:
        """Rows for an object, by its soname or file name, and by its version where a row asks for that."""
        if object_.identity not in self._known:
            self._known[object_.identity] = tuple(self._find(object_))
        return self._known[object_.identity]

    def _find(self, object_: LoadedObject) -> Iterator[OpenedByName]:
        name = object_.elf.soname or object_.path.rpartition("/")[2]
        for row in self._rows:
            if fnmatchcase(name, row.library):
                version = self.version(object_)
                if row.versions is None or (version is not None and admits(row.versions, version)):
                    yield row

    def version(self, object_: LoadedObject) -> str | None:
        """An object's own version: of its file name, else of the package that installed it; None: nothing tells."""
        in_name = AFTER_SO.search(object_.real_path)
        if in_name:
            return in_name[1]
        return next((self._owner_versions[path] for path in (object_.path, object_.real_path)
                     if path in self._owner_versions), None)
