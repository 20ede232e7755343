"""Lines of a requirements.in as pip reads them: continued, comments gone, ${VARIABLES} replaced."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from stackfix.errors import BadInput
from stackfix.quick import dataclass

COMMENT = re.compile(r"(?:^|\s+)#.*$")
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z0-9_]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalLine:
    """One line that says something. `number` is that of its first physical line, from 1."""

    number: int
    requirement: str                # what stands before the first option; "" for a line of options
    options: tuple[str, ...]        # shell words


def logical_lines(text: str, environ: Mapping[str, str], name: str) -> Iterator[LogicalLine]:
    """The lines of `text`. Raises BadInput naming `name` and the line, and never shows what a variable holds."""
    for number, line in joined_lines(text):
        bare = COMMENT.sub("", line).strip()
        if not bare:
            continue
        expanded = expand(bare, environ, f"{name} line {number}")
        words = expanded.split(" ")
        # Only options are shell words: quotes in a marker must stay
        first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
        try:
            options = shlex.split(" ".join(words[first:]))
        except ValueError as error:
            raise BadInput(f"{name} line {number}", f"cannot be split into words: {error}") from error
        yield LogicalLine(number=number, requirement=" ".join(words[:first]).strip(), options=tuple(options))


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number, line) with continued lines joined. As in pip, a comment line ends a continued one."""
    first, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        is_comment = COMMENT.match(line) is not None
        if line.endswith("\\") and not is_comment:
            first = first if parts else number
            parts.append(line.strip("\\"))
        elif parts:
            yield first, "".join([*parts, " " + line if is_comment else line])
            parts = []
        else:
            yield number, line
    if parts:
        yield first, "".join(parts)


def expand(line: str, environ: Mapping[str, str], where: str) -> str:
    """`line` with every `${NAME}` replaced. pip leaves an unset one as it stands, which nothing can then read."""
    def value(match: re.Match[str]) -> str:
        found = environ.get(match["name"])
        if not found:
            raise BadInput(where, f"the environment variable {match['name']} is not set",
                           f"set {match['name']}, or write its value")
        return found

    return VARIABLE.sub(value, line)
