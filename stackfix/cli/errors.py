"""An error with the place it happened in, where a command works on several."""

from __future__ import annotations

from stackfix.errors import StackfixError


class InStack(StackfixError):
    """`fault` happened to one stack of a project file; it keeps its code and exit status."""

    def __init__(self, *, stack: str | None, file: str, fault: StackfixError) -> None:
        super().__init__(stack, file, fault)
        self.stack, self.file, self.fault = stack, file, fault

    def where(self) -> str:
        """`stack train of stackfix.toml`; of a file with one stack its name alone."""
        return f"stack {self.stack} of {self.file}" if self.stack is not None else self.file

    def what(self) -> str:
        return f"{self.where()}: {self.fault.what()}"
