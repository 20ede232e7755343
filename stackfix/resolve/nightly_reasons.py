"""What speaks against a nightly: it is not listed any more, or what it pins is not to be had; and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from stackfix.errors import StackfixError
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import Nightly, nightly_of
from stackfix.platforms import split_place
from stackfix.resolve.against import Reason
from stackfix.resolve.candidates import Project
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.needs import FromFile, Need
from stackfix.resolve.nightly_family import days_apart
from stackfix.resolve.nightly_stack import asked_cudas, left, nightlies_on, place_path, wheels_of_day
from stackfix.resolve.pep508 import parse_version, pins_exactly
from stackfix.resolve.problem import needs_of
from stackfix.resolve.question import Question, parse_request
from stackfix.resolve.records import Asked, Cause, StackRequest, Target
from stackfix.resolve.stack import Stack
from stackfix.sources.errors import SdistNeedsBuild

MOST_CHANGES = 12       # other days that are tried for an offer
NEAR = 3                # versions of a library that are named in place of one that is gone


def torch_asks(question: Question) -> tuple[Asked, ...]:
    """What asks for this nightly and its CUDA."""
    return (*(ask.asked for ask in question.torch if not ask.constraint), *question.ask("cuda"))


def absent_reason(evidence: Evidence, question: Question, stack: Stack, place: str) -> Reason:
    """Why there is no build of the nightly for a place: no page has one of that day, or not for this platform."""
    nightly = nightly_of(stack.text)
    cudas = [stack.cuda] if stack.builds else asked_cudas(evidence, question)
    paths = list(dict.fromkeys(place_path(place, cuda) for cuda in cudas))
    where = f"the torch index ({', '.join(paths)})"
    rest = _what_is_left(evidence, question, nightly)
    unhashed = nightly is not None and any(wheels_of_day(evidence, path, place, nightly) for path in paths)
    elsewhere = nightly is not None and any(nightly.version == str(version) for path in paths
                                            for _, version in nightlies_on(evidence, path))
    if unhashed:
        says = f"has no wheel for {split_place(place)[0]} with a sha256 on {where}{rest}"
    elif stack.builds or elsewhere:
        says = f"has no wheel for {split_place(place)[0]} on {where}{rest}"
    else:
        says = f"is not on {where}, which lists nightlies for some weeks only{rest}"
    source = f"page{'s' if len(paths) > 1 else ''} of torch on the torch index"
    chain: tuple[Cause, ...] = ()
    by_day = question.nightly is not None and question.nightly.release is None
    if nightly is not None and by_day and not (stack.builds or unhashed or elsewhere):
        text = f"no nightly of {nightly.day} is on {says.removeprefix('is not on ')}"
        chain = (Cause(kind="index", source=source, text=text),)
    return Reason(
        kind="index", asks=(*torch_asks(question), *question.platform_ask(place)), says=says, source=source,
        chain=chain,
    )


def _what_is_left(evidence: Evidence, question: Question, nightly: Nightly | None) -> str:
    """`; left of 2.10.0 for Python 3.11 on linux-64 are 58 nightlies, from 2025-10-20 to 2025-12-18`."""
    days = left(evidence, question)
    own = [one for one in days if nightly is not None and one.release == nightly.release]
    told = own or days
    if not told:
        return f"; none are left for {_places(question)}"
    places = f"{_places(question)}{'' if question.request.cuda else f' ({told[0].path})'}"
    if len(told) == 1:
        return f"; left for {places} is {told[0].version}"
    of = ", ".join(sorted({str(one.release) for one in told}))
    return f"; left of {of} for {places} are {len(told)}, from {told[0].day} to {told[-1].day}"


def _places(question: Question) -> str:
    pythons = f"Python {', '.join(question.request.pythons)} on " if question.request.pythons else ""
    return f"{pythons}{', '.join(question.request.platforms)}"


def lost_pins(
    evidence: Evidence, question: Question, target: Target, build: TorchBuild, project: Project, version: str,
) -> Iterator[Reason]:
    """What the nightly requires and nobody has any more."""
    candidate = next((found for one in project.versions if str(one.public) == version
                      and (found := project.candidate(one)) is not None), None)
    metadata = evidence.metadata(candidate) if candidate is not None else None
    if candidate is None or metadata is None or isinstance(metadata, SdistNeedsBuild):
        return
    view = evidence.view(target)
    lines = [line for line in metadata.requires_dist if view.applies(line, None)]
    needs = [need for line in lines for need in needs_of(line, FromFile(parent=candidate)) if need.extra is None]
    lost = [(need, gone) for need in needs if (gone := _gone(evidence, question, target, build, need)) is not None]
    for place, (need, gone) in enumerate(lost):
        rest = _what_is_left(evidence, question, nightly_of(version)) if place == len(lost[:2]) - 1 else ""
        yield Reason(
            kind="index", asks=torch_asks(question), says=f"requires {need.text}, {gone}{rest}",
            source=f"metadata of {candidate.files[0].filename}",
        )


def _gone(evidence: Evidence, question: Question, target: Target, build: TorchBuild, need: Need) -> str | None:
    """Why nothing can be had for a requirement, or None."""
    project = evidence.project_for(need.name, target, build)
    found = next(iter(project.candidates([need])), None)
    index = f"torch index ({build.index})" if need.name.endswith("triton") else "index"
    if found is not None:
        withdrawn = found.files[0].yanked
        if withdrawn is None or any(line.name == need.name for line in question.lines):
            return None
        why = f" ({withdrawn})" if withdrawn else ""
        return f"which was yanked{why}; --with {need.text} takes it all the same"
    if not project.versions:
        return f"and there is no {need.name} on the {index}"
    admitted = project.admitted([need])
    exclusion = project.exclusion(admitted[0]) if admitted else None
    if exclusion is not None:
        return f"which {exclusion.reason}"
    return f"which the {index} has not{_nearest_words(project, need)}"


def _nearest_words(project: Project, need: Need) -> str:
    """`: it has 9.10.2.21, 9.12.0.46`, around the version that is gone."""
    usable = [version for version in project.versions if project.candidate(version) is not None]
    if not usable:
        return f": it has no {need.name} for this target"
    below = [one for one in usable if pins_exactly(need.specifier) and _is_below(one, need)]
    place = len(usable) - len(below)
    near = usable[max(0, place - NEAR + 1):place + NEAR - 1]
    return f": nearest it has {', '.join(map(str, reversed(near)))}" if near else ""


def _is_below(version: Version, need: Need) -> bool:
    pinned = parse_version(next(iter(need.specifier)).version)
    return pinned is not None and version < pinned


def other_days(evidence: Evidence, question: Question) -> list[str]:
    """Versions of other days, nearest first, of the same release before others."""
    nightly = question.nightly
    if nightly is None:
        return []
    days = [one for one in left(evidence, question) if one.date != nightly.date and one.version is not None]
    days.sort(key=lambda one: (one.release != nightly.release if nightly.release else False,
                               days_apart(f"0.dev{one.date}", f"0.dev{nightly.date}")))
    return [str(one.version) for one in days[:MOST_CHANGES]]


def newest_days(evidence: Evidence, request: StackRequest) -> str:
    """`the newest for linux-64 are 2.10.0.dev20251217, …`; "" where the index does not say."""
    plain = parse_request(request.with_(torch=None, requirements=()))
    try:
        found = [str(one.version) for one in left(evidence, plain)[:-NEAR - 1:-1]]
    except StackfixError:               # how to ask is said in any case
        return ""
    return f"the newest for {_places(plain)} are {', '.join(found)}" if found else ""
