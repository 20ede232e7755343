"""What the report is told: plain records, which `inspect.plain` writes as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.plan.records import Plan

# What became of a transaction. "running": another process is at it right now.
STATES = ("preparing", "changing", "committed", "undoing", "clearing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Something that was moved aside, or could not be put back."""

    path: str                       # where it belongs, relative to the prefix
    copy: str                       # where it lies, relative to the prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """A transaction that is over, and whose folder cannot be deleted. Nothing in the environment hangs on it."""

    path: str                       # relative to the prefix
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running process with files of the environment mapped that change: it goes on with the old ones."""

    pid: int
    command: str
    files: tuple[str, ...]          # absolute


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A plan that was made."""

    prefix: str
    number: int | None              # of the transaction; None: the plan had no step, and there is none
    folder: str | None              # of the transaction, relative to the prefix
    actions: tuple[str, ...]        # ids
    made: tuple[str, ...]           # paths that were brought in, folders as one
    kept: tuple[Kept, ...]          # what was there before
    processes: tuple[Process, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A transaction that was taken back."""

    prefix: str
    number: int | None              # None: only remains of an earlier run were cleared
    actions: tuple[str, ...]
    removed: tuple[str, ...]        # paths that it had brought in
    restored: tuple[str, ...]       # paths that are there again
    kept: tuple[Kept, ...]          # with force: what was changed since, and lies there now
    gone: tuple[str, ...] = ()      # paths that it had brought in, and that somebody else had taken away already
    left: tuple[str, ...] = ()      # folders that it had made, and that stay, for others have something in them
    remains: tuple[Remains, ...] = ()   # what could not be deleted in the folder of transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A release that was installed over one of a transaction, with all that is its: nothing of it may stay."""

    project: str
    version: str                    # of what is there now
    ours: str                       # version that the transaction had brought
    replaced: tuple[str, ...]       # releases that would be put back: ("demo 1.0",)
    info: str                       # its metadata, relative to the prefix
    paths: tuple[str, ...] = ()     # the metadata last: without it the others would not be known again
    stuck: str | None = None        # why it cannot be set aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A transaction whose record was ended; the environment stays as it is."""

    prefix: str
    number: int
    actions: tuple[str, ...]
    dropped: tuple[str, ...]        # paths of which the copies from before it were deleted
    remains: tuple[Remains, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A transaction that was stopped in the middle, or runs right now."""

    prefix: str
    number: int | None              # None: only remains to be cleared
    state: str                      # one of STATES, without "committed"
    started: str | None             # UTC, ISO 8601
    host: str | None
    pid: int | None
    actions: tuple[str, ...]        # summaries
    touched: bool                   # whether the environment may have been changed
    can_complete: bool
    why_not: str | None
    running: str | None             # who holds the lock: "process 12 on box"; None: nobody who is alive


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """One of which nobody can tell what it did."""

    number: int
    folder: str
    reason: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One that is finished and can be undone; the last one first."""

    number: int
    folder: str
    started: str
    plan: Plan
    actions: tuple[str, ...]        # summaries
    kept: tuple[Kept, ...]
    made: tuple[str, ...]
