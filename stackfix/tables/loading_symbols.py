"""Symbols of a library as the almanac tells them: what it takes from other wheels, and what it offers to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stackfix.inspect.records import Offer, SymbolNames, SymbolUse, UndefinedSymbol

EVERY, NAMED, OF_TORCH, NOT_INTERNAL = "every", "named", "torch", "not internal"
INTERNAL = re.compile(r"_Z|sm[0-9]+_")      # how names begin that NVIDIA's libraries export for one another alone


class TorchNames(Protocol):
    """What the book of torch says of one release."""

    def is_told(self, name: str) -> bool:
        """Whether the book can tell of a name at all."""

    def offers(self, library: str, name: str) -> bool:
        """Whether the library of this file name exports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSymbols:
    """Fills inspect.records.Symbols. What the wheel's libraries take from one another is not told."""

    file: str                       # file name of the library
    wanted: tuple[UndefinedSymbol, ...]
    used: tuple[SymbolUse, ...]     # in the loader's order
    exports: Mapping[str, tuple[Offer, ...]]
    told: str                       # which names are in `exports` if it has them: EVERY ... NOT_INTERNAL; else NAMED
    named: frozenset[str]           # names that were looked for when the almanac was made
    lacks: frozenset[str]           # names that the book of torch gives to it, and another library of torch has
    torch: TorchNames | None = None

    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols that it wants of other wheels and of the system, in its order."""
        return self.wanted

    def unique(self) -> Sequence[UndefinedSymbol]:
        """None: its own unique symbols are defined, so that none of them can be missing."""
        return ()

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What it offers under those of the names that it is known to have."""
        found: dict[str, Sequence[Offer]] = {}
        for name in names:
            if name in self.exports:
                found[name] = self.exports[name]
            elif self.torch is not None and name not in self.named and name not in self.lacks and \
                    self.torch.offers(self.file, name):
                found[name] = PLAIN
        return found

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        """Relocations of what it wants of others, in the loader's order."""
        wanted = frozenset(names)
        return [each for each in self.used if each.name in wanted]

    def tells(self, name: str) -> bool:
        """Whether `offered` is the whole truth about a name. Where it is not, a name that is missing may be there."""
        if self.told == EVERY or name in self.named or name in self.exports:
            return True
        if self.told == NOT_INTERNAL:
            return not INTERNAL.match(name)
        return self.torch is not None and self.torch.is_told(name)


PLAIN = (Offer(None, 1, False, "global", "func"),)      # noqa: FBT003 - a record's fields in their order

__all__ = ["EVERY", "INTERNAL", "NAMED", "NOT_INTERNAL", "OF_TORCH", "BookSymbols", "TorchNames"]
