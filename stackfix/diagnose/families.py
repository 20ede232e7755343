"""Two majors of one library in one process, and parts of one library that come from different versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.families_parts import Part, bringer, major_of, named, owner_at, parts_of, plain, who_opened
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.imports_projects import required_names
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
    for group in groups.values():
        yield describe_clash(group)
    yield from find_side_by_side(view, {each.first.family.name for each in clashes})


def find_clashes(view: View) -> Iterator[Clash]:
    """Each pair of files once."""
    told = set()
    for opening, parts in parts_of(view).openings:
        first: dict[str, Part] = {}
        for part in parts:
            if not part.family.one_per_process or part.major is None:
                continue
            known = first.setdefault(part.family.name, part)
            pair = (known.path, part.path)
            if known.major != part.major and pair not in told:
                told.add(pair)
                yield clash_of(view, opening, known, part)


def clash_of(view: View, opening: Opening, first: Part, second: Part) -> Clash:
    state = opening.outcome.attempted
    head = bringer(second, state)
    opened = who_opened(second, view.openings, opening) or opening
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
    opened = who_opened(part, view.openings, opening)
    head = bringer(part, opening.outcome.attempted) or (caller_of(opened) if opened else None)
    if head is not None:
        return named(owner_at(view, head.path)) or plain(view, head.path)
    return named(package_of(view, opened) if opened else None) or part.path


def describe_clash(group: Sequence[Clash]) -> Finding:
    """One finding for all families that the same two packages bring in twice."""
    one = min(group, key=lambda each: SEVERITIES.index(severity_of(each.opening)))
    names = list(dict.fromkeys(f"{each.first.family.name} {each.first.major} and {each.second.major}"
                               for each in group))
    owner, second = one.second_owner, one.second
    return make_finding(
        "SF301", severity_of(one.opening), level=second.family.level,
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


# --- majors that lie side by side and do not meet ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One library of a family in a folder of the environment."""

    family: str
    level: str
    major: int
    path: str
    owners: tuple[Owner, ...]


def find_side_by_side(view: View, clashing: set[str]) -> Iterator[Finding]:
    """A note where several majors are installed and no import is seen to map both."""
    parts, majors = parts_of(view), dict[str, dict[int, Installed]]()
    for folder in view.environment.library_folders:
        for name in folder.libraries:
            family, major = parts.family(name), major_of(name)
            if family is not None and major is not None and family.one_per_process \
                    and name.partition(".so")[0] == family.stems[0]:
                path = f"{folder.path}/{name}"
                found = Installed(family=family.name, level=family.level, major=major, path=path,
                                  owners=view.owners(path))
                majors.setdefault(family.name, {}).setdefault(major, found)
    several = {name: found for name, found in majors.items() if len(found) > 1 and name not in clashing}
    if several:
        yield describe_side_by_side(view, [found[major] for found in several.values() for major in sorted(found)])


def describe_side_by_side(view: View, found: Sequence[Installed]) -> Finding:
    names: dict[str, list[str]] = {}
    for each in found:
        names.setdefault(each.family, []).append(str(each.major))
    owners = list(dict.fromkeys(owner for each in found for owner in each.owners))
    askers = {owner: asked_by(view, owner) for owner in owners}
    unwanted = [owner for owner in owners if not askers[owner]]
    return make_finding(
        "SF301", "note", level=found[0].level,
        summary="Several majors are installed side by side: "
                + "; ".join(f"{name} {' and '.join(majors)}" for name, majors in names.items()),
        why="No import that is known maps both in one process, and separate processes may use either. Packages that "
            "each bring their own would clash once they are imported together.",
        culprit=Culprit(path=found[-1].path, package=named(next(iter(found[-1].owners), None))),
        evidence=tuple(f"{each.path}: " + (", ".join(f"{named(owner)}, {wanted(askers[owner])}"
                                                     for owner in each.owners) or "no package of the environment")
                       for each in found),
        cure=(tuple(f"nothing that is installed requires {named(owner)}: it may be removed" for owner in unwanted)
              or ("keep packages for different CUDA majors in environments of their own",)),
        why_not="nothing is broken",
    )


def asked_by(view: View, owner: Owner) -> tuple[str, ...]:
    """Installed projects that require one directly."""
    return tuple(f"{each.name} {each.version}" for each in view.distributions.values()
                 if owner.name in required_names(each.requires))


def wanted(askers: Sequence[str]) -> str:
    return f"required by {', '.join(askers)}" if askers else "required by nothing that is installed"
