"""What cannot be told of the imports of an environment without running them."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.imports import OPENED_BY_CODE
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided

LOADER_WORDS = ("ctypes", "dlopen", "CDLL")


def find_undecided_imports(view: View) -> Iterator[Undecided]:
    """What cannot be told of the imports of this environment."""
    if view.environment.python is None:
        yield Undecided(subject="imports", reason="the prefix has no Python: what an import loads cannot be told")
    elif not view.start.objects:
        yield Undecided(subject="imports", reason="the environment's interpreter is not there: what it maps at its "
                                                  "start is not known, and Python's own symbols are not judged")
    for file in view.environment.path_files:
        for line in file.executes:
            if any(word in line for word in LOADER_WORDS):
                reason = f"Python executes {line!r} at its start, which may change what is loaded; here it was not"
                yield Undecided(subject=file.path, reason=reason)
    for each in view.openings:
        if each.may_fail == OPENED_BY_CODE and each.outcome.failures:
            reason = f"{each.outcome.failures[0].message()}, but {OPENED_BY_CODE}"
            yield Undecided(subject=each.what, reason=reason)
