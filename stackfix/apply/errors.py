"""What can stop a change of an environment, or its undoing."""

from __future__ import annotations

import shlex

from stackfix.apply.records import Successor
from stackfix.errors import AnswerIsNo, BadInput, Unreachable

SHOWN = 5                       # paths in one line; the rest is counted


class LeavesPrefix(BadInput):
    """A path of a plan, a link in its way, or a file of a wheel leads out of the environment."""

    reference = "leaves-prefix"


class ExternallyManaged(BadInput):
    """PEP 668: the files of this Python belong to a package manager."""

    reference = "externally-managed"


class NotOurs(Unreachable):
    """The environment, or something in it that would change, belongs to somebody else."""

    reference = "not-ours"


class CannotWrite(Unreachable):
    """A folder that would change is not ours to write, or is mounted read-only."""

    reference = "cannot-write"


class NoSpace(Unreachable):
    """The file system has too little room for all steps."""

    reference = "no-space"


class Busy(Unreachable):
    """Another run has this environment."""

    reference = "environment-busy"


class StepFailed(Unreachable):
    """A step could not be made; what had been changed was taken back."""

    reference = "step-failed"


class NotTakenBack(Unreachable):
    """An undo could not finish. The copies are kept, and the message says where."""

    reference = "not-taken-back"


class JournalDamaged(Unreachable):
    """The journal of a transaction cannot be read as what was written."""

    reference = "journal-damaged"


class Unfinished(AnswerIsNo):
    """An earlier transaction was stopped in the middle."""

    reference = "unfinished-repair"

    def __init__(self, prefix: str, what: str) -> None:
        super().__init__(prefix, what)
        self.prefix, self.detail = prefix, what

    def what(self) -> str:
        return f"{self.prefix}: {self.detail}"

    def next_step(self) -> str | None:
        prefix = shlex.quote(self.prefix)
        return f"`stackfix repair --prefix {prefix}` completes it, `stackfix undo --prefix {prefix}` takes it back"


class NothingToUndo(AnswerIsNo):
    """There is no transaction in this environment."""

    reference = "nothing-to-undo"

    def what(self) -> str:
        return f"{self.args[0]}: no repair is recorded there"


class PathsDiffer(AnswerIsNo):
    """Paths are not as they should be. `differences`: (path, what is different)."""

    reference = "paths-differ"
    said = "is not as expected"
    hint: str | None = None

    def __init__(self, prefix: str, differences: tuple[tuple[str, str], ...]) -> None:
        super().__init__(prefix, differences)
        self.prefix, self.differences = prefix, differences

    def what(self) -> str:
        shown = "; ".join(f"{path} {how}" for path, how in self.differences[:SHOWN])
        more = len(self.differences) - SHOWN
        return f"{self.prefix} {self.said}: {shown}" + (f"; and {more} more" if more > 0 else "")

    def next_step(self) -> str | None:
        return self.hint


class Drifted(PathsDiffer):
    """The environment is not what the plan was made for."""

    reference = "environment-drifted"
    said = "has changed since the plan was made"
    hint = "nothing was changed; make the plan again"


class ChangedSince(PathsDiffer):
    """Something that a repair wrote was changed by somebody since."""

    reference = "changed-since-repair"
    said = "was changed after the repair"
    command = "stackfix undo"

    def next_step(self) -> str:
        return f"nothing was undone; look at these; `{self.command} --force` keeps what was changed aside"


class ReplacedSince(ChangedSince):
    """Another release was installed over one that a repair had brought: that one is not there to be taken back."""

    reference = "replaced-since-repair"

    def __init__(self, prefix: str, differences: tuple[tuple[str, str], ...], later: tuple[Successor, ...]) -> None:
        super().__init__(prefix, differences)
        self.later = later

    def what(self) -> str:
        told = "; ".join(f"{each.project} {each.version} was installed after the repair, over its {each.ours} "
                         f"({each.info})" for each in self.later)
        return f"{self.prefix}: {told}" if not self.differences else f"{super().what()}; and {told}"

    def next_step(self) -> str:
        forget = f"nothing was undone; `{self.command} --forget` keeps it, and ends the record of the repair"
        stuck = next((each for each in self.later if each.stuck), None)
        if stuck is not None:
            return f"{forget}; it cannot be set aside: {stuck.stuck}"
        back = ", ".join(dict.fromkeys(name for each in self.later for name in each.replaced)) or "what was there"
        return f"{forget}; `{self.command} --force` sets it aside whole, and puts back {back}"
