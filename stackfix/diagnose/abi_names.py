"""Mangled C++ names, as far as a reader needs them. Source: the Itanium C++ ABI, 5.1 External Names."""

from __future__ import annotations

import re
from collections.abc import Iterable

NESTED = re.compile(r"_Z(?:T[VITS])?N[rVK]*[RO]?")
PLAIN = re.compile(r"_Z(?:T[VITS])?(?=\d)")
COMPONENT = re.compile(r"(\d{1,9})")
STRUCTOR = re.compile(r"[CD][0-9]")
TAG = re.compile(r"B(\d{1,9})")
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NEW = re.compile(r"St7__cxx11|B5cxx11")
OLD = re.compile(r"(?:RK|R|E|O|S\d*_|[vijlmbc])Ss(?![a-z])")


def hint(name: str) -> str:
    """What is before the arguments, readable: "c10::cuda::SetDevice" of `_ZN3c104cuda9SetDeviceEi`; else the name."""
    opening = NESTED.match(name) or PLAIN.match(name)
    if opening is None:
        return name
    parts, at, nested = list[str](), opening.end(), name[opening.end() - 1] not in "ZVITS"
    while at < len(name):
        if match := COMPONENT.match(name, at):
            end = match.end() + int(match[1])
            parts.append(name[match.end():end])
            at = end
        elif name.startswith("St", at):
            parts, at = [*parts, "std"], at + 2
        elif match := TAG.match(name, at):
            at = match.end() + int(match[1])
        elif parts and (match := STRUCTOR.match(name, at)):
            parts.append(("~" if match[0][0] == "D" else "") + parts[-1])
            break
        else:
            break
        if not nested:
            break
    return "::".join(parts) if parts else name


def string_abi(names: Iterable[str]) -> str | None:
    """Which std::string mangled names speak of: "new" (__cxx11), "old"; None where they speak of none, or of both."""
    found = {"new" if NEW.search(name) else "old" for name in names if NEW.search(name) or OLD.search(name)}
    return found.pop() if len(found) == 1 else None


def other_string(name: str) -> str | None:
    """The name of the same function in the other std::string ABI, where it has one string; else None."""
    if name.count(NEW_STRING) == 1:
        return name.replace(NEW_STRING, "Ss")
    if name.count("Ss") == 1 and OLD.search(name):
        return name.replace("Ss", NEW_STRING)
    return None
