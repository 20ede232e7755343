"""Modules that can be imported, but not after torch: torch maps an older libstdc++, which then serves the process."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults_symbols import LIBSTDCXX
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.machine_system import OWN_FOLDER
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.provenance import describe, named, owner_of, trace
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import Opening, View

SHOWN = 8


def check_import_order(view: View) -> Iterator[Finding]:
    """SF903 as a warning: whether torch comes first is the program's choice."""
    first = mapped_by_torch(view)
    if first is None:
        return
    opening, old = first
    later = dict[str, tuple[LoadedObject, LoadedObject, tuple[str, ...]]]()
    for each in view.openings:
        own = found(each)
        if own is not None and own.identity != old.identity and not each.outcome.failures and each.may_fail is None:
            for object_, lacking in asking(each, old):
                later.setdefault(object_.identity, (object_, own, lacking))
    if later:
        yield too_late(view, opening, old, tuple(later.values()))


def mapped_by_torch(view: View) -> tuple[Opening, LoadedObject] | None:
    """(import, copy of libstdc++) where it is torch's import that maps it."""
    for each in view.openings:
        own = found(each)
        if own is not None and each.project == "torch" and each.phase == "import":
            return each, own
    return None


def found(opening: Opening) -> LoadedObject | None:
    """The libstdc++ that an opening maps itself."""
    state = opening.outcome.attempted
    return next((state.objects[number] for number in opening.outcome.loaded
                 if state.objects[number].elf.soname == LIBSTDCXX), None)


def asking(opening: Opening, old: LoadedObject) -> Iterator[tuple[LoadedObject, tuple[str, ...]]]:
    """(library, versions of libstdc++ that it needs and the older copy lacks)."""
    for number in opening.outcome.loaded:
        object_ = opening.outcome.attempted.objects[number]
        lacking = tuple(each.version for each in object_.elf.needed_versions if each.file == LIBSTDCXX
                        and not each.weak and each.version not in old.elf.defined_versions)
        if lacking:
            yield object_, lacking


def too_late(view: View, opening: Opening, old: LoadedObject,
             later: tuple[tuple[LoadedObject, LoadedObject, tuple[str, ...]], ...]) -> Finding:
    """The finding of all modules that torch's import keeps from theirs."""
    object_, own, lacking = later[0]
    cause = trace(view, old, old.path, old.found_via)
    inside = own.path.startswith(f"{view.environment.prefix}/")
    owner = owner_of(view, object_.path, object_.real_path)
    name = object_.path.rpartition("/")[2]
    return make_finding(
        "SF903", "warning", summary=f"After torch, {old.path} is too old for {name}: it has no {', '.join(lacking)}",
        why=f"torch maps {old.path} ({opening.what}), and the first copy serves the whole process. By itself {name} "
            f"finds {own.path}, so it works where it is imported before torch.",
        culprit=Culprit(path=old.path, variable=cause.variable),
        requester=Requester(path=object_.path, package=named(owner)),
        evidence=(*(f"{describe(view, each.path, each.real_path)} needs {', '.join(versions)}"
                    for each, _, versions in later[:SHOWN]),
                  f"torch's import takes {describe(view, old.path, old.real_path)}",
                  f"by itself it takes {describe(view, own.path, own.real_path)}", *cause.lines),
        error=f"{old.path}: version `{lacking[0]}' not found (required by {object_.path})",
        winner=old.path, loser=own.path,
        cure=(*cause.undo, *((OWN_FOLDER.format(prefix=view.environment.prefix),) if inside else ()),
              f"or import {named(owner) or name} before torch"),
        why_not=None if inside or cause.variable else "the newer libstdc++ is not in the environment's prefix")
