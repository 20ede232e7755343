"""Sets of releases as text: open intervals, so that a new release changes no line of a name that lives on.

`2.3-` is from 2.3 to the newest, `2.1-2.2` ends, `2.3` is one release that is not the newest; several stand with a
comma between them, oldest first. A set is a number: bit i stands for the i-th release, oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence


def render_set(mask: int, releases: Sequence[str]) -> str:
    """The text of a set that is not empty."""
    parts, newest, place = list[str](), len(releases) - 1, 0
    if mask <= 0 or mask >> len(releases):
        raise ValueError(f"{mask:#x} is no set of {len(releases)} releases")
    while mask >> place:
        if not mask >> place & 1:
            place += 1
            continue
        first = place
        while mask >> place + 1 & 1:
            place += 1
        if place == newest:
            parts.append(f"{releases[first]}-")
        else:
            parts.append(releases[first] if first == place else f"{releases[first]}-{releases[place]}")
        place += 1
    return ",".join(parts)


def parse_set(text: str, releases: Sequence[str]) -> int:
    """The set that a text stands for. Raises ValueError for any text that `render_set` does not write."""
    places, mask = {release: place for place, release in enumerate(releases)}, 0
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in places or (last and last not in places):
            raise ValueError(f"{part[:40]!r} is no interval of {releases[0]} to {releases[-1]}")
        end = places[last or (releases[-1] if dash else first)]
        mask |= (1 << end + 1) - (1 << places[first])
    if mask <= 0 or render_set(mask, releases) != text:
        raise ValueError(f"{text[:80]!r} is not how a set of releases is written")
    return mask


def make_room(mask: int, place: int) -> int:
    """The set after a release was put into the list at `place`; it does not hold that one."""
    low = mask & (1 << place) - 1
    return low | mask - low << 1


__all__ = ["make_room", "parse_set", "render_set"]
