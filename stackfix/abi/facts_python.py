"""For which Python a package was compiled, as its wheel tags and the names of its modules say.

Symbols alone cannot tell for which: the C API has most names in every release. But a file that asks for none of them
may be loaded by any Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from stackfix.abi.records import CompiledFile

MODULE = re.compile(r"\.(?P<tag>cpython-(?P<digits>\d{2,4}t?)[-\w]*|pypy(?P<pypy>\d{2,4})[-\w]*|(?P<abi3>abi3t?))\.so$")
PYTHON_TAG = re.compile(r"cp(\d)(\d{1,3})")
PYTHONS = re.compile(r"_?Py[A-Z_]")
COMPILED = re.compile(r"cp\d{2,4}[a-z]*|abi3t?|pypy\d{2,4}_\w+")


def python_abis(tags: Iterable[str], files: Sequence[CompiledFile]) -> tuple[str, ...]:
    """"cp311", "cp313t", "abi3", "pp310": of the modules; where none is named for a Python, of the tags.

    A tag tells only where something is asked of Python: a library that asks nothing of it is for all of them, and old
    builds of libraries that are opened by ctypes are tagged for the Python that packed them. More than one: built for
    several.
    """
    named = module_abis(files)
    return named or (tag_abis(tags) if asks_python(files) else ())


def module_abis(files: Iterable[CompiledFile]) -> tuple[str, ...]:
    """What the suffixes of its modules say."""
    return tuple(dict.fromkeys(abi for file in files if (abi := module_abi(file.path))))


def tag_abis(tags: Iterable[str]) -> tuple[str, ...]:
    """What wheel tags say; nothing of those for every Python."""
    return tuple(dict.fromkeys(abi for _, abi in told(tags) if abi is not None))


def told(tags: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """(tag of a Python, ABI) of each; None: no ABI of Python is asked for."""
    for tag in tags:
        parts = tag.split("-")
        if len(parts) == 3:
            yield from ((python, abi_of_tag(abi)) for python in parts[0].split(".") for abi in parts[1].split("."))


def abi_of_tag(abi: str) -> str | None:
    """cp37 of "cp37m", pp310 of "pypy310_pp73"."""
    if not COMPILED.fullmatch(abi):
        return None
    if abi.startswith("pypy"):
        return f"pp{abi[4:].partition('_')[0]}"
    return abi.rstrip("mu") if abi.startswith("cp") else abi


def asks_python(files: Iterable[CompiledFile]) -> bool:
    """Whether a file asks for a function of Python: it is compiled for some of them, unless it is for abi3."""
    return any(PYTHONS.match(symbol.name) for file in files for symbol in file.undefined)


def installers_refuse(tags: Iterable[str], python: str, abi: str) -> bool:
    """Whether none of a file name's tags is for a Python: 3.11 with the ABI cp311."""
    stable, here = ("abi3t" if abi.endswith("t") else "abi3"), tuple(map(int, python.split(".")))
    some = False
    for tagged, wanted in told(tags):
        some = True
        floor = PYTHON_TAG.fullmatch(tagged)
        new_enough = floor is None or (int(floor[1]), int(floor[2])) <= here
        if wanted in {None, abi} or (wanted == stable and abi.startswith("cp") and new_enough):
            return False
    return some


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


__all__ = ["installers_refuse", "module_abi", "module_abis", "python_abis", "python_floor"]
