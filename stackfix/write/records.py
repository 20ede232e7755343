"""Lockfiles as records: what is planned, what a line says, what differs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One lockfile, whole. `path` is a bare file name below the output folder."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One pin of a requirements lock. Exactly one of `version` and `url` is set."""

    name: str                       # normalised
    version: str | None             # of `name==version`
    url: str | None                 # of `name @ url`
    sha256: tuple[str, ...]         # sorted, at least one
    extras: tuple[str, ...] = ()
    via: tuple[str, ...] = ()       # what `# via` names, sorted
    marker: str | None = None       # only other tools' locks have one: a lock of ours is for one target
    line: int = field(default=0, compare=False)  # where it was read; 0 for one that was not read from a file


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsLock:
    """A requirements lock. `target` and `second_step` are None where the file does not say."""

    target: tuple[str, str] | None  # ("3.11", "linux-64")
    second_step: str | None         # bare name of the file that must be installed after this one
    is_second_step: bool
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One line that is not as it should be. `found` None: missing; `expected` None: too much."""

    path: str
    line: int | None                # in the file as it is, from 1; None when there is no file
    found: str | None
    expected: str | None

    def describe(self) -> str:
        """`requirements.txt:12: found 'x', expected 'y'`."""
        if self.line is None:
            return f"{self.path}: missing"
        where = f"{self.path}:{self.line}"
        if self.found is None:
            return f"{where}: missing {self.expected!r}"
        if self.expected is None:
            return f"{where}: unexpected {self.found!r}"
        return f"{where}: found {self.found!r}, expected {self.expected!r}"
