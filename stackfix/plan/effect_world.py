"""What a plan asks of the disk; `cli` fills it."""

from __future__ import annotations

from typing import Protocol

from stackfix.errors import StackfixError
from stackfix.plan.records import Node, Plan


class Rights(Protocol):
    """Whether a plan may be made at all, by whoever asks for it."""

    def why_not(self, plan: Plan) -> StackfixError | None:
        """What would stop its first step; None where nothing would."""
        ...


class Places(Protocol):
    """Files of the environment. Paths are relative to the prefix; nothing is changed."""

    def node(self, path: str) -> Node:
        """What is at a path, without following a link at its end. Raises Unreachable for a file that is closed."""
        ...

    def text(self, path: str) -> str | None:
        """The text of a file; None where there is none, or none that is text."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """Names in a folder, sorted; none where there is no folder."""
        ...
