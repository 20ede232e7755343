"""What of a simulation's faults breaks the stack, what the machine is trusted to have, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stackfix.diagnose.abi_groups import extensions
from stackfix.diagnose.abi_text import severity_of
from stackfix.diagnose.faults import find_faults, own_copies, serious
from stackfix.diagnose.faults_open import is_of_system
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.situation import View
from stackfix.inspect.records import FileAt, Files, Symbols
from stackfix.prove.base import Base

# "unreached": the stack has the library, and nothing leads to it: what needs it works once another package has loaded
# it, or with a variable
BREAKS, TRUSTED, UNTOLD, UNREACHED, HARMLESS = "breaks", "trusted", "untold", "unreached", "harmless"
SHOWN = 4                           # symbols in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What becomes of one fault."""

    kind: str
    fault: Fault
    why: str | None = None          # of "untold", a sentence


def rulings(view: View, base: Base, *, without: tuple[str, ...] = (),
            lacking: tuple[str, ...] = ()) -> Iterator[Ruling]:
    """One for each root of what the simulation did not find.

    `without`: sonames that this system lacks. `lacking`: projects of the lock of whose wheels nothing is known.
    """
    for fault in serious(find_faults(view)):
        ruling = rule(view, base, fault, without)
        may_have = those_that_may_have(fault, lacking) if ruling.kind == BREAKS else ()
        yield ruling if not may_have else Ruling(kind=UNTOLD, fault=fault, why=(
            f"{needed_by(view, fault)} needs {fault.name}, and nothing is known of {', '.join(may_have)}"))


def those_that_may_have(fault: Fault, lacking: tuple[str, ...]) -> tuple[str, ...]:
    """Of the projects of which nothing is known those that may have what no other has. A torch may bring any CUDA."""
    if fault.provider is not None:
        return ()
    projects = fault.family.projects if fault.family is not None else ()
    return tuple(each for each in lacking if not projects or each == "torch" or each in projects
                 or each.rpartition("-cu")[0] in projects)


def rule(view: View, base: Base, fault: Fault, without: tuple[str, ...]) -> Ruling:
    """What becomes of a fault."""
    if fault.severity == "note":
        return Ruling(kind=HARMLESS, fault=fault)
    if fault.family is not None and fault.family.level == "driver":
        return of_driver(fault, without)
    if is_trusted(base, fault):
        return Ruling(kind=TRUSTED, fault=fault)
    if is_unreached(view, fault):
        return Ruling(kind=UNREACHED, fault=fault)
    why = untold(view, fault)
    return Ruling(kind=BREAKS if why is None else UNTOLD, fault=fault, why=why)


def is_unreached(view: View, fault: Fault) -> bool:
    """Whether the stack has a library that is looked for in vain, and no import fails by that."""
    at_import = any(each.opening.phase == "import" and each.opening.may_fail is None for each in fault.sightings)
    return fault.category == "missing" and not at_import and bool(own_copies(view, fault.name))


def unreached_in(view: View, found: Iterable[Ruling]) -> Iterator[str]:
    """A sentence for each file that does not look where the stack has its libraries."""
    names: dict[str, list[str]] = {}
    for each in found:
        if each.kind == UNREACHED:
            names.setdefault(needed_by(view, each.fault), []).append(each.fault.name)
    for who, libraries in names.items():
        yield (f"{who} does not look where the stack has {', '.join(libraries)}: it works once another package has "
               "loaded them, as import torch does, or with LD_LIBRARY_PATH, which stackfix repair sets")


def untold(view: View, fault: Fault) -> str | None:
    """Why nobody can tell whether a fault is one; None where it surely is."""
    who = needed_by(view, fault)
    if fault.category == "missing" and is_of_system(view, fault.name):
        return f"{who} needs {fault.name}, which is in no wheel of the lock: the system has to have it"
    if fault.category == "symbol-unknown":
        more = f" and {len(fault.symbols) - SHOWN} more" if len(fault.symbols) > SHOWN else ""
        return (f"{who} needs {', '.join(fault.symbols[:SHOWN])}{more}, without a version: nothing tells which library "
                "should have it")
    if (silent := unread(view, fault)) is not None:
        return f"{who} needs {silent} of {fault.name}, and the almanac does not tell whether it has that"
    if fault.severity == "warning" and not is_of_another_torch(view, fault):
        return f"{fault.opening.what} would fail if it is ever imported: {fault.failure.message()}"
    return None


def of_driver(fault: Fault, without: tuple[str, ...]) -> Ruling:
    """A driver's library: each machine with a GPU has it. Where it is left out, only imports must do without it."""
    if not without:
        return Ruling(kind=TRUSTED, fault=fault)
    at_import = any(each.opening.phase == "import" and each.opening.may_fail is None for each in fault.sightings)
    if at_import:
        return Ruling(kind=BREAKS, fault=fault)
    return Ruling(kind=HARMLESS, fault=fault)


def is_trusted(base: Base, fault: Fault) -> bool:
    """Whether it is about symbols without a version that libraries of the system may have."""
    if fault.category == "symbol" and fault.name in base.libraries and not fault.versions:
        return True
    needed = (name for each in fault.requesters for name in each.elf.needed)
    return fault.category == "symbol-unknown" and any(
        name in base.libraries and base.libraries[name].open for name in needed)


def is_of_another_torch(view: View, fault: Fault) -> bool:
    """Whether a compiled package was built for another torch, and has no other file for this one."""
    if fault.category != "torch-symbol":
        return False
    names = {seen.opening.request.name for seen in fault.sightings}
    return any(severity_of(view, each) == "error" and names & {seen.opening.request.name for seen in each.sightings}
               for each in extensions(view).values() if each.torch_symbols)


def unread(view: View, fault: Fault) -> str | None:
    """The first of the missing names where a table tells of none of them whether the library has it for itself."""
    if fault.provider is None or fault.category not in {"symbol", "mixed", "torch-symbol"}:
        return None
    symbols = symbols_at(view.files, fault.provider.path)
    silent = symbols is not None and fault.symbols and not any(tells(symbols, name) for name in fault.symbols)
    return fault.symbols[0] if silent else None


def symbols_at(files: Files, path: str) -> Symbols | None:
    """Symbols of the file at a path."""
    at = files.at(path)
    return files.symbols(at) if isinstance(at, FileAt) else None


def tells(symbols: Symbols, name: str) -> bool:
    """Whether a table tells for sure that a name is not there. One of the file itself always does."""
    ask = getattr(symbols, "tells", None)
    return ask is None or bool(ask(name))


def needed_by(view: View, fault: Fault) -> str:
    """Who asks: "nvidia-cudnn-cu12 (libcudnn_cnn_infer.so.8)"; of an import what it opens."""
    requester = fault.requester
    if requester is None:
        return fault.opening.what
    name = requester.path.rpartition("/")[2]
    owners = view.owners(requester.path, requester.real_path)
    return f"{name} of {owners[0].name}" if owners else name
