"""The error tree. Imports nothing of ours.

    StackfixError
    ├── AnswerIsNo          exit 1: well asked, and the answer is no
    ├── BadInput            exit 2: malformed use, file or value
    └── Unreachable         exit 3: something needed could not be read or written

An error carries fields, not sentences; the text is made when it is shown. `cli` alone catches the root; whatever
else is raised is a bug and keeps its traceback.
"""

from __future__ import annotations

from typing import ClassVar

LONGEST = 600                       # letters of each part of a message about an input


class StackfixError(Exception):
    """Root. `reference` is a stable kebab-case code, shown to users and put into `--json`.

    Subclasses define `what()` (one line: the thing and the reason) and may define `next_step()` (one line: what
    the user can do about it).
    """

    reference: ClassVar[str] = "stackfix-error"
    exit_status: ClassVar[int] = 3

    def what(self) -> str:
        """One line that names the thing and the reason."""
        return " ".join(str(part) for part in self.args)

    def next_step(self) -> str | None:
        """One line that says what to do, or None when nothing useful can be said."""
        return None

    def __str__(self) -> str:
        return self.what()


class AnswerIsNo(StackfixError):
    """Well asked, and the answer is no: no such version, no consistent stack, lock out of date."""

    reference = "no"
    exit_status = 1


class BadInput(StackfixError):
    """Malformed use or input: an option, a requirements line, a TOML file, a matrix row."""

    reference = "bad-input"
    exit_status = 2

    def __init__(self, thing: str, reason: str, hint: str | None = None) -> None:
        super().__init__(thing, reason, hint)
        self.thing, self.reason, self.hint = thing, reason, hint

    def what(self) -> str:
        return f"{_cut(self.thing)}: {_cut(self.reason)}"

    def next_step(self) -> str | None:
        return None if self.hint is None else _cut(self.hint)


def _cut(text: str) -> str:
    """A text that repeats somebody's input, at a length that can be read: both ends of a long one."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST // 2]} […] {text[-LONGEST // 2:]}"


class Unreachable(StackfixError):
    """Something needed could not be read or written: network, index, cache, disk."""

    reference = "unreachable"
    exit_status = 3

    def __init__(self, thing: str, reason: str, hint: str | None = None) -> None:
        super().__init__(thing, reason, hint)
        self.thing, self.reason, self.hint = thing, reason, hint

    def what(self) -> str:
        return f"{self.thing}: {self.reason}"

    def next_step(self) -> str | None:
        return self.hint
