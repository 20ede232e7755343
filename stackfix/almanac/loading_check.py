"""Whether a file of what loading asks says what the wheels say."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.abi.records import TorchBook
from stackfix.almanac.loading_facts import LibraryFacts, WheelFacts
from stackfix.inspect.records import SymbolNames
from stackfix.tables.loading_book import LoadingBook
from stackfix.tables.loading_format import Sections
from stackfix.tables.loading_symbols import BookSymbols


def no_torch() -> TorchBook:
    """The comparison is about the file alone."""
    raise LookupError("the book of torch is not asked here")


def unlike(book: LoadingBook, facts: WheelFacts) -> Iterator[str]:
    """What the file says otherwise of one wheel than its tables do."""
    sha256, file = facts.wheel.sha256, facts.wheel.file
    told = book.tables(sha256)
    if (told.project, told.libraries) != (facts.tables.project, facts.tables.libraries):
        yield f"{file}: what it tells of its libraries"
        return
    for path, library in facts.libraries.items():
        if not is_like(book.facts(sha256, path), library):
            yield f"{file}: symbols of {path}"


def is_like(told: BookSymbols, library: LibraryFacts) -> bool:
    """Whether the symbols of a library are those that it has."""
    offered = library.symbols.offered(SymbolNames(list(told.exports)))
    used = tuple((each.name, each.version, each.file, bool(number & 1)) for number in library.uses
                 for each in (library.wanted[number >> 1],))
    return (told.told, told.wanted, told.used, told.lacks) == (
        library.told, library.wanted, used, frozenset(library.lacks)) and \
        {name: tuple(offers) for name, offers in offered.items()} == dict(told.exports)


def differing(content: bytes, other: bytes, name: str) -> Iterator[str]:
    """Which parts of two files tell something else; how they are compressed does not count."""
    one, two = Sections(content, name), Sections(other, name)
    if (one.names(), one.looked_for) != (two.names(), two.looked_for):
        yield "its table of names"
    for mine, theirs in zip(one.wheels, two.wheels, strict=True):
        if one.document(mine) != two.document(theirs):
            yield mine.file


__all__ = ["differing", "no_torch", "unlike"]
