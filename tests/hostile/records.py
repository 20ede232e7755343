"""Scenarios: what a server does, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.hostile.measured import Ended
from tests.hostile.stage import Stage

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One error and no lockfile."""

    status: int = 3
    says: tuple[str, ...] = ("demo",)       # what the error names


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """The safe choice."""

    pins: tuple[str, ...] = ("demo==1.0",)
    says: tuple[str, ...] = ()              # what is told on stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One attack on a lock of torch 2.3 beside the project demo, whose sound release is 1.0."""

    name: str
    does: Callable[[Stage], None]
    comes: Refused | Locked
    absent: tuple[str, ...] = ()            # what may stand in no lockfile
    peak: int = 250 * MEGABYTE              # the most memory
    hurry: float = 1                        # how many times faster the client's patience ends
    limits: Mapping[str, int] = field(default_factory=dict)   # what a lock may read in all, where it is little
    runs: int = 1                           # the last one is judged
    also: Callable[[Stage, Ended], None] | None = None
