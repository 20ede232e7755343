"""Foreign copies that win and lack nothing: a note, or a warning where the library itself compares versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.faults import find_faults, own_copies
from stackfix.diagnose.faults_text import file_name, found_line, limited, placed, requester_from, shown_way
from stackfix.diagnose.faults_verdict import Copy, copy_of_object, regular_copy, search, verdicts
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.plumbing_activation import find_activation_order
from stackfix.diagnose.provenance import (
    Provenance,
    folder_of,
    is_preloaded,
    named,
    owner_of,
    preloads,
    trace,
    version_at,
)
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.shadows import NOT_AT_HAND, put_first
from stackfix.diagnose.situation import Opening, View

EXPOSED = frozenset({"LD_LIBRARY_PATH", "ld.so.cache", "default folder"})
# cuDNN and the frameworks above it refuse a library that is older than the one they were built with:
# TensorFlow says "Loaded runtime CuDNN library: 8.1.0 but source was compiled with: 8.6.0"
COMPARES_VERSIONS = frozenset({"cuDNN"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A copy that was taken in place of another one, and lacks nothing."""

    soname: str
    object: LoadedObject
    winner: Copy
    loser: Copy
    requester: LoadedObject | None
    opening: Opening


def find_harmless_shadows(view: View) -> Iterator[Finding]:
    """SF102, one for each folder; SF101 as a warning for an older copy of a library that compares versions."""
    folders: dict[tuple[str, str | None], list[Taken]] = {}
    old: dict[tuple[str, str], list[Taken]] = {}
    for each in taken_in_place(view):
        family = view.family_of(each.soname)
        if family is not None and family.name in COMPARES_VERSIONS and is_older(view, each):
            old.setdefault((folder_of(each.winner.path), family.name), []).append(each)
        elif not view.is_own(each.winner.path, each.winner.real_path):
            cause = trace(view, each.object, each.winner.path, each.object.found_via)
            folders.setdefault((folder_of(each.winner.path), cause.variable), []).append(each)
    for group in folders.values():
        yield harmless(view, group)
    by_scripts = {folder_of(each.winner) for each in find_activation_order(view)
                  if isinstance(each, Finding) and each.winner} if old else set()
    for (folder, _), group in old.items():
        if folder not in by_scripts:            # else SF1101 tells it, with the line that does it
            yield older(view, group)


def taken_in_place(view: View) -> Iterator[Taken]:
    """Libraries found in a foreign place although the environment has them, each file once."""
    seen = {verdict.winner.identity for verdict in verdicts(view)}
    seen |= {fault.provider.identity for fault in find_faults(view) if fault.provider}
    preloaded = bool(preloads(view))
    for opening in view.openings:
        state, mixed = opening.outcome.attempted, None
        for edge in opening.outcome.edges:
            if edge.found_via.step not in EXPOSED and not preloaded:
                continue
            found = state.objects[edge.provider]
            if found.identity in seen or not (own_copies(view, edge.name) or view.family_of(edge.name)) or not (
                    edge.found_via.step in EXPOSED or is_preloaded(view, found)):
                continue
            seen.add(found.identity)
            mixed = mixed if mixed is not None else mixed_families(view, opening)
            family = view.family_of(edge.name)
            if family is None or family.name not in mixed:
                yield from shadowed(view, opening, edge.name, edge.requester, found)


def mixed_families(view: View, opening: Opening) -> frozenset[str]:
    """Families whose parts come from several folders: another check judges these as a whole."""
    folders: dict[str, set[str]] = {}
    for each in opening.outcome.attempted.objects:
        family = view.family_of(each.elf.soname or "")
        if family is not None and len(family.stems) > 1:
            folders.setdefault(family.name, set()).add(folder_of(each.real_path))
    return frozenset(name for name, found in folders.items() if len(found) > 1 and name in COMPARES_VERSIONS)


def shadowed(view: View, opening: Opening, name: str, number: int | None, found: LoadedObject) -> Iterator[Taken]:
    """The copy that `found` hides, where it is one that the environment means."""
    requester = opening.outcome.attempted.objects[number] if number is not None else None
    copies = tuple(search(view, name, opening, number))
    if view.is_own(found.path, found.real_path):
        # an own copy before another own copy: only a later one in the same search can be meant
        loser = next((each for each in copies if each.identity != found.identity
                      and view.is_own(each.path, each.real_path)), None)
        if not is_version_aware(view, name):
            loser = None
    else:
        loser = regular_copy(view, name, copies)
        if view.family_of(name) is None and loser not in copies:    # libstdc++ of the system beside conda's, say
            loser = None
    if loser is not None and loser.identity != found.identity:
        yield Taken(soname=name, object=found, winner=copy_of_object(view, found), loser=loser, requester=requester,
                    opening=opening)


def is_version_aware(view: View, name: str) -> bool:
    family = view.family_of(name)
    return family is not None and family.name in COMPARES_VERSIONS


def versions(view: View, each: Taken) -> tuple[str | None, str | None]:
    """Of the winner and of the loser."""
    return (version_at(view, each.winner.path, each.winner.real_path, each.soname),
            version_at(view, each.loser.path, each.loser.real_path, each.soname))


def is_older(view: View, each: Taken) -> bool:
    """Whether the winner's version is known to be older, in what both versions tell."""
    mine, other = ((release_of(text) if text else None) for text in versions(view, each))
    if mine is None or other is None:
        return False
    width = min(len(mine), len(other))
    return mine[:width] < other[:width]


def older(view: View, group: list[Taken]) -> Finding:
    """SF101 without a missing symbol, for all parts of one library in one folder."""
    each = group[0]
    mine, other = versions(view, each)
    cause = trace(view, each.object, each.winner.path, each.object.found_via)
    family = view.family_of(each.soname)
    more = f", and {len(group) - 1} more parts of it" if len(group) > 1 else ""
    return make_finding(
        "SF101", "warning" if any(one.opening.may_fail is None for one in group) else "note",
        level=family.level if family else None,
        summary=f"{placed(view, each.winner.path, shown_way(cause, each.winner.via))} wins, and is version {mine} in "
                f"place of {other}{more}",
        why=f"{cause.how}; {each.loser.path} comes behind it. It lacks no symbol, but programs that were built with "
            f"{other} compare the version when they run, and refuse an older one.",
        culprit=Culprit(path=each.winner.path, variable=cause.variable,
                        package=named(owner_of(view, each.winner.path, each.winner.real_path))),
        requester=requester_of(view, each), evidence=tuple(evidence(view, group, cause)), winner=each.winner.path,
        loser=each.loser.path,
        cure=(*cause.undo, put_first(each.loser), "or keep one copy of the library in the environment"),
        why_not=None if view.is_at_hand(each.loser.path) else f"{each.loser.path} {NOT_AT_HAND}")


def requester_of(view: View, each: Taken) -> Requester | None:
    if each.requester is None:
        return Requester(package=each.opening.project) if each.opening.project else None
    return requester_from(view, each.requester)


def harmless(view: View, group: list[Taken]) -> Finding:
    """SF102: all of one folder."""
    one = group[0]
    cause = trace(view, one.object, one.winner.path, one.object.found_via)
    folder, names = folder_of(one.winner.path), [each.soname for each in group]
    family = view.family_of(one.soname)
    return make_finding(
        "SF102", "note", level=family.level if family else "environment",
        summary=f"{limited(names)} of {folder} ({shown_way(cause, one.winner.via)}) "
                f"{'wins, and lacks' if len(names) == 1 else 'win, and lack'} nothing",
        why=f"{cause.how}. Nothing that is needed is missing there now, but an upgrade of the environment's packages "
            f"may need more than it has.",
        culprit=Culprit(path=folder, variable=cause.variable), requester=requester_of(view, one),
        evidence=tuple(evidence(view, group, cause)), winner=one.winner.path, loser=one.loser.path, cure=cause.undo,
        why_not="nothing is broken")


def evidence(view: View, group: list[Taken], cause: Provenance) -> Iterator[str]:
    for each in group:
        who = file_name(each.requester.path) if each.requester else each.opening.what
        yield found_line(view, each.winner, f"{each.soname}, for {who}, taken")
        yield found_line(view, each.loser, f"{each.soname}, hidden by it")
    yield from cause.lines
