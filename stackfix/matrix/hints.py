"""What to fetch first. Imports nothing: it runs before everything else is there."""

from __future__ import annotations

from collections.abc import Mapping


def follow(closures: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> tuple[str, ...]:
    """The names and what their closures usually hold, each once: a hint, never a decision."""
    hinted: dict[str, None] = {}
    waiting = list(reversed(names))
    while waiting:
        name = waiting.pop()
        if name not in hinted:
            hinted[name] = None
            waiting.extend(reversed(closures.get(name, ())))
    return tuple(hinted)
