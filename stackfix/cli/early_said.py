"""What an early answer says, on the streams that the whole way says it on, and in the same bytes."""

from __future__ import annotations

import os
import sys

from stackfix.cli.early_state import Changed

TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Iterable


def is_terminal(stream: object) -> bool:
    """As cli.terminal has it."""
    return stream is not None and bool(stream.isatty())     # type: ignore[attr-defined]


def refuse_unlike(stream: object, text: str) -> None:
    """Raises Changed, or ValueError, for text that click would write in another way than the stream itself."""
    if not text.isascii() and stream is not None and str(getattr(stream, "encoding", "")).lower() != "utf-8":
        raise Changed
    text.encode()


def say(said: Iterable[tuple[bool, str]], status: int) -> int:
    """Says each line on standard error (True) or output; gives the exit status, 141 where nobody reads any more."""
    try:
        for to_err, text in said:
            stream = sys.stderr if to_err else sys.stdout
            if stream is not None:
                stream.write(f"{text}\n")
                stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write(f"error: standard output: {error.strerror or error}\n")
        return 3
    return status
