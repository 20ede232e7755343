"""Libraries of the system that a foreign copy hides: whose a symbol without a version is, no name tells there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.diagnose.records import LoadedObject, ProcessState
from stackfix.diagnose.situation import View
from stackfix.inspect.records import BadElf, ElfObject, FileAt, SymbolNames

EXPOSED = frozenset({"LD_LIBRARY_PATH", "ld.so.cache", "default folder"})


def hidden_library(view: View, state: ProcessState, number: int, symbol: str) -> str | None:
    """The needed library of which another copy, later in the same search, has the symbol; None: none has."""
    for name in state.objects[number].elf.needed:
        taken = state.find(name)
        if taken is None or not may_hide(view, taken):
            continue
        for each in view.candidates(name, number, state):
            if each.identity != taken.identity and each.bad is None and symbol in offered(view, each.path, (symbol,)):
                return name
    return None


def may_hide(view: View, object_: LoadedObject) -> bool:
    """Whether an object came from where anything may lie, before or in place of what was meant."""
    return object_.found_via.step in EXPOSED or not view.is_own(object_.path, object_.real_path)


def offered(view: View, path: str, names: Iterable[str]) -> Iterator[str]:
    """Those of the names that a file defines."""
    at = view.files.at(path)
    if not isinstance(at, FileAt) or not isinstance(at.elf, ElfObject):
        return
    try:
        yield from view.files.symbols(at).offered(SymbolNames(list(dict.fromkeys(names))))
    except BadElf:
        return
