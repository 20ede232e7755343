"""ELF files on disk as a simulated loader asks for them: by path, each file read once however it is reached."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections import OrderedDict
from collections.abc import Callable

from stackfix.inspect.elf import Tables, describe, map_file, read_tables
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.places import Root, must_be_usable
from stackfix.inspect.records import BadElf, ElfObject, FileAt, Refused, Symbols, UnreadableElf

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
MOST_MAPPED = 256       # a process with torch maps some 100 files; what was read of a file counts as our memory


class DiskFiles:
    """Fills records.Files below a root. Keeps some mappings open, at most half of what the process may open."""

    def __init__(self, root: Root | None = None) -> None:
        self.root = root or Root()
        self._found: dict[str, FileAt | Refused | None] = {}
        self._folders: dict[str, str | None] = {"": "/"}    # the folder without links
        self._objects: dict[str, ElfObject | UnreadableElf] = {}
        self._mapped: OrderedDict[str, Tables] = OrderedDict()
        self._symbols: dict[str, MappedSymbols] = {}    # of those that are mapped
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(16, min(limit // 2, MOST_MAPPED) if limit > 0 else MOST_MAPPED)

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` gives."""
        if path in self._found:
            return self._found[path]
        folder, _, name = path.rpartition("/")
        real = self._folder(folder)
        if real is None:
            return None
        found = self._found[path] = self._look(path, real, name)
        return found

    def _folder(self, path: str) -> str | None:
        """A folder without links; None where there is none. Most paths that a loader tries end in no folder at all."""
        ahead, here = list[str](), path
        while here not in self._folders:
            ahead.append(here)
            here = here.rpartition("/")[0]
        for each in reversed(ahead):        # not by recursion: a RUNPATH may have 2000 folders in one another
            above, _, name = each.rpartition("/")
            real = self._folders[above]
            self._folders[each] = self._folder_in(real, each, name) if real is not None and name else real
        return self._folders[path]

    def _folder_in(self, above: str, path: str, name: str) -> str | None:
        try:
            real, status = self._status(path, above, name)
        except OSError:
            return None
        return real if stat.S_ISDIR(status.st_mode) else None

    def _look(self, path: str, folder: str, name: str) -> FileAt | Refused | None:
        try:
            real, status = self._status(path, folder, name)
            identity = f"{status.st_dev}:{status.st_ino}"
            if identity not in self._objects:
                self._objects[identity] = self._read(real, identity)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            reason = (error.strerror or "cannot be opened").lower()
            return Refused(path=path, reason=reason, ends_list=error.errno != errno.EACCES)
        return FileAt(path=path, real_path=real, identity=identity, elf=self._objects[identity])

    def _status(self, path: str, folder: str, name: str) -> tuple[str, os.stat_result]:
        """The path without links, and its status. Most files are no links, and their folder is known."""
        must_be_usable(path)
        if name not in {"", ".", ".."}:
            real = f"{folder.rstrip('/')}/{name}"
            status = os.lstat(self.root.host(real))
            if not stat.S_ISLNK(status.st_mode):
                return real, status
        real = self.root.resolve(path)
        return real, os.lstat(self.root.host(real))

    def _read(self, real: str, identity: str) -> ElfObject | UnreadableElf:
        try:
            tables = self._tables(lambda: os.open(self.root.host(real), FLAGS), real)
            found = describe(tables, real)
        except BadElf as error:
            return error.as_record(real)
        self._keep(identity, tables)
        return found

    def _tables(self, opened: Callable[[], int], name: str) -> Tables:
        """A file's tables; where the process has no descriptor left, half of the mappings are let go first.

        How many the rest of the process holds is not known beforehand.
        """
        try:
            return mapped_tables(opened, name)
        except (OSError, BadElf) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError) or cause.errno != errno.EMFILE or not self._mapped:
                raise
        self._most = max(1, len(self._mapped) // 2)
        while len(self._mapped) > self._most:
            self._let_go()
        return mapped_tables(opened, name)

    def _keep(self, identity: str, tables: Tables) -> None:
        self._mapped[identity] = tables
        if len(self._mapped) > self._most:
            self._let_go()

    def _let_go(self) -> None:
        """Forget the mapping that was not asked for the longest: its last user unmaps it."""
        self._symbols.pop(self._mapped.popitem(last=False)[0], None)

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file, over a mapping that is shared by all who ask. Raises BadElf."""
        identity = file.identity
        if identity in self._mapped:
            self._mapped.move_to_end(identity)
        else:
            self._keep(identity, self._map(file))
        if identity not in self._symbols:
            tables = self._mapped[identity]
            self._symbols[identity] = MappedSymbols(tables.layout.data, file.path, tables)
        return self._symbols[identity]

    def _map(self, file: FileAt) -> Tables:
        try:
            return self._tables(lambda: self.root.open(file.real_path), file.path)
        except OSError as error:
            raise BadElf(file.path, error.strerror or "cannot be opened") from error


def mapped_tables(opened: Callable[[], int], name: str) -> Tables:
    """The tables of the file that `opened` gives a descriptor of. Raises OSError and BadElf."""
    descriptor = opened()
    try:
        return read_tables(map_file(descriptor, name), name)
    finally:
        os.close(descriptor)


__all__ = ["DiskFiles"]
