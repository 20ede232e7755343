"""What can stop `sync`."""

from __future__ import annotations

from stackfix.errors import AnswerIsNo, BadInput, Unreachable


class LockDoesNotFit(AnswerIsNo):
    """The lock is for another Python or platform than the environment's."""

    reference = "lock-does-not-fit"

    def __init__(self, *, lock: str, locked_for: str, environment: str) -> None:
        super().__init__(lock, locked_for, environment)
        self.lock, self.locked_for, self.environment = lock, locked_for, environment

    def what(self) -> str:
        return f"{self.lock} is locked for {self.locked_for}; the environment is {self.environment}"

    def next_step(self) -> str | None:
        return "name the environment with --prefix DIR or --python EXE, or lock for it with --python and --platform"


class NoFileFits(BadInput):
    """A package of the lock has no file for the environment, which the lock does not leave out."""

    def __init__(self, where: str, *, project: str, environment: str) -> None:
        super().__init__(where, f"has no file for {environment}", "lock for it, with --python and --platform")
        self.project, self.environment = project, environment


class InstallFailed(Unreachable):
    """The installer ended with an error of its own, which it has shown."""

    reference = "install-failed"
