"""Of which folder a venv's activation scripts are: one that was copied or moved still has those of the old place."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator

from stackfix.diagnose.plumbing_scripts import statements

NAME = "VIRTUAL_ENV"
# Found by the script itself, or by the shell when it is sourced
COMPUTED = re.compile(r"[$`(]")
ASSIGNED = re.compile(rf"(?:export\s+|setenv\s+|set\s+-gx\s+){NAME}[=\s]|{NAME}=")


def other_home(text: str, is_here: Callable[[str], bool]) -> str | None:
    """The folder that a script activates in place of this one; None where it is this one, or where the script finds it.

    is_here: whether a folder is that of the environment, whatever links lead there
    """
    stated = [readings for statement in assigned(text) if (readings := tuple(readings_of(statement)))]
    if not stated or any(is_here(each) for readings in stated for each in readings):
        return None
    return stated[-1][0]


def finds_itself(text: str) -> bool:
    """Whether a script works out where it lies, as those of a relocatable venv do: plain sh cannot tell it that."""
    return not any(tuple(readings_of(each)) for each in assigned(text))


def assigned(text: str) -> Iterator[str]:
    """Statements that give VIRTUAL_ENV a value."""
    for line in text.splitlines():
        if NAME in line and not line.lstrip().startswith("#"):
            yield from (each for each in statements(line.strip()) if ASSIGNED.match(each))


def readings_of(statement: str) -> Iterator[str]:
    """The folder that an assignment names, as each shell would read its quotes; none where it is worked out."""
    raw = ASSIGNED.sub("", statement, count=1).strip()
    if COMPUTED.search(re.sub(r"^'.*'$", "", raw)):
        return
    try:
        words = shlex.split(raw)
    except ValueError:
        words = []
    fish = re.sub(r"\\([\\'])", r"\1", raw[1:-1]) if raw[:1] == raw[-1:] == "'" else None
    for each in (*words[:1], fish, (words[0] if words else raw).replace("\\!", "!")):
        if each is not None and posixpath.isabs(each):
            yield each
