"""What the installed torch has in place of what an extension asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stackfix.diagnose.abi_names import other_numbers, other_string, readable
from stackfix.diagnose.faults_symbols import is_torch_library
from stackfix.diagnose.records import LoadedObject, ProcessState
from stackfix.diagnose.situation import View
from stackfix.inspect.records import BadElf, FileAt, SymbolNames

# In every torch since 1.8, and with a string among its arguments.
CHECK_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_j"
OLD_CHECK, NEW_CHECK = f"{CHECK_FAIL}RKSs", f"{CHECK_FAIL}RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
MOST = 5        # symbols whose other forms are looked for


def torch_libraries(state: ProcessState) -> tuple[LoadedObject, ...]:
    """torch's own libraries in a process."""
    return tuple(each for each in state.objects if is_torch_library(each.elf.soname or ""))


def offered_by(view: View, objects: Iterable[LoadedObject], names: Sequence[str]) -> frozenset[str]:
    """Those of the names that one of the objects has."""
    found = set[str]()
    for each in objects:
        at = view.files.at(each.path)
        if isinstance(at, FileAt):
            try:
                found.update(view.files.symbols(at).offered(SymbolNames(list(dict.fromkeys(names)))))
            except BadElf:      # told elsewhere
                continue
    return frozenset(found)


def string_abi_of_torch(view: View, libraries: Iterable[LoadedObject]) -> str | None:
    """Which std::string torch was compiled with: "new", "old"; None where its libraries do not tell."""
    found = offered_by(view, libraries, (OLD_CHECK, NEW_CHECK))
    return {frozenset({OLD_CHECK}): "old", frozenset({NEW_CHECK}): "new"}.get(found)


def instead(view: View, libraries: Sequence[LoadedObject], missing: Iterable[str]) -> Iterator[str]:
    """One line for each missing name of which torch has another form."""
    wanted = {name: tuple(filter(None, (other_string(name), *other_numbers(name)))) for name in list(missing)[:MOST]}
    every = [each for others in wanted.values() for each in others]
    there = offered_by(view, libraries, every) if every else frozenset()
    for name, others in wanted.items():
        for each in others:
            if each in there:
                as_what = "with the other std::string" if readable(each) == readable(name) else f"as {readable(each)}"
                yield f"torch has {readable(name)} {as_what} ({each})"
