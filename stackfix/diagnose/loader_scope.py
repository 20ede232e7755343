"""Lists of objects that are searched for symbols, and which of them has a name first.

A scope is one or more such lists, one behind the other. Names are asked for by the thousand, and what a list answers
depends on its files alone, so it is remembered from request to request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stackfix.diagnose.loader_process import Mapped
from stackfix.inspect.records import BadElf, Offer, SymbolNames, Symbols

KEPT = 8        # lists; the global scope is asked again and again, the search list of one dlopen as a rule once


class Hit:
    """What a list has under a name. Names of one file share a hit where it offers them alike, so hits are few."""

    __slots__ = ("list_key", "offers", "place")

    def __init__(self, list_key: object, place: int, offers: Sequence[Offer]) -> None:
        self.list_key, self.place, self.offers = list_key, place, offers


class SearchList:
    """For each name that was asked for, the first file that offers it."""

    __slots__ = ("asked", "faults", "first", "key")

    def __init__(self) -> None:
        self.key = object()                     # by which a hit knows its list without holding it
        self.first: dict[str, Hit] = {}
        self.asked: set[str] = set()
        self.faults: dict[int, BadElf] = {}     # files whose symbols cannot be read, by place

    def ask(self, names: set[str], objects: Sequence[Mapped], symbols_of: Callable[[Mapped], Symbols]) -> None:
        """Look for those of the names that were not asked for yet. What turns out bad is in `faults` then."""
        new = names - self.asked
        if not new:
            return
        self.asked |= new
        left = SymbolNames(new)
        for place, object_ in enumerate(objects):
            offered = self.offered(place, object_, left, symbols_of)
            if offered:
                hits = {id(offers): Hit(self.key, place, offers) for offers in offered.values()}
                self.first.update({name: hits[id(offers)] for name, offers in offered.items()})
                left.drop(offered)
                if not left:
                    return

    def offered(
        self, place: int, object_: Mapped, names: SymbolNames, symbols_of: Callable[[Mapped], Symbols],
    ) -> Mapping[str, Sequence[Offer]]:
        """What one object offers; nothing once its symbols turned out unreadable."""
        if place in self.faults:
            return {}
        try:
            return symbols_of(object_).offered(names)
        except BadElf as error:
            self.faults[place] = error
            return {}


class View(NamedTuple):
    """A search list with the objects of one process."""

    objects: Sequence[Mapped]
    list: SearchList


def first_hits(names: Sequence[str], views: Sequence[View]) -> list[Hit | None]:
    """For each name the hit of the first list that has it. The lists were asked before."""
    hits: list[Hit | None] = [None] * len(names)
    for view in views:
        get = view.list.first.get
        hits = [hit or get(name) for hit, name in zip(hits, names, strict=True)]
        if None not in hits:
            break
    return hits


class SearchLists:
    """Search lists by the identities of their files, as many as are worth keeping."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], SearchList] = OrderedDict()

    def of(self, objects: Sequence[Mapped]) -> SearchList:
        """The list of these objects' files."""
        key = tuple([each.identity for each in objects])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = SearchList()
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found
