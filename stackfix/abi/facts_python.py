"""For which Python a package was compiled, as its wheel tags and the names of its modules say.

Symbols alone cannot tell: the C API has most names in every release, and a file that asks for none may be loaded by
any Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MODULE = re.compile(r"\.(?P<tag>cpython-(?P<digits>\d{2,4}t?)[-\w]*|pypy(?P<pypy>\d{2,4})[-\w]*|(?P<abi3>abi3t?))\.so$")
PYTHON_TAG = re.compile(r"cp(\d)(\d{1,3})")
COMPILED = re.compile(r"cp\d{2,4}[a-z]*|abi3t?|pypy\d{2,4}_\w+")


def python_abis(tags: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """"cp311", "cp313t", "abi3", "pp310": of the modules first. More than one: built for several, or one lies."""
    found = [abi for path in paths if (abi := module_abi(path))]
    for tag in tags:
        parts = tag.split("-")
        if len(parts) == 3:
            found += [f"pp{abi[4:].partition('_')[0]}" if abi.startswith("pypy") else abi
                      for abi in parts[1].split(".") if COMPILED.fullmatch(abi)]
    return tuple(dict.fromkeys(found))


def python_floor(tags: Iterable[str]) -> str | None:
    """The oldest Python that a wheel of the stable ABI is tagged for: "3.9"."""
    found = [(int(match[1]), int(match[2])) for tag in tags if len(parts := tag.split("-")) == 3
             if any(abi in {"abi3", "abi3t"} for abi in parts[1].split("."))
             for python in parts[0].split(".") if (match := PYTHON_TAG.fullmatch(python))]
    return "{}.{}".format(*min(found)) if found else None


def module_abi(path: str) -> str | None:
    """What the suffix of an extension module says."""
    match = MODULE.search(path)
    if match is None:
        return None
    if match["digits"]:
        return f"cp{match['digits']}"
    return f"pp{match['pypy']}" if match["pypy"] else match["abi3"]


__all__ = ["module_abi", "python_abis", "python_floor"]
