"""`lock --check`: a pin that its own hashes contradict is not kept, so that the line that was changed is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.cli.lock_kept import Kept
    from stackfix.resolve.records import Lock
    from stackfix.write.records import Difference, PlannedFile

Decided = tuple["Lock", tuple["PlannedFile", ...]]


def check_lock(
    directory: Path, decide: Callable[[Kept], Decided], kept: Kept, inputs: Iterable[Path],
) -> tuple[Decided, tuple[Difference, ...]]:
    """What would be decided, and where the files differ from it.

    A lock keeps the pins of the files that are there. One of them that was changed by hand would so be taken for
    right, and everything else for wrong. Where the hashes below a pin are all of another file, the pin is decided
    anew: as other files of the lock have it, or freshly, whichever is nearer to the files.
    """
    from stackfix.write.compare import compare
    from stackfix.write.stated import contradicted, read_stated

    found, read = decide(kept), tuple(inputs)
    differences = compare(directory, found[1], read)
    if not differences:
        return found, differences
    doubtful = contradicted(found[0], read_stated(directory, (file.path for file in found[1])))
    if not doubtful:
        return found, differences
    tries = [kept.without(dict.fromkeys(doubtful))]
    if any(doubtful.values()):
        tries.insert(0, kept.without({key: pins[0] if pins else None for key, pins in doubtful.items()}))
    again = [decide(other) for other in tries]
    compared = [(one, compare(directory, one[1], read)) for one in again]
    return min(compared, key=lambda pair: len(pair[1]))
