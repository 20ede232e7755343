"""What our own activation scripts do, as lines of theirs say it: code with loops in it is nothing to read from outside.

    # stackfix sets LD_LIBRARY_PATH first ["lib/python3.11/site-packages/nvidia/nvjitlink/lib"]
    # stackfix sets LD_LIBRARY_PATH without "/opt/cuda-12.0/lib64"
    # stackfix sets PYTHONNOUSERSITE value "1"

In brackets: below the prefix, wherever that has been moved to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

MARK = re.compile(r"# stackfix sets (?P<name>[A-Za-z_]\w*) (?P<what>first|without|value) (?P<element>.+)")
OWN_WORK = re.compile(r"_stackfix_", re.IGNORECASE)     # names of the variables with which our scripts work
# What may count in a comment of some shell, csh's history among it
ESCAPED = re.compile("[!'`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What becomes of one variable at activation."""

    name: str
    first: tuple[str, ...] = ()     # put before all others
    without: tuple[str, ...] = ()   # elements that go
    value: str | None = None        # in place of what it was


def mark_lines(marks: Iterable[Mark], prefix: str) -> Iterator[str]:
    """The lines that say it."""
    for each in marks:
        parts = {"first": each.first, "without": each.without, "value": () if each.value is None else (each.value,)}
        for what, elements in parts.items():
            for element in elements:
                below = element.startswith(f"{prefix}/")
                text = json.dumps([element.removeprefix(f"{prefix}/")] if below else element)
                yield f"# stackfix sets {each.name} {what} " + ESCAPED.sub(lambda at: f"\\u{ord(at[0]):04x}", text)


def marks_in(lines: Iterable[str], prefix: str) -> tuple[Mark, ...]:
    """What the lines of a script say; what somebody has changed beyond what can be read is left out."""
    found: dict[str, Mapping[str, dict[str, None]]] = {}
    for line in lines:
        match = MARK.fullmatch(line.strip())
        element = element_of(match["element"], prefix) if match else None
        if match and element is not None:
            parts = found.setdefault(match["name"], {"first": {}, "without": {}, "value": {}})
            parts[match["what"]].setdefault(element)
    return tuple(Mark(name=name, first=tuple(parts["first"]), without=tuple(parts["without"]),
                      value=next(reversed(parts["value"]), None)) for name, parts in found.items())


def element_of(text: str, prefix: str) -> str | None:
    """The element that a line names; None where that is none."""
    try:
        known = json.loads(text)
    except ValueError:
        return None
    if isinstance(known, list) and len(known) == 1 and isinstance(known[0], str):
        return f"{prefix}/{known[0]}"
    return known if isinstance(known, str) else None
