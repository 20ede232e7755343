"""Which std::string mangled names speak of. Libstdc++ has two, and a build of torch exports the names of one.

The old one is `Ss` (std::basic_string of char, Itanium C++ ABI 5.1.5); the new one lies in the inline namespace
`std::__cxx11`, and what returns it carries the tag `[abi:cxx11]`. A function that returns the old one and takes none is
named as if it had to do with neither: None for it does not mean that its name is the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OLD, NEW, BOTH = "old", "new", "both"
# Behind a key in the almanac: the minors of which a wheel with the new string has the name with a tag that the key lost
TAGGED = "@string"
IN_NEW = re.compile(r"7__cxx11|B5cxx11")
# Digits that begin no identifier: substitutions, template parameters, literals, bounds, vectors, offsets of thunks
SKIPPED = re.compile(r"S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?[0-9]+E|[AU][0-9]+_|Dv[0-9]+_|[hv]n?[0-9]+_(?:n?[0-9]+_)?"
                     r"|fL?[0-9p]+_")
# What libstdc++ keeps twice (Dual ABI); without `__cxx11` behind `St` it is the old one
TWICE = re.compile(r"Ss|Sb|St(?:4list|12basic_string|15basic_stringbuf|18basic_stringstream|19basic_[io]stringstream"
                   r"|8numpunct|10moneypunct|8messages|7collate|8time_get|9money_[gp][eu]t)I")
PREFIX = re.compile(r"_Z(?:T[VTIS])?")
DIGITS = re.compile(r"[0-9]{1,6}")


def name_flavour(name: str) -> str | None:
    """"new" or "old"; None where the name speaks of no string."""
    if "cxx11" in name and IN_NEW.search(name):
        return NEW
    return OLD if "S" in name and name.startswith("_Z") and TWICE.search(name) and speaks_of_old(name) else None


def string_flavour(names: Iterable[str]) -> str | None:
    """"new", "old" or "both"; None where no name speaks of a string."""
    found = {name_flavour(name) for name in names} - {None}
    return BOTH if len(found) > 1 else next(iter(found), None)


def speaks_of_old(name: str) -> bool:
    """Whether one of the types in a mangled name is the old string; identifiers are passed over."""
    start = PREFIX.match(name)
    at = start.end() if start else 0
    while at < len(name):
        if digits := DIGITS.match(name, at):
            at = digits.end() + int(digits[0])
        elif skipped := SKIPPED.match(name, at):
            at = skipped.end()
        elif TWICE.match(name, at):
            return True
        else:
            at += 1
    return False


__all__ = ["BOTH", "NEW", "OLD", "TAGGED", "name_flavour", "string_flavour"]
