"""What compiled files ask of torch: the names that count, and what the almanac has of them.

A name counts where it is undefined and strong, carries no symbol version, comes from no file of the same package, and
can only be torch's. docs/abi-verdict.md tells why, one kind of false alarm after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from stackfix.abi.flavour import NEW, OLD, TAGGED, name_flavour, string_flavour
from stackfix.abi.mangled import demangle, neutral
from stackfix.abi.names import is_of_another, is_torch_library, is_torch_symbol
from stackfix.abi.records import CompiledFile, Deciding, PatchException, TorchBook

CUDA_LIBRARY = re.compile(r"lib(?:c10|torch|caffe2)_(?:\w*cuda|hip|nvrtc)\w*\.so$")
MOST_READABLE = 1000            # reasons of one kind; real wheels have some hundred


class Asked(NamedTuple):
    """One name that counts."""

    name: str                       # as the file has it
    file: str                       # the first that wants it
    key: str                        # without what tells the two kinds of std::string apart
    flavour: str | None             # "old" or "new", where the name tells
    minors: tuple[str, ...]         # that export it
    tagged: tuple[str, ...]         # of a name without a tag: minors whose wheels with the new string have it tagged

    def deciding(self) -> Deciding:
        """As a reason."""
        return Deciding(name=self.name, demangled=demangle(self.name), file=self.file, minors=self.minors)


def reasons(asked: Iterable[Asked]) -> tuple[Deciding, ...]:
    """As reasons. A damaged file may ask for very many: beyond MOST_READABLE they stay as they are."""
    return tuple(each.deciding() if place < MOST_READABLE else Deciding(
        name=each.name, demangled=None, file=each.file, minors=each.minors) for place, each in enumerate(asked))


def names_asked(files: Iterable[CompiledFile]) -> dict[str, str]:
    """Name to the first file that wants it, in the order of the files and of their symbol tables."""
    found: dict[str, str] = {}
    for file in files:
        for symbol in file.undefined:
            if not symbol.weak and symbol.version is None and is_torch_symbol(symbol.name):
                found.setdefault(symbol.name, file.path)
    return found


def asked_of(files: Iterable[CompiledFile], book: TorchBook) -> list[Asked]:
    """The names that count, with what the almanac has of them.

    What no release exports counts only where it is in a namespace of torch's: else a library of another project that is
    not at hand has it.
    """
    found = list[Asked]()
    for name, path in names_asked(files).items():
        key, flavour = neutral(name), name_flavour(name)
        plain = flavour is None and name.startswith("_Z")
        minors = book.minors(name)
        if not minors and is_of_another(name):
            continue
        found.append(Asked(name, path, key, flavour, minors, book.minors(key + TAGGED) if plain else ()))
    return found


def names_of_others(files: Iterable[CompiledFile], book: TorchBook) -> Iterator[str]:
    """Names that speak of torch and that a library of another project should have."""
    return (name for name in names_asked(files) if is_of_another(name) and not book.minors(name))


def string_abi_of(asked: Sequence[Asked], book: TorchBook) -> str | None:
    """The std::string of what is asked for: "old", "new", "both"; None where nothing tells.

    A name without a tag tells where each wheel that has the new string and the function has it with the tag.
    """
    told = string_flavour(each.name for each in asked)
    if told is None:
        new = {release.minor for release in book.releases if release.string_abi == NEW}
        if any(each.tagged and new.intersection(each.minors) <= set(each.tagged) for each in asked):
            return OLD
    return told


def is_linked(files: Sequence[CompiledFile]) -> bool:
    """Whether one of the files is linked against a library of torch that none of them is."""
    own = {file.path.rpartition("/")[2] for file in files} | {file.elf.soname for file in files}
    return any(is_torch_library(soname) and soname not in own for file in files for soname in file.elf.needed)


def only_in_cuda(asked: Iterable[Asked], book: TorchBook) -> Iterator[Asked]:
    """Those that only libraries of a CUDA build export."""
    for each in asked:
        libraries = book.libraries(each.name)
        if libraries and all(CUDA_LIBRARY.match(library) for library in libraries):
            yield each


class Patch(NamedTuple):
    """What one patch release has otherwise than the newest of its minor, by key."""

    version: str
    more: frozenset[str]
    less: frozenset[str]

    def has(self, asked: Asked, minor: str) -> bool:
        """Whether this patch of `minor` exports a name."""
        return asked.key not in self.less and (minor in asked.minors or asked.key in self.more)


def patch_of(version: str, exceptions: Iterable[PatchException]) -> Patch:
    """The exceptions of one patch release, sorted."""
    kept = tuple(exceptions)
    return Patch(version, frozenset(each.key for each in kept if each.exported),
                 frozenset(each.key for each in kept if not each.exported))


__all__ = ["Asked", "Patch", "asked_of", "is_linked", "names_asked", "names_of_others", "only_in_cuda", "patch_of",
           "reasons", "string_abi_of"]
