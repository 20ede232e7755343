"""Mangled names as people read them, and the same function with the other std::string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_STRING = re.compile(r"(?<=[A-Z_vijlmbc])Ss(?![a-z])")
NUMBERS = re.compile(r"(_ZN[rVK]*\w+E)([a-z]{1,2})")     # a function that takes one or two numbers, by value
LETTERS = "abchijlmstxy"            # integers: signed char, bool, char … (Itanium C++ ABI, 5.1.5.2)
MOST = 100                          # characters of a name in a sentence


def readable(name: str) -> str:
    """A C++ name as it is written: "c10::cuda::SetDevice(int)"; arguments that would fill a line are left out."""
    from stackfix.abi.mangled import demangle

    whole = demangle(name)
    if whole is None:
        return name
    return whole if len(whole) <= MOST else f"{before_arguments(whole)}(…)"


def before_arguments(written: str) -> str:
    """A readable name up to the brackets at its end that hold the arguments."""
    end = written.rfind(")")
    depth = 0
    for at in range(end, -1, -1):
        depth += (written[at] == ")") - (written[at] == "(")
        if depth == 0:
            return written[:at] if at else written
    return written


def other_string(name: str) -> str | None:
    """The name of the same function in the other std::string ABI, where it has one string; else None."""
    from stackfix.abi.mangled import neutral

    old = neutral(name)
    if old != name:
        return old
    if name.count("Ss") == 1 and OLD_STRING.search(name):
        return name.replace("Ss", NEW_STRING)
    return None


def other_numbers(name: str) -> Iterator[str]:
    """Names that the same function would have, taking other integers: over the years they were widened, flags came."""
    match = NUMBERS.fullmatch(name)
    if match is not None:
        for count in (1, 2):
            yield from (each for letters in product(LETTERS, repeat=count)
                        if (each := match[1] + "".join(letters)) != name)
