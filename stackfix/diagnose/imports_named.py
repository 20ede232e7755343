"""Which libraries a mapped object opens by name, from the rows that the matrix has for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.releases import admits
from stackfix.inspect.environment_records import Environment, Owner
from stackfix.matrix.library_records import Libraries, OpenedByName
from stackfix.quick import replace

AFTER_SO = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
OF_CUDA = re.compile(r"-cu(\d\d)$")
OF_TORCH = ("libtorch", "libc10")


class NamedRows:
    """Rows of libraries that open others by name, for the objects of one environment."""

    def __init__(self, environment: Environment, libraries: Libraries, cuda_of_torch: Callable[[], str | None]) -> None:
        self._rows, self._cuda_of_torch = libraries.opened, cuda_of_torch
        self._owners = {each.path: each.owners[0] for each in environment.shared_objects if each.owners}
        self._known: dict[str, tuple[OpenedByName, ...]] = {}

    def rows(self, object_: LoadedObject) -> tuple[OpenedByName, ...]:
        """Rows for an object, with the names filled in: by its soname or file name, its version and its CUDA."""
        if object_.identity not in self._known:
            name = object_.elf.soname or object_.path.rpartition("/")[2]
            found = (self._filled(row, object_) for row in self._rows if fnmatchcase(name, row.library))
            self._known[object_.identity] = tuple(row for row in found if row is not None)
        return self._known[object_.identity]

    def _filled(self, row: OpenedByName, object_: LoadedObject) -> OpenedByName | None:
        """A row that holds for an object, with its CUDA put in; None for one that does not, or may not."""
        if row.versions is not None:
            version = self.version(object_)
            if version is None or not admits(row.versions, version):
                return None
        if row.cuda is None and not any("{" in name for name in row.names):
            return row
        cuda = self.cuda(object_)
        if cuda is None or (row.cuda is not None and not admits(row.cuda, cuda)):
            return None
        return replace(row, names=tuple(name.replace("{cuda}", cuda.partition(".")[0]) for name in row.names))

    def version(self, object_: LoadedObject) -> str | None:
        """An object's own version: of its file name, else of the package that installed it; None: nothing tells."""
        in_name = AFTER_SO.search(object_.real_path)
        owner = self._owner(object_)
        return in_name[1] if in_name else owner.version if owner else None

    def cuda(self, object_: LoadedObject) -> str | None:
        """The CUDA that an object is for: of its wheel's name, else that of torch where torch installed it."""
        owner = self._owner(object_)
        suffix = OF_CUDA.search(owner.name) if owner else None
        if suffix:
            return suffix[1]
        stem = (object_.elf.soname or "").partition(".so")[0]
        cuda = self._cuda_of_torch() if stem.startswith(OF_TORCH) else None
        return cuda if cuda and cuda[0].isdigit() else None

    def _owner(self, object_: LoadedObject) -> Owner | None:
        return next((self._owners[path] for path in (object_.path, object_.real_path) if path in self._owners), None)
