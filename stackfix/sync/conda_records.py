"""A sync of a conda lockfile, planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.sync.records import Change, CondaInstalled, Interrupted, Step
from stackfix.write.records import CondaLockFile, CondaPin


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaSync:
    """What to do, read whole before anything is done."""

    lock: CondaLockFile
    prefix: Path
    pins: tuple[CondaPin, ...]
    steps: tuple[Step, ...]         # of pip: entries of the lock, then its second step
    python: str | None              # the minor that will be there
    installed: Mapping[str, CondaInstalled]
    changes: tuple[Change, ...]     # of packages of channels
    interrupted: Interrupted | None     # what a killed sync was at work on
    notes: tuple[str, ...]          # to be said before anything is done

    @property
    def name(self) -> str:
        """For messages."""
        return Path(self.lock.path).name
