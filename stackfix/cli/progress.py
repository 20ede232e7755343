"""A progress bar on stderr, shown once work has taken a moment; nothing off a terminal, with --json or with -q."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from stackfix.cli.terminal import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

MOMENT = 0.5            # seconds: rich is imported only where somebody would otherwise look at nothing


class Bars:
    """Bars of one command. Every method may be called from any thread; a context manager that clears them."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and is_terminal(sys.stderr)
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Clears the bars; none is shown any more."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
            self._progress, self._shown = None, False

    def index(self, done: int, asked: int, /) -> None:
        """`done` of `asked` pages and metadata are there."""
        self._update("package index", done, asked)

    def download(self, file: str, done: int, total: int | None, /) -> None:
        """`done` of `total` bytes of `file` are there."""
        self._update(file, done, total)

    def packages(self, done: int, total: int, /) -> None:
        """`done` of `total` packages of channels are there."""
        self._update("packages of channels", done, total)

    def hashing(self, done: int, total: int, /) -> None:
        """`done` of `total` installed bytes are hashed."""
        self._update("hashing", done, total)

    def _update(self, what: str, done: int, total: int | None) -> None:
        if not self._shown or time.monotonic() - self._since < MOMENT:
            return
        with self._lock:
            if self._is_over():
                return
            progress = self._progress or self._open()
            if what not in self._tasks:
                self._tasks[what] = progress.add_task(what, total=total)
            progress.update(self._tasks[what], completed=done, total=total)

    def _is_over(self) -> bool:
        """Whether the work ended while another thread waited for the lock."""
        return not self._shown

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import Progress

        from stackfix.cli.terminal import colour_wanted

        console = Console(stderr=True, no_color=not colour_wanted())
        self._progress = Progress(console=console, transient=True)
        self._progress.start()
        return self._progress
