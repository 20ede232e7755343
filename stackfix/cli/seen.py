"""What a run read that its answer rests on, noted as it is read: `lock_answer` keeps it beside the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.sources.records import Answered

ReadText = Callable[[Path], "str | None"]


class Seen:
    """Notes of one run."""

    def __init__(self) -> None:
        self.began = time.time()
        self.texts: dict[str, bool] = {}            # path as it was opened -> whether it was there
        self.folders: list[str] = []                # whose files count, told by what the system says of them
        self.answers: list[Answered] = []           # of servers
        self.indexes: tuple[str, ...] = ()          # base addresses in their order, without credentials
        self.unkept: str | None = None              # why the answer cannot be given again without deciding it

    def text(self, path: Path, *, there: bool | None = None) -> None:
        """Notes a file whose text counts, or that it is not there."""
        self.texts[str(path)] = path.is_file() if there is None else there

    def folder(self, path: Path) -> None:
        """Notes a folder of which every file counts, or that it is not there."""
        if path.is_dir():
            self.folders.append(str(path))
        else:
            self.text(path)

    def reading(self, read: ReadText) -> ReadText:
        """`read`, noting what it is asked for."""
        def noted(path: Path) -> str | None:
            text = read(path)
            self.text(path, there=text is not None)
            return text

        return noted

    def answered(self, answers: Iterable[Answered]) -> None:
        """Notes what servers answered."""
        self.answers += answers

    def cannot_be_kept(self, reason: str) -> None:
        """Notes that the answer rests on something that is not noted, or that changes without a sign."""
        self.unkept = self.unkept or reason
