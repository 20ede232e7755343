"""What cannot be told of the imports of an environment without running them."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults import find_open_faults, serious
from stackfix.diagnose.faults_open import lacks_system
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import counted, told, who_needs
from stackfix.diagnose.imports import OPENED_BY_CODE
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Python
from stackfix.inspect.machine_records import Undecided

LOADER_WORDS = ("ctypes", "dlopen", "CDLL")


def find_undecided_imports(view: View) -> Iterator[Undecided]:
    """What cannot be told of the imports of this environment."""
    python = view.environment.python
    if python is None:
        yield Undecided(subject="imports", reason="the prefix has no Python: what an import loads cannot be told")
    elif not view.start.objects:
        yield Undecided(subject="imports", reason=(
            f"the environment's interpreter {why_no_start(python)}: what "
            f"it maps at its start is not known, and Python's own symbols are not judged{open_symbols(view)}"))
    yield from undecided_system(view)
    for file in view.environment.path_files:
        for line in file.executes:
            if any(word in line for word in LOADER_WORDS):
                reason = f"Python executes {line!r} at its start, which may change what is loaded; here it was not"
                yield Undecided(subject=file.path, reason=reason)
    for each in view.openings:
        if each.may_fail == OPENED_BY_CODE and each.outcome.failures:
            reason = f"{told(each.outcome.failures[0])}, but {OPENED_BY_CODE}"
            yield Undecided(subject=each.what, reason=reason)


def why_no_start(python: Python) -> str:
    """Why nothing is known of the interpreter's process."""
    if python.executable_reaches is not None:
        return "cannot be started here"
    closed = python.executable is not None and python.lost is None
    return "may not be read by this user" if closed else "is not there"


def undecided_system(view: View) -> Iterator[Undecided]:
    """What the system would give to a tree that has no C library: once, with the names of all of it."""
    if lacks_system(view):
        faults = tuple(serious(find_open_faults(view)))
        names = sorted({each.name for each in faults if not is_symbol(each)})
        symbols = open_symbols(view) if view.start.objects else ""      # else told with the interpreter
        if names or symbols:
            yield Undecided(subject="system-libraries", reason=(
                "the tree has no C library: what the system that it belongs to gives as "
                f"{', '.join(names) or 'libc.so.6'} is not known{symbols}"))


def is_symbol(fault: Fault) -> bool:
    """Whether nothing but symbols is known, and no library that should have them."""
    return fault.category == "symbol-unknown"


def open_symbols(view: View) -> str:
    """How many symbols an interpreter may give, or what it links, in words."""
    faults = tuple(each for each in find_open_faults(view) if is_symbol(each))
    symbols = [symbol for each in faults for symbol in each.symbols]
    if not symbols:
        return ""
    asking = f"{who_needs(faults[0])} needs" if len(faults) == 1 else f"{who_needs(faults[0])} and others need"
    return f"; {counted(symbols)} that {asking} may be among them"
