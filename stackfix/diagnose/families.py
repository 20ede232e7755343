"""Two majors of one library in one process, and parts of one library that come from different versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.abi_text import told_of
from stackfix.diagnose.families_beside import find_side_by_side
from stackfix.diagnose.families_parts import Part, bringer, named, owner_at, parts_of, plain
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import Owner

WHY = ("Two majors of one library in one process share global state and symbol names: calls meant for one may reach "
       "the other, and handles of one are not valid in the other.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Two majors of a family in one process; `first` was mapped first."""

    first: Part
    second: Part
    first_by: str                   # who brings it in, in words
    second_by: str
    second_path: str                # the file that brings the second one in
    second_owner: Owner | None      # and its package
    opening: Opening


def find_two_families(view: View) -> Iterator[Finding]:
    """SF301: majors that meet in one process, and those that only lie side by side."""
    clashes = list(find_clashes(view))
    groups: dict[tuple[str, str], list[Clash]] = {}
    for each in clashes:
        groups.setdefault((each.first_by, each.second_by), []).append(each)
    told = told_of(view) if groups else set()
    for group in groups.values():
        yield describe_clash(group, told=group[0].second_by in told)
    yield from find_side_by_side(view, {each.first.family.name for each in clashes})


def find_clashes(view: View) -> Iterator[Clash]:
    """Each pair of files once."""
    told = set()
    for opening, parts in parts_of(view).openings:
        first: dict[str, Part] = {}
        for part in parts:
            if not part.family.one_per_process or part.major is None:
                continue
            # by its own name: libcufile.so.0 and libcufile_rdma.so.1 are of one release
            known = first.setdefault(part.plain_stem, part)
            pair = (known.path, part.path)
            if known.major != part.major and pair not in told:
                told.add(pair)
                yield clash_of(view, opening, known, part)


def clash_of(view: View, opening: Opening, first: Part, second: Part) -> Clash:
    state = opening.outcome.attempted
    head = bringer(second, state)
    opened = parts_of(view).opened_by(second, opening) or opening
    head = head or caller_of(opened)
    path = plain(view, head.path) if head else second.path
    owner = owner_at(view, head.path) if head else package_of(view, opened)
    return Clash(first=first, second=second, first_by=brought_by(view, first, opening),
                 second_by=named(owner) or path, second_path=path, second_owner=owner, opening=opening)


def caller_of(opening: Opening) -> LoadedObject | None:
    """The object whose code opens by name; None where Python code opens."""
    caller = opening.request.caller
    return opening.outcome.attempted.by_identity(caller) if caller is not None else None


def package_of(view: View, opening: Opening) -> Owner | None:
    """The package whose import an opening belongs to."""
    found = view.distributions.get(opening.project or "")
    return Owner(manager=found.manager, name=found.name, version=found.version) if found else None


def brought_by(view: View, part: Part, opening: Opening) -> str:
    """Who brings a part into the process: the package of the object at the head of the chain, or of the import."""
    opened = parts_of(view).opened_by(part, opening)
    head = bringer(part, opening.outcome.attempted) or (caller_of(opened) if opened else None)
    if head is not None:
        return named(owner_at(view, head.path)) or plain(view, head.path)
    return named(package_of(view, opened) if opened else None) or part.path


def describe_clash(group: Sequence[Clash], *, told: bool) -> Finding:
    """One finding for all families that the same two packages bring in twice.

    `told`: the second of them does not fit torch, which another finding says; this one is what comes of it.
    """
    one = min(group, key=lambda each: SEVERITIES.index(severity_of(each.opening)))
    names = list(dict.fromkeys(f"{each.first.family.name} {each.first.major} and {each.second.major}"
                               for each in group))
    owner, second = one.second_owner, one.second
    return make_finding(
        "SF301", "note" if told else severity_of(one.opening), level=second.family.level,
        summary=f"{', '.join(names)} come into one process: one with {one.first_by}, the other with {one.second_by}",
        why=f"{one.second_path} brings {second.path} into a process that has {one.first.path} already. {WHY}",
        culprit=Culprit(path=second.path, package=named(owner)),
        requester=Requester(path=one.second_path, package=named(owner)),
        evidence=tuple(line for each in group for line in clash_evidence(each)),
        winner=one.first.path, loser=second.path, cure=clash_cure(one),
        why_not=None if owner else f"{one.second_path} belongs to no package that could be exchanged",
    )


def severity_of(opening: Opening) -> str:
    """Of what the imports do surely; an extension module may never be imported beside the rest."""
    if opening.may_fail is not None:
        return "note"
    return "warning" if opening.phase == "module" else "error"


def clash_evidence(clash: Clash) -> Iterator[str]:
    yield (f"{clash.first.soname}: {clash.first.path} ({clash.first.origin()}), with {clash.first_by}")
    yield (f"{clash.second.soname}: {clash.second.path} ({clash.second.origin()}), with {clash.second_by}, "
           f"found via {clash.second.object.found_via.step}")
    yield f"both are mapped after: {clash.opening.what}"


def clash_cure(clash: Clash) -> tuple[str, ...]:
    want = f"{clash.first.family.name} {clash.first.major}"
    if clash.second_owner is not None:
        return (f"install a build of {clash.second_owner.name} that is made for {want}, or remove it",
                f"never import {clash.second_by} and {clash.first_by} in one process")
    return (f"rebuild {clash.second_path} for {want}",)
