"""ELF files on disk as a simulated loader asks for them: by path, each file read once however it is reached."""

from __future__ import annotations

import errno
import mmap
import os
import resource
from collections import OrderedDict

from stackfix.inspect.elf import map_file, read_open_elf
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.places import Root
from stackfix.inspect.records import BadElf, ElfObject, FileAt, Refused, Symbols, UnreadableElf

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


class DiskFiles:
    """Fills records.Files below a root. Keeps mappings open up to half of what the process may open."""

    def __init__(self, root: Root | None = None) -> None:
        self.root = root or Root()
        self._found: dict[str, FileAt | Refused | None] = {}
        self._objects: dict[str, ElfObject | UnreadableElf] = {}
        self._symbols: OrderedDict[str, MappedSymbols] = OrderedDict()
        self._folders: dict[str, bool] = {}
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(16, min(limit if limit > 0 else 1024, 4096) // 2)

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` gives."""
        if path not in self._found:
            folder = path.rpartition("/")[0] or "/"
            if folder not in self._folders:
                self._folders[folder] = self.root.is_folder(folder)
            self._found[path] = self._look(path) if self._folders[folder] else None
        return self._found[path]

    def _look(self, path: str) -> FileAt | Refused | None:
        try:
            real = self.root.resolve(path)
            status = os.lstat(self.root.host(real))
            identity = f"{status.st_dev}:{status.st_ino}"
            if identity not in self._objects:
                self._objects[identity] = self._read(real)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            reason = (error.strerror or "cannot be opened").lower()
            return Refused(path=path, reason=reason, ends_list=error.errno != errno.EACCES)
        return FileAt(path=path, real_path=real, identity=identity, elf=self._objects[identity])

    def _read(self, real: str) -> ElfObject | UnreadableElf:
        descriptor = os.open(self.root.host(real), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            return read_open_elf(descriptor, real)
        finally:
            os.close(descriptor)

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file, over a mapping that is shared by all who ask. Raises BadElf."""
        found = self._symbols.get(file.identity)
        if found is None:
            found = self._symbols[file.identity] = MappedSymbols(self._map(file), file.path)
            if len(self._symbols) > self._most:
                self._symbols.popitem(last=False)       # unmapped once its last user lets go
        else:
            self._symbols.move_to_end(file.identity)
        return found

    def _map(self, file: FileAt) -> mmap.mmap:
        try:
            descriptor = self.root.open(file.real_path)
        except OSError as error:
            raise BadElf(file.path, error.strerror or "cannot be opened") from error
        try:
            return map_file(descriptor, file.path)
        finally:
            os.close(descriptor)


__all__ = ["DiskFiles"]
