"""What one torch wheel exports to extensions: ABI-neutral names, each with the libraries that have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.abi.flavour import TAGGED, name_flavour
from stackfix.abi.mangled import neutral
from stackfix.abi.names import is_torch_library, is_torch_symbol, string_abi
from stackfix.almanac.records import ManifestWheel, WheelTables
from stackfix.errors import BadInput

WANTED = re.compile(r"torch/lib/lib(?:torch|c10|caffe2|shm)[^/]*\.so[^/]*")
ABIS = frozenset({"old", "new"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """The torch-owned names of one release, no noise."""

    wheel: ManifestWheel
    string_abi: str                 # "old" or "new"
    names: Mapping[str, frozenset[str]]     # by ABI-neutral key: "libc10.so" ..., at least one


def is_wanted(path: str) -> bool:
    """Whether a file of the wheel is a library of torch's own."""
    return WANTED.fullmatch(path) is not None


def exports_of(tables: WheelTables) -> Exports:
    """The names of a wheel. Raises BadInput where its std::string is not one of the two.

    A name that has a string in what it returns alone loses in its key what tells the two apart: the tagged key beside
    it says that this wheel has the new one.
    """
    names: dict[str, frozenset[str]] = {}
    own = set[str]()
    one: dict[frozenset[str], frozenset[str]] = {}      # a dozen sets stand for all
    for library in tables.libraries:
        file = library.path.rpartition("/")[2]
        if not is_torch_library(file):      # libraries of torch's own tests
            continue
        for name in filter(is_torch_symbol, library.exports):
            own.add(name)
            key = neutral(name)
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise BadInput(tables.wheel.file, f"{library.path} exports {key[:60]!r}, which no compiler has made")
            for each in (key, key + TAGGED) if key != name and name_flavour(key) is None else (key,):
                both = names.get(each, frozenset()) | {file}
                names[each] = one.setdefault(both, both)
    flavour = string_abi(own)
    if flavour not in ABIS:
        said = "both kinds of std::string" if flavour else "no std::string"
        raise BadInput(tables.wheel.file, f"its names speak of {said}", "no column can be made of such a wheel")
    return Exports(wheel=tables.wheel, string_abi=str(flavour), names=names)


__all__ = ["Exports", "exports_of", "is_wanted"]
