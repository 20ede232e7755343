"""The causes of one clash: the way to each of its needs, and why nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.quick import replace
from stackfix.resolve.against import page_words
from stackfix.resolve.changes import option
from stackfix.resolve.clash import Clash, exclusions
from stackfix.resolve.needs import Candidate, Exclusion, FromRule, FromStack, FromUser, Need
from stackfix.resolve.records import Asked, Cause
from stackfix.resolve.torch_family import FAMILY, torch_path

MAX_UNPROVED = 3        # needs of a clash that nobody proved that are told


def asked_cause(asked: Asked) -> Cause:
    """The link for one thing that was asked."""
    return Cause(kind="asked", text=f"asked: {option(asked)}", source=asked.flag, asked=asked)


def clash_causes(clash: Clash) -> Iterator[Cause]:
    """The way from the roots to each of the clashing needs, then why nothing else is left."""
    for need in clash.needs[: None if clash.proved else MAX_UNPROVED]:
        yield from _way(clash, need)
    for case in clash.refuted[:1]:
        if case.clash is not None:
            yield from _with_count(list(clash_causes(case.clash)), case.candidate, len(clash.refuted) - 1)
            continue
        yield _need_cause(case.need, others=len(clash.refuted) - 1)
        for need in case.against:
            yield from _way(clash, need)
        if not case.against:
            yield from _told(clash, exclusions(clash.problem, case.need.name, (case.need,)), case.need.name)
    yield from _exclusion_causes(clash)
    if not clash.proved:
        text = f"the last clash of the search was on {clash.name}; which of the needs could give way was not proved"
        yield Cause(kind="index", text=text, source="the solver")


def _with_count(causes: list[Cause], candidate: Candidate, others: int) -> Iterator[Cause]:
    """The causes of one refuted candidate; the last says how many others of the project clash too."""
    yield from causes[:-1]
    if causes:
        more = f" (and {_other_versions(others)} of {candidate.name} clash too)" if others else ""
        yield replace(causes[-1], text=f"{causes[-1].text}{more}")


def _other_versions(number: int) -> str:
    return "1 other version" if number == 1 else f"{number} other versions"


def _way(clash: Clash, need: Need, depth: int = 0) -> Iterator[Cause]:
    """Causes from the root to the need."""
    if need.parent is not None and depth < 8:
        for above in clash.forced_by.get(need.parent, ()):
            yield from _way(clash, above, depth + 1)
    if need.parent is not None and need.parent.name == need.name:
        return                      # an extra's own project, or a version that was only tried
    if not isinstance(need.origin, FromStack) or need.name not in {"torch", "flash-attn"}:
        yield _need_cause(need)


def _need_cause(need: Need, others: int = 0) -> Cause:
    more = f" (and {others} other versions that are asked for clash too)" if others else ""
    origin = need.origin
    if isinstance(origin, FromUser):
        return asked_cause(origin.asked)
    if isinstance(origin, FromStack):
        return Cause(kind="matrix", text=f"building {origin.part} needs {need.text}{more}", source=origin.source)
    if isinstance(origin, FromRule):
        text = f"{origin.parent.label} needs {origin.rule.needs}: {origin.rule.why}{more}"
        return Cause(kind="matrix", text=text, source=origin.rule.source, rows=(origin.rule,))
    text = f"{origin.parent.label} requires {need.text}{more}"
    return Cause(kind="index", text=text, source=_metadata(origin.parent))


def _metadata(parent: Candidate) -> str:
    return f"metadata of {parent.files[0].filename}"


def _exclusion_causes(clash: Clash) -> Iterator[Cause]:
    """Why versions that the needs admit were no candidates: the newest for each kind of reason."""
    yield from _told(clash, clash.exclusions, clash.name)
    if clash.exclusions or clash.refuted or not clash.proved or len(clash.needs) != 1:
        return
    versions = () if clash.name in clash.problem.only else clash.problem.project(clash.name).versions
    path = torch_path(clash.problem.build) if clash.name in FAMILY else None
    path = path if clash.problem.evidence.pinned_by(clash.name) is None else None
    where = "index" if path is None else f"torch index ({path})"
    text = f"there is no {clash.name} on the {where}"
    if versions:
        newest = f"the newest there is {versions[0]}"
        text = f"no version of {clash.name} on the {where} is {clash.needs[0].specifier}; {newest}"
    build = None if path is None else clash.problem.build
    yield Cause(kind="index", text=text, source=page_words(clash.problem.evidence, build, clash.name))


def _told(clash: Clash, found: Iterable[Exclusion], project: str) -> Iterator[Cause]:
    """One cause for each kind of exclusion, with the newest version as its example."""
    told: dict[tuple[str, str], list[Exclusion]] = {}
    for exclusion in found:
        told.setdefault((exclusion.kind, exclusion.source), []).append(exclusion)
    groups = sorted(told.values(), key=lambda same: not same[0].because)     # what drives all of them out goes first
    for same in groups[: 1 if groups and groups[0][0].because else 2]:
        first = same[0]
        more = f" (and {_other_versions(len(same) - 1)} likewise)" if len(same) > 1 else ""
        name = project.removeprefix("!").partition(" ")[0]
        for need in first.because:
            yield from _way(clash, need)
        yield Cause(
            kind=first.kind, text=f"{name} {first.version} {first.reason}{more}", source=first.source,
            rows=tuple(row for exclusion in same for row in exclusion.rows),
        )
