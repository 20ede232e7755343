"""What the metadata of a package require of torch where it is installed: the lines that apply there, taken together."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

TORCH = re.compile(r"torch(?:\[[^\]]*\])?(?:\(?((?:===?|~=|!=|<=|>=|<|>)[^)]*)\)?)?", re.IGNORECASE)   # without spaces
AT_AN_ADDRESS = re.compile(r"torch(?:\[[^\]]*\])?@", re.IGNORECASE)
EXTRA_ALONE = re.compile(r"\s*\(?\s*extra\s*==\s*['\"][^'\"]*['\"]\s*\)?\s*")
NOT_KNOWN = re.compile(r"\b(?:platform_release|platform_version|implementation_version)\b")
QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
PYTHONS = tuple(f"3.{minor}" for minor in range(7, 17))     # that torch ever was for, or will soon be
ABI = re.compile(r"(?P<kind>cp|pp)(?P<major>\d)(?P<minor>\d{1,2})t?")
MACHINES = {"i386": "i686", "arm": "armv7l", "ppc64": "ppc64le", "riscv": "riscv64"}    # ELF's name to the kernel's
LONGEST = 2000                  # letters of a line; real ones have some hundred

Where = Mapping[str, str]       # variables of markers


def torch_required(requires: Iterable[str], abis: Sequence[str], floor: str | None, machines: Collection[str],
                   python: str | None = None) -> str | None:
    """The specifier over all lines that apply, ">=2.2,<2.5"; "" where none limits it, None where that cannot be told.

    `abis` are those that the package was compiled for, `floor` the oldest Python of abi3. `python` is the one that it
    is for, where that is known. A line that applies to some of them only cannot be told.
    """
    found = list[str]()
    places = list(places_of([python] if python else pythons_of(abis, floor), abis, machines))
    for line in requires:
        text, _, marker = line[:LONGEST].partition(";")
        text = "".join(text.split())
        match = TORCH.fullmatch(text)
        if match is None and not AT_AN_ADDRESS.match(text):
            continue
        applies = False if EXTRA_ALONE.fullmatch(marker) else not marker.strip() or holds(marker, places)
        if applies is None or (applies and (match is None or len(line) > LONGEST)):
            return None
        if applies and match is not None and match[1]:
            found.append(match[1].strip(","))
    return ",".join(dict.fromkeys(found))


def pythons_of(abis: Sequence[str], floor: str | None) -> Sequence[str]:
    """Pythons that it can be installed for."""
    named = [f"{match['major']}.{match['minor']}" for each in abis if (match := ABI.fullmatch(each))]
    if named:
        return named
    oldest = next((place for place, each in enumerate(PYTHONS) if each == floor), 0)
    return PYTHONS[oldest:]


def places_of(pythons: Iterable[str], abis: Iterable[str], machines: Collection[str]) -> Iterator[Where]:
    """Variables of markers wherever it can be installed. No patch of a Python is known: its first and last stand."""
    pypy = any(each.startswith("pp") for each in abis)
    for python, patch, machine in itertools.product(pythons, ("0", "99"), machines or ("x86_64", "aarch64")):
        yield {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
               "platform_machine": MACHINES.get(machine, machine), "platform_release": "", "platform_version": "",
               "python_version": python, "python_full_version": f"{python}.{patch}",
               "implementation_name": "pypy" if pypy else "cpython", "implementation_version": f"{python}.{patch}",
               "platform_python_implementation": "PyPy" if pypy else "CPython", "extra": ""}


def holds(marker: str, places: Iterable[Where]) -> bool | None:
    """Whether a marker holds without an extra; None where it does in some of the places, or where nobody can tell."""
    from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName

    unknown = set(NOT_KNOWN.findall(marker))
    if len(unknown) > 1:
        return None
    try:
        parsed = Marker(marker)
        answers = {parsed.evaluate({**each, **dict.fromkeys(unknown, value)})
                   for each in places for value in (contrasts(marker) if unknown else ("",))}
    except (ValueError, UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        return None
    return answers.pop() if len(answers) == 1 else None


def contrasts(marker: str) -> set[str]:
    """Values for which each comparison with a text of the marker comes out both ways."""
    texts = {first or second for first, second in QUOTED.findall(marker)}
    return {"", "~", "0", *texts, *(f"{each}.1" for each in texts)}


__all__ = ["torch_required"]
