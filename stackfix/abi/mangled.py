"""Mangled C++ names: readable, and as keys that do not tell which std::string a library was built with.

Own parser of the Itanium C++ ABI, 5.1. What __cxa_demangle offers through ctypes differs between machines, is absent on
some, and has crashed on hostile names. docs/abi-names.md tells how keys are made.
"""

from __future__ import annotations

import re

from stackfix.abi.mangled_emit import emit
from stackfix.abi.mangled_nodes import NotMangledError
from stackfix.abi.mangled_parse import parse
from stackfix.abi.mangled_text import text_of

AFTER_PARAMETERS = re.compile(r"(?: const| volatile| restrict| &&?)*(?: \[clone .*\])?")
NEW = re.compile(r"7__cxx11|B5cxx11")


def neutral(name: str) -> str:
    """The name as a compiler with the old std::string would have mangled it; the name itself where nothing tells.

    What is no mangled name, or lies beyond our limits, is its own key.
    """
    if "cxx11" not in name or NEW.search(name) is None:
        return name
    try:
        tree, suffix = parse(name)
        return f"_Z{emit(tree, old=True)}{suffix}"
    except (NotMangledError, RecursionError):
        return name


def function_of(name: str) -> str | None:
    """What `demangle` gives, up to the parameters: "c10::cuda::SetDevice" of "c10::cuda::SetDevice(int)"."""
    text = demangle(name)
    end = text.rfind(")") if text is not None else -1
    if text is None or end < 0 or AFTER_PARAMETERS.fullmatch(text, end + 1) is None:
        return text             # of an object there are none
    depth = 0
    for place in range(end, 0, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if not depth:
            return text[:place]
    return text


def demangle(name: str) -> str | None:
    """Readable C++, as c++filt spells it; None where the name is not mangled or lies beyond our limits."""
    if not name.startswith("_Z"):
        return None
    try:
        tree, suffix = parse(name)
        text = text_of(tree)
    except (NotMangledError, RecursionError):
        return None
    return f"{text} [clone {suffix}]" if suffix else text
