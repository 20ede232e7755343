"""What the libraries of an environment export, read from the files themselves."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence

from stackfix.abi.names import is_torch_library
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.places import Root
from stackfix.inspect.records import BadElf, FileAt, SymbolNames, UnreadableElf

LEAST = "libc10.so"         # without it a folder is no torch's


class EnvironmentSymbols:
    """Fills abi.host.HostSymbols."""

    def __init__(self, root: Root, *, torch: Sequence[str], libraries: Sequence[str], standard: str | None,
                 sites: Sequence[str] = (), system: Sequence[str] = (), cache: Collection[str] = ()) -> None:
        """Folders of torch's libraries, and of others; `standard`: the C++ library's path.

        `system`: folders in which ld.so looks, `cache`: names that its cache has.
        """
        self.root, self.sites, self.cache = root, sites, cache
        self.searched = (*libraries, *torch, *system)
        self.files, self.standard, self.folders = DiskFiles(root), standard, tuple(libraries)
        self.torch = {name: path for folder in reversed(torch) for name, path in libraries_in(root, folder)}

    def torch_has(self, soname: str) -> bool | None:
        """Whether there is a library of torch with this soname."""
        return soname in self.torch if LEAST in self.torch else None

    def torch_lacks(self, names: Collection[str]) -> Collection[str] | None:
        """Those of the names that none of torch's libraries exports; None where one of them cannot be read."""
        return self._lacked_by(self.torch.values(), names) if LEAST in self.torch else None

    def library_lacks(self, soname: str, names: Collection[str]) -> Collection[str] | None:
        """Those that the library of this soname does not export: the first of the folders that has it decides."""
        for folder in self.folders:
            if self._readable(f"{folder}/{soname}") is not None:
                return self._lacked_by((f"{folder}/{soname}",), names)
        return None

    def finds(self, soname: str, folders: Collection[str]) -> bool:
        """Whether a library of this name lies in one of the folders, in the environment, or where ld.so looks."""
        own = [posixpath.normpath(each.replace("$ORIGIN", site, 1)) for each in folders if "$ORIGIN" in each
               for site in self.sites] + [each for each in folders if each.startswith("/") and "$" not in each]
        return soname in self.cache or any(self.root.is_file(f"{each}/{soname}") for each in (*own, *self.searched))

    def standard_lacks(self, names: Collection[str]) -> Collection[str] | None:
        """Those that neither the C++ library nor torch exports."""
        return self._lacked_by((self.standard, *self.torch.values()), names) if self.standard else None

    def torch_string_abi(self, old: str, new: str) -> str | None:
        """The std::string of torch, by two names of one function."""
        lacks = self.torch_lacks((old, new))
        if lacks is None or len(lacks) != 1:
            return None
        return "old" if new in lacks else "new"

    def needed_by(self, soname: str) -> tuple[str, ...]:
        """DT_NEEDED of one of torch's libraries."""
        found = self._readable(self.torch[soname]) if soname in self.torch else None
        return found.elf.needed if found is not None and not isinstance(found.elf, UnreadableElf) else ()

    def _readable(self, path: str) -> FileAt | None:
        found = self.files.at(path)
        return found if isinstance(found, FileAt) and not isinstance(found.elf, UnreadableElf) else None

    def _lacked_by(self, paths: Iterable[str], names: Collection[str]) -> Collection[str] | None:
        left = SymbolNames(list(dict.fromkeys(names)))
        for path in paths:
            found = self._readable(path)
            if found is None:
                return None
            try:
                left.drop(list(self.files.symbols(found).offered(left)))
            except BadElf:
                return None
        return list(left)


def libraries_in(root: Root, folder: str) -> Iterator[tuple[str, str]]:
    """(soname, path) of torch's libraries in a folder, by their file names."""
    for entry in root.find_entries(folder):
        if is_torch_library(entry.name) and entry.kind in {"file", "link"}:
            yield entry.name, f"{folder}/{entry.name}"


__all__ = ["EnvironmentSymbols"]
