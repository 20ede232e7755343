"""Names by which a torch minor can be told: what an extension asks for tells for which it was compiled.

Source: read from the torch wheels of the package index, 1.13.1 to 2.15.0: first and last minor that exports the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Mark(NamedTuple):
    """Names of one form, and the minors of torch that export them; None: from the first, or to the newest read."""

    form: str                       # regular expression
    first: tuple[int, int] | None
    last: tuple[int, int] | None


MARKS = (
    Mark(r"_ZN3c104cuda9SetDeviceEi$", (2, 1), (2, 2)),
    Mark(r"_ZN3c104cuda9SetDeviceEa$", (2, 3), (2, 7)),
    Mark(r"_ZN3c104cuda9SetDeviceEab$", (2, 8), None),
    Mark(r"_ZN3c104cuda29c10_cuda_check_implementationE\w+ib$", (2, 0), (2, 9)),
    Mark(r"_ZN3c104cuda29c10_cuda_check_implementationE\w+jb$", (2, 10), (2, 13)),
    Mark(r"_ZN\w*23materialize_cow_storage", (2, 3), (2, 12)),
    Mark(r"_ZN2at4_ops\w+(?:N3c10|NS\w?_)8optional", None, (2, 1)),     # std is St, and never abbreviated further
    Mark(r"_ZN2at4_ops\w+St8optional", (2, 2), None),
    Mark(r"_ZNK3c105Error4whatEv$", (2, 4), None),
    Mark(r"torch_(?:new_stable_ivalue|exception_get_what\w*)$", (2, 13), None),
)
SAME_FUNCTION = (
    ("_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEa", "_ZN3c104cuda9SetDeviceEab"),
)


class Minors(NamedTuple):
    """A range of torch minors; None: open."""

    first: tuple[int, int] | None
    last: tuple[int, int] | None
    names: tuple[str, ...]          # that tell it, the narrowest first

    def __str__(self) -> str:
        first, last = (None if each is None else f"{each[0]}.{each[1]}" for each in (self.first, self.last))
        if first is None or last is None:
            return f"{last} or older" if last else f"{first} or newer"
        return first if first == last else f"{first} to {last}"

    def admits(self, minor: tuple[int, int]) -> bool:
        """Whether a minor lies in the range."""
        return (self.first is None or minor >= self.first) and (self.last is None or minor <= self.last)


def minors_of(names: Iterable[str]) -> Minors | None:
    """The minors that export all of these names; None where no name tells, or where they contradict each other."""
    marked = [(mark, name) for name in names for mark in MARKS if re.match(mark.form, name)]
    first = max((mark.first for mark, _ in marked if mark.first is not None), default=None)
    last = min((mark.last for mark, _ in marked if mark.last is not None), default=None)
    if not marked or (first is not None and last is not None and first > last):
        return None
    telling = [name for mark, name in marked if first in {mark.first} - {None} or last in {mark.last} - {None}]
    return Minors(first, last, tuple(dict.fromkeys(telling)))


def alternatives(name: str) -> tuple[str, ...]:
    """Other names of the same function in other minors."""
    return next((tuple(each for each in names if each != name) for names in SAME_FUNCTION if name in names), ())
