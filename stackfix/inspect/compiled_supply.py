"""Symbols that the files of one package supply to each other, as far as DT_NEEDED leads from one to the other."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.abi.records import found_as
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.records import BadElf, ElfObject, FileAt, SymbolNames, UndefinedSymbol, UnreadableElf

MOST_BESIDE = 256               # libraries that one file finds beside itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One shared object of a package."""

    shown: str
    file: FileAt
    elf: ElfObject


def without_supplied(files: DiskFiles, piece: Piece, package: Sequence[Piece],
                     undefined: Sequence[UndefinedSymbol]) -> tuple[UndefinedSymbol, ...]:
    """Those symbols that no file supplies to which DT_NEEDED leads inside the package, in the given order."""
    left = list(undefined)
    for helper in needed_inside(piece, package):
        if not left:
            break
        try:
            offered = files.symbols(helper.file).offered(SymbolNames(list({each.name for each in left})))
        except BadElf:      # told where that file is read itself
            continue
        left = [each for each in left
                if not any(each.version in {None, offer.version} for offer in offered.get(each.name, ()))]
    return tuple(left)


def needed_inside(piece: Piece, package: Sequence[Piece]) -> Iterator[Piece]:
    """Files of the package that the loader opens for one of them, breadth first as it does."""
    named: dict[str, list[Piece]] = {}
    for each in package:
        for name in found_as(each.file.path, each.elf.soname):
            named.setdefault(name, []).append(each)
    seen, ahead = {piece.file.identity}, [piece]
    while ahead:
        requester = ahead.pop(0)
        for needed in requester.elf.needed:
            several = named.get(needed.rpartition("/")[2], ())
            found = min(several, key=lambda each: folder_of(each) != folder_of(requester), default=None)
            if found is not None and found.file.identity not in seen:
                seen.add(found.file.identity)
                ahead.append(found)
                yield found


def folder_of(piece: Piece) -> str:
    return posixpath.dirname(piece.file.path)


def beside(files: DiskFiles, file: FileAt, elf: ElfObject) -> Iterator[tuple[FileAt, ElfObject]]:
    """Libraries in a file's own folder, and those that it reaches through $ORIGIN below it or in a `NAME.libs`.

    Of a file that is asked about alone these are of its package; another package's, torch's say, lie elsewhere. Some
    packages name no folder, and load such a library before the file that needs it.
    """
    seen, ahead = {file.identity}, [(file, elf)]
    home = posixpath.dirname(file.path)
    while ahead and len(seen) <= MOST_BESIDE:
        requester, asked = ahead.pop(0)
        for needed in asked.needed:
            for folder in (*origin_folders(requester, asked), home):
                found = files.at(f"{folder}/{needed}") if is_of_package(folder, home) and "/" not in needed else None
                if isinstance(found, FileAt) and not isinstance(found.elf, UnreadableElf):
                    if found.identity not in seen:
                        seen.add(found.identity)
                        ahead.append((found, found.elf))
                        yield found, found.elf
                    break


def origin_folders(file: FileAt, elf: ElfObject) -> Iterator[str]:
    """Elements of its RUNPATH, else RPATH, that start where the file itself lies."""
    origin = posixpath.dirname(file.path)       # as the loader has it: no link of the file itself is followed
    for element in (elf.runpath or elf.rpath or "").split(":"):
        if element.startswith(("$ORIGIN", "${ORIGIN}")):
            rest = element.removeprefix("$ORIGIN").removeprefix("${ORIGIN}")
            yield posixpath.normpath(f"{origin}/{rest}")


def is_of_package(folder: str, home: str) -> bool:
    """Whether a folder lies in a file's own, or is a `NAME.libs` near it."""
    return f"{folder}/".startswith(f"{home.rstrip('/')}/") or folder.endswith(".libs")
