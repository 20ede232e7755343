"""What cannot be told of the imports of an environment without running them."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults import find_open_faults
from stackfix.diagnose.faults_text import counted, told, who_needs
from stackfix.diagnose.imports import OPENED_BY_CODE
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided

LOADER_WORDS = ("ctypes", "dlopen", "CDLL")


def find_undecided_imports(view: View) -> Iterator[Undecided]:
    """What cannot be told of the imports of this environment."""
    python = view.environment.python
    if python is None:
        yield Undecided(subject="imports", reason="the prefix has no Python: what an import loads cannot be told")
    elif not view.start.objects:
        closed = python.executable is not None and python.executable_reaches is None and python.lost is None
        yield Undecided(subject="imports", reason=(
            f"the environment's interpreter {'may not be read by this user' if closed else 'is not there'}: what "
            f"it maps at its start is not known, and Python's own symbols are not judged{open_symbols(view)}"))
    for file in view.environment.path_files:
        for line in file.executes:
            if any(word in line for word in LOADER_WORDS):
                reason = f"Python executes {line!r} at its start, which may change what is loaded; here it was not"
                yield Undecided(subject=file.path, reason=reason)
    for each in view.openings:
        if each.may_fail == OPENED_BY_CODE and each.outcome.failures:
            reason = f"{told(each.outcome.failures[0])}, but {OPENED_BY_CODE}"
            yield Undecided(subject=each.what, reason=reason)


def open_symbols(view: View) -> str:
    """How many symbols an interpreter may give, in words."""
    faults = find_open_faults(view)
    symbols = [symbol for each in faults for symbol in each.symbols]
    if not symbols:
        return ""
    asking = f"{who_needs(faults[0])} needs" if len(faults) == 1 else f"{who_needs(faults[0])} and others need"
    return f"; {counted(symbols)} that {asking} may be among them"
