"""The lines of a journal. `inspect.plain` writes and reads them, one record a line."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.plan.records import Node, Plan

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The first line: what is to be done. Nothing in the environment has changed yet."""

    format: int                     # FORMAT of the version that wrote it
    version: str                    # of stackfix
    number: int
    started: str                    # UTC, ISO 8601
    host: str
    pid: int
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """All that the steps bring lies in `new/`, checked and on the disk: the rest needs no network and no installer."""

    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of what a move brings in."""

    path: str                       # below the move's own path; "" is that path
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One rename between the environment and the transaction's folder. `store` tells whether it is made."""

    kind: str                       # "aside": path -> store; "place": store -> path
    path: str                       # in the environment, links resolved
    store: str                      # below the transaction's folder: kept/… or new/…
    entries: tuple[Entry, ...] = ()  # of "place": what is brought in
    cached: bool = False            # of "place": whether a __pycache__ was beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """The moves of one step, or of a part of it, before the first of them is made."""

    step: int
    part: str                       # "remove" or "add"
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A folder is moved name by name, as its file system cannot rename it (overlayfs): it may be in both places."""

    path: str
    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """All steps are made, and the environment is as planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """From here on the moves are taken back, the last one first."""

    forced: bool


Line = Begin | Staged | Doing | Expanded | Committed | Undoing
