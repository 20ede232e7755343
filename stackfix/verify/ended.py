"""How a child process ended, and what it said before. The other end of the messages is `child_talk`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Shape = Mapping[str, type | tuple[type, ...]]
NUMBER = (int, float)
ROWS: Mapping[str, Shape] = {       # of lists in an answer
    "devices": {"name": str, "capability": str},
    "raised": {"type": str, "text": str},
    "accuracy": {"of": str, "largest_error": NUMBER, "tolerance": NUMBER, "relative": bool, "nan": int,
                 "infinite": int},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One child, from its start to its end."""

    answer: dict[str, Any] | None   # None: it died, or was ended, before
    stage: str | None               # the last that it said it was about to do
    mapped: tuple[str, ...]         # files of the GPU stack, as it last saw them
    status: int                     # as subprocess has it: -11 for SIGSEGV
    timed_out: bool
    left_behind: int | None         # process id of one that does not even die of SIGKILL
    said: str                       # the end of what it and its packages printed
    seconds: float


def messages(output: str, mark: str) -> Iterator[dict[str, Any]]:
    """What the child told us, among whatever else was printed before it began."""
    for line in output.split("\n"):
        if not line.startswith(f"{mark} "):
            continue
        try:
            message = json.loads(line[len(mark) + 1:])
        except ValueError:      # cut off in the middle
            continue
        if isinstance(message, dict):
            yield message


def is_sound(answer: object) -> bool:
    """Whether an answer has the shapes that ours have: a package might write one, too."""
    if not isinstance(answer, dict):
        return False
    failed = answer.get("failed", {"call": "", "code": 0})
    return (has_types(failed, {"call": str, "code": int})
            and ("devices" not in answer or has_types(answer, {"cuda": str}))
            and all(isinstance(rows := answer.get(key, []), list) and all(has_types(each, shape) for each in rows)
                    for key, shape in ROWS.items()))


def has_types(row: object, shape: Shape) -> bool:
    return isinstance(row, dict) and all(isinstance(row.get(key), kind) for key, kind in shape.items())


def ended(output: str, mark: str, *, status: int, timed_out: bool, left_behind: int | None, said: str,
          seconds: float) -> Ended:
    """The record of what a child printed on its standard output, and of its end."""
    answer: dict[str, Any] | None = None
    stage: str | None = None
    mapped: tuple[str, ...] = ()
    for message in messages(output, mark):
        found = message.get("mapped")
        mapped = tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else mapped
        if isinstance(message.get("at"), str):
            stage = message["at"]
        if is_sound(message.get("answer")):
            answer = message["answer"]
    return Ended(answer=answer, stage=stage, mapped=mapped, status=status, timed_out=timed_out,
                 left_behind=left_behind, said=said, seconds=seconds)
