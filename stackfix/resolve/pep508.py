"""Versions, specifiers and requirement lines, each parsed once.

A lock parses the same few hundred strings thousands of times; packaging's parsers are exact but not cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ANY = SpecifierSet()
_EXTRA_TEST = re.compile(r"""\bextra\s*==\s*["']([^"']*)["']""")
_EXTRA_NAMED = re.compile(r"""\bextra\s*[=!]=\s*(?:"([^"]*)"|'([^']*)')""")
_LONGEST = 8192         # letters of one requirement; the longest real one has a few hundred
_HUGE = re.compile(r"\d{600}")     # int() may refuse a number so long
_EXCLUSIVE = re.compile(r"^===?\s*[^*]+$")


@cache
def parse_version(text: str) -> Version | None:
    """The version, or None where the text is none (such a file is never a candidate)."""
    try:
        return Version(text)
    except ValueError:      # InvalidVersion, or a number that int() refuses
        return None


@cache
def parse_specifier(text: str) -> SpecifierSet | None:
    """The specifier, or None where the text is none."""
    try:
        return None if len(text) > 600 and _HUGE.search(text) else SpecifierSet(text)
    except InvalidSpecifier:
        return None


@cache
def parse_requirement(text: str) -> Requirement | None:
    """The requirement, or None where the text is no PEP 508 requirement."""
    if len(text) > _LONGEST or (len(text) > 600 and _HUGE.search(text)):
        return None
    try:
        return Requirement(text)
    except (InvalidRequirement, RecursionError):
        return None


@cache
def normalise(name: str) -> str:
    """The name as an index spells it (PEP 503)."""
    return str(canonicalize_name(name))


def admits(specifier: SpecifierSet, version: Version) -> bool:
    """Whether the specifier takes the version; pre-releases are decided elsewhere."""
    return specifier.contains(version, prereleases=True)


def pins_exactly(specifier: SpecifierSet) -> bool:
    """Whether one version is named: `==2.3.1`, not `==2.3.*`."""
    return any(_EXCLUSIVE.match(str(part)) for part in specifier)


def wants_prereleases(specifiers: Iterable[SpecifierSet]) -> bool:
    """Whether one of them names a pre-release (`>=2.0rc1`), which lets pre-releases in, as pip reads PEP 440."""
    return any(specifier.prereleases for specifier in specifiers)


def needs_other_extra(line: str, extra: str | None) -> bool:
    """Whether a Requires-Dist line can be passed over unparsed: it holds only under an extra that is not `extra`.

    Most lines of a large project's metadata are such. A marker with `or` is left to the full evaluation.
    """
    marker = line.partition(";")[2]
    if "extra" not in marker or " or " in marker:
        return False
    tested = _EXTRA_TEST.findall(marker)
    return bool(tested) and not (extra is not None and all(normalise(name) == extra for name in tested))


def lines_of_extra(lines: tuple[str, ...], extra: str) -> list[str]:
    """The lines that `extra` may add to what holds without it, in their order: others say the same with it as without.

    A release with hundreds of extras has thousands of lines, and each would be asked for each.
    """
    named = _by_extra(lines)
    return [lines[place] for place in sorted((*named.get(extra, ()), *named[""]))]


@lru_cache(maxsize=64)
def _by_extra(lines: tuple[str, ...]) -> dict[str, list[int]]:
    """Places of lines by the extras that they compare with a name; "": those that ask for extras in another way."""
    found: dict[str, list[int]] = {"": []}
    for place, line in enumerate(lines):
        marker = line.partition(";")[2]
        names = {normalise(one or other) for one, other in _EXTRA_NAMED.findall(marker)}
        if "" in names or marker.count("extra") != len(_EXTRA_NAMED.findall(marker)):
            names = {""}
        for name in names:
            found.setdefault(name, []).append(place)
    return found
