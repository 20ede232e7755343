"""The set of a wheel by the rule, and by the rule with one of its filters left out: what each filter is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from stackfix.abi.flavour import string_flavour
from stackfix.abi.names import NOISE, TORCH_COMPONENT, is_standard_symbol, is_torch_symbol
from stackfix.abi.records import TorchBook
from stackfix.almanac.extensions_files import needed_siblings
from stackfix.almanac.records import LibraryTables, WantedName, WheelTables
from tests.abi_survey.kept import Survey, in_any

ONLY_C10D = re.compile(r"(?<!\d)(?:3c10|5torch|6caffe2)|N[rVK]*[RO]?2at")


class Rule(NamedTuple):
    """Which names count, and from whom."""

    title: str
    counts: Callable[[WantedName], bool]
    siblings: bool = True           # what a sibling supplies is left out
    one_library: bool = False       # a name is looked for in the library where the newest minor that has it has it


def by_the_rule(name: WantedName) -> bool:
    return not name.weak and name.version is None and is_torch_symbol(name.name)


def strong(name: WantedName) -> bool:
    return not name.weak and name.version is None


WHOLE = ""
WITHOUT = {
    "standard": Rule("names of the C++ library count, where torch exports them",
                     lambda name: by_the_rule(name) or (strong(name) and is_standard_symbol(name.name))),
    "noise": Rule("names with a hash count",
                  lambda name: by_the_rule(name) or (strong(name) and NOISE.search(name.name) is not None)),
    "c10d": Rule("c10d is not known for a namespace",
                 lambda name: by_the_rule(name) and (not name.name.startswith("_Z")
                                                     or ONLY_C10D.search(name.name) is not None)),
    "at": Rule("`2at` counts wherever it stands",
               lambda name: by_the_rule(name) or (strong(name) and "2at" in name.name)),
    "foreign": Rule("other C names count, where torch exports them",
                    lambda name: by_the_rule(name) or (strong(name) and not name.name.startswith("_Z"))),
    "moved": Rule("a name is looked for in one library only", by_the_rule, one_library=True),
    "weak": Rule("weak names count",
                 lambda name: name.version is None and is_torch_symbol(name.name)),
    "siblings": Rule("what a library of the same wheel supplies counts", by_the_rule, siblings=False),
    "versioned": Rule("names with a symbol version count, where torch exports them",
                      lambda name: by_the_rule(name) or name.version is not None),
}

ALL = {WHOLE: Rule("the rule", by_the_rule), **WITHOUT}


def sets_of(survey: Survey, book: TorchBook) -> dict[str, dict[str, tuple[str, ...]]]:
    """By rule ("" is the whole one) and wheel file: minors whose index wheels have all names that count."""
    ask = Exporters(survey, book)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for wheel in survey.wheels:
        supplied = [supplied_to(library, wheel) for library in wheel.libraries]
        for name, rule in ALL.items():
            found.setdefault(name, {})[wheel.wheel.file] = ask.minors(frozenset(counted(wheel, supplied, rule)), rule)
    return found


def counted(wheel: WheelTables, supplied: Sequence[frozenset[str]], rule: Rule) -> Iterator[str]:
    """Names that count by a rule."""
    for library, of_siblings in zip(wheel.libraries, supplied, strict=True):
        for each in library.wanted:
            if rule.counts(each) and not (rule.siblings and each.name in of_siblings):
                yield each.name


def supplied_to(library: LibraryTables, wheel: WheelTables) -> frozenset[str]:
    return frozenset(name for other in needed_siblings(library, wheel.libraries) for name in other.exports)


class Exporters:
    """Which minors export a name, asked once for each."""

    def __init__(self, survey: Survey, book: TorchBook) -> None:
        self.survey, self.book = survey, book
        self._known: dict[str, frozenset[str] | None] = {}

    def of(self, name: str) -> frozenset[str] | None:
        """Minors that export a name, whosever it is; None for one of others, that torch never had."""
        if name not in self._known:
            self._known[name] = self._ask(name)
        return self._known[name]

    def _ask(self, name: str) -> frozenset[str] | None:
        if is_torch_symbol(name):
            return frozenset(self.book.minors(name))
        if name in self.survey.leaks:
            return frozenset(self.survey.leaks[name])
        return frozenset() if TORCH_COMPONENT.search(name) or "2at" in name else None

    def minors(self, names: frozenset[str], rule: Rule) -> tuple[str, ...]:
        """Minors that have all names, and the std::string that they speak of."""
        flavour = string_flavour(filter(is_torch_symbol, names))
        left = {each.minor for each in self.book.releases if flavour in {None, each.string_abi}}
        for name in names:
            minors = self.of(name)
            if minors is not None:
                left &= minors
        found = [each.minor for each in self.book.releases if each.minor in left]
        if rule.one_library and found:
            found = [minor for minor in found if all(stays(self.survey, name, minor) for name in names)]
        return tuple(found)


def stays(survey: Survey, name: str, minor: str) -> bool:
    """Whether one minor has a name in the library where the newest minor that has it has it."""
    libraries = survey.moves.get(name)
    if libraries is None:
        return True
    newest = in_any(libraries)[-1]
    return any(newest in minors and minor in minors for minors in libraries.values())


__all__ = ["ALL", "WHOLE", "WITHOUT", "sets_of"]
