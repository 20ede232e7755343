"""How much of markers a lock may have: each is read and asked for each target, and a lock is anybody's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stackfix.errors import BadInput

LONGEST = 16_384                # characters of one; uv's longest of vllm, jax and transformers[all] has 260
MOST_MARKERS = 262_144          # characters of a lock's different ones together; of vllm's 258 packages 3,400


def check_markers(document: Mapping[str, Any], name: str) -> None:
    """Raises BadInput where a lock has more of markers than any has. What is no text is refused where it is read."""
    requires = document.get("requires-python")
    if isinstance(requires, str) and len(requires) > LONGEST:
        raise too_long(f"{name} requires-python", requires)
    together, seen = 0, set[str]()
    for where, marker in markers_of(document):
        if len(marker) > LONGEST:
            raise too_long(f"{name} {where}", marker)
        if marker not in seen:
            seen.add(marker)
            together += len(marker)
        if together > MOST_MARKERS:
            raise BadInput(f"{name} {where}", f"the markers up to here have more than {MOST_MARKERS} characters"
                           " together, the same ones counted once: no lock has so many", "lock again")


def too_long(where: str, text: str) -> BadInput:
    """The refusal of one text."""
    return BadInput(where, f"has {len(text)} characters: no lock has more than {LONGEST} there", "lock again")


def markers_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(the way to it, marker) of each that is text: the file's own, then those of its packages."""
    environments, packages = document.get("environments"), document.get("packages")
    for index, marker in enumerate(environments if isinstance(environments, list) else ()):
        if isinstance(marker, str):
            yield f"environments[{index}]", marker
    for index, package in enumerate(packages if isinstance(packages, list) else ()):
        if isinstance(package, dict) and isinstance(marker := package.get("marker"), str):
            yield f"packages[{index}] marker", marker
