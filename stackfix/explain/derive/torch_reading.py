"""Which name of torch's a text means: whole, cut short, or readable C++; and which releases export it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackfix.abi.flavour import name_flavour
from stackfix.abi.mangled import demangle
from stackfix.abi.records import TorchBook, TorchNames

NEW, OLD = "new", "old"
CUT = re.compile(r"(?:\.{2,}|\u2026)[^\w]*$")
END = re.compile(r"[^\w)>\]]+$")
C_NAME = re.compile(r"(?:aoti_|torch_|TH[PC])\w*")
SCOPED = re.compile(r"(?:[\w&*]+ )*((?:c10|c10d|at|torch|caffe2)(?:::~?\w+)+)")
NEW_STRING = "NSt7__cxx11"                              # behind it a name differs with the std::string
LONG_STRING = re.compile(r"std::(?:__cxx11::)?basic_string<char,std::char_traits<char>,std::allocator<char>>")
MOST_CUT = 64                   # names with one beginning; more tell nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A name of torch's as a text has it."""

    name: str                       # mangled; of readable C++ and of a name that is cut short what is known of it
    minors: tuple[str, ...]         # that export it, or one that begins so
    string_abi: str | None          # "new" or "old" std::string
    whole: bool                     # the text has all of it


def read_symbol(text: str, book: TorchBook, known: TorchNames | None) -> Reading | None:
    """The name that a text means; None where it cannot be one of torch's."""
    cut = CUT.search(text) is not None
    symbol = END.sub("", CUT.sub("", text))
    symbol = symbol[1:] if symbol.startswith("__Z") else symbol
    if C_NAME.fullmatch(symbol) or symbol.startswith("_Z"):
        return of_mangled(symbol, book, known, cut=cut)
    scoped = SCOPED.match(symbol)
    return None if scoped is None else of_readable(symbol, scoped[1], known, book)


def of_mangled(symbol: str, book: TorchBook, known: TorchNames | None, *, cut: bool) -> Reading:
    """A mangled or a C name. One that no release has and that is no whole name is taken as a beginning."""
    flavour = name_flavour(symbol) if symbol.startswith("_Z") else None
    minors = () if cut else book.minors(symbol)
    whole = bool(minors) or (not cut and (demangle(symbol) is not None or not symbol.startswith("_Z")))
    if whole or known is None:
        return Reading(name=symbol, minors=minors, string_abi=flavour, whole=whole)
    beginning, string = before_string(symbol)
    rows = known.starting(beginning)
    found = [row for row in rows if not string or row[0].startswith(("Ss", "RKSs"), len(beginning))]
    return Reading(name=symbol, minors=united(found, book) if len(found) <= MOST_CUT else (), whole=False,
                   string_abi=NEW if string else flavour)


def before_string(symbol: str) -> tuple[str, bool]:
    """A name up to its first new std::string, of which the end may hold the beginning only; else all of it."""
    place = re.search(rf"(?:RK)?{NEW_STRING}", symbol)
    if place is not None:
        return symbol[:place.start()], True
    for length in range(len(NEW_STRING) - 1, len("NSt"), -1):
        if symbol.endswith(NEW_STRING[:length]):
            return symbol[:-length].removesuffix("RK"), True
    return symbol, False


def of_readable(symbol: str, scope: str, known: TorchNames | None, book: TorchBook) -> Reading | None:
    """Readable C++: the name with these parameters; where none has them, or none are given, all of the function."""
    parts = scope.split("::")
    special = "C2" if len(parts) > 1 and parts[-1] == parts[-2] else "D2" if parts[-1].startswith("~") else ""
    nested = "".join(f"{len(part)}{part}" for part in (parts[:-1] if special else parts)) + special
    beginnings = (f"_ZN{nested}E", f"_ZNK{nested}E")
    rows = [row for each in beginnings for row in (known.starting(each) if known is not None else ())]
    exact = [row for row in rows if squeezed(demangle(row[0]) or "") == squeezed(symbol)]
    flavour = NEW if "cxx11" in symbol else OLD if "std::string" in symbol else None
    if exact:
        return Reading(name=exact[0][0], minors=united(exact, book), string_abi=flavour, whole=True)
    minors = () if "(" in symbol else united(rows, book)
    return Reading(name=beginnings[0], minors=minors, string_abi=flavour, whole=False)


def squeezed(text: str) -> str:
    """Readable C++ without spaces, its long names of strings short."""
    bare = text.replace(" ", "").replace("[abi:cxx11]", "")
    return LONG_STRING.sub("std::string", bare).replace("std::__cxx11::string", "std::string")


def united(rows: list[tuple[str, tuple[str, ...]]], book: TorchBook) -> tuple[str, ...]:
    """The minors of any of these, oldest first."""
    every = {minor for _, minors in rows for minor in minors}
    return tuple(each.minor for each in book.releases if each.minor in every)
