"""The chain of causes of a failure: what was asked, and the rows and files that tie the asks together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from packaging.version import Version

from stackfix.resolve.against import Reason
from stackfix.resolve.changes import option
from stackfix.resolve.clash import Clash, exclusions
from stackfix.resolve.needs import Candidate, Exclusion, FromRule, FromStack, FromUser, Need
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.records import Asked, Cause
from stackfix.resolve.solve import Failure, Refusal

ORDER = ("torch", "cuda", "python", "platform", "flash-attn", "driver", "gpu-arch", "requirement")
MAX_UNPROVED = 3        # needs of a clash that nobody proved that are told
MAX_GROUPS = 3          # different reasons of different torch releases that are told


def asked_cause(asked: Asked) -> Cause:
    """The link for one thing that was asked."""
    return Cause(kind="asked", text=f"asked: {option(asked)}", source=asked.flag, asked=asked)


def involved_asks(failure: Failure) -> list[Asked]:
    """Asks that together are enough for the failure, in the order asked: one reason for each stack, few asks."""
    chosen: dict[Asked, None] = {}
    options = [_ask_sets(refusal, failure) for refusal in failure.refusals]
    for sets in sorted(options, key=len):
        best = min(sets, key=lambda asks: (len(asks - chosen.keys()), len(asks)), default=frozenset())
        chosen.update(dict.fromkeys(sorted(best, key=failure.question.asks.index)))
    return [asked for asked in failure.question.asks if asked in chosen]


def _ask_sets(refusal: Refusal, failure: Failure) -> list[frozenset[Asked]]:
    sets = [frozenset(reason.asks) for reason in refusal.reasons]
    if refusal.clash is not None:
        sets.append(frozenset(clash_asks(refusal.clash, failure)))
    return sets


def resting_on(refusal: Refusal, failure: Failure, asks: list[Asked]) -> Refusal | None:
    """The refusal with the reasons that rest on nothing but `asks`; None where none does."""
    reasons = tuple(reason for reason in refusal.reasons if set(reason.asks) <= set(asks))
    clash = refusal.clash
    if clash is not None and not set(clash_asks(clash, failure)) - {*failure.question.ask("python")} <= {
        *asks, *failure.question.ask("platform"), *failure.question.file_asks(),
    }:
        clash = None
    return replace(refusal, reasons=reasons, clash=clash) if reasons or clash is not None else None


def clash_asks(clash: Clash, failure: Failure) -> Iterator[Asked]:
    """What was asked that takes part in a clash."""
    if not clash.proved:
        yield from failure.question.asks
        return
    for need in clash.all_needs():
        if isinstance(need.origin, FromUser):
            yield need.origin.asked
    parts = clash.depends_on()
    question = failure.question
    if "python" in parts:
        yield from (*question.ask("python"), *question.ask("platform"), *question.file_asks())
    if "flash-attn" in parts:
        yield from (*(ask.asked for ask in question.flash_attn), *question.ask("no-flash-attn"))


def causes_of(failure: Failure, asks: Iterable[Asked]) -> tuple[Cause, ...]:
    """The chain: the asks, each followed by what ties it to the next."""
    ordered = sorted(asks, key=lambda asked: ORDER.index(asked.kind) if asked.kind in ORDER else len(ORDER))
    head = [asked_cause(asked) for asked in ordered]
    chain: list[Cause] = []
    for refusals in _groups(_nearest_misses(failure, ordered)):
        chain.extend(_group_causes(refusals))
    links = list(_admits_nothing(failure, ordered)) or _distinct(cause for cause in chain if cause.kind != "asked")
    links = links or list(_no_such_torch(failure))
    return (*head[:1], *links, *head[1:])


def _admits_nothing(failure: Failure, ordered: list[Asked]) -> Iterator[Cause]:
    """That what is asked of torch contradicts itself: no version that anybody knows is admitted, nor any made up."""
    for ask in failure.question.torch:
        bounds = [version for part in ask.specifier if (version := parse_version(part.version.removesuffix(".*")))]
        near = [*bounds, *(refusal.stack.version for refusal in failure.refusals)]
        if len(ask.specifier) > 1 and ask.asked in ordered and not any(admits(ask.specifier, v) for v in _around(near)):
            yield Cause(kind="matrix", text=f"no version at all is {ask.specifier}", source="PEP 440")


def _around(versions: Iterable[Version]) -> Iterator[Version]:
    """The versions with one just above each."""
    for version in versions:
        yield version
        above = parse_version(f"{version.base_version}.1")
        if above is not None:
            yield above


def _no_such_torch(failure: Failure) -> Iterator[Cause]:
    """That no torch is what was asked for, where nothing else is to be told."""
    versions = [refusal.stack.text for refusal in failure.refusals if refusal.stack.builds]
    if versions and all(reason.kind == "asked" for refusal in failure.refusals for reason in refusal.reasons[:1]):
        text = f"the torch releases of the matrix for these platforms are {versions_text(versions)}"
        yield Cause(kind="matrix", text=text, source="rows of torch in the matrix")


def _distinct(causes: Iterable[Cause]) -> list[Cause]:
    found: dict[tuple[str, str], Cause] = {}
    for cause in causes:
        found.setdefault((cause.kind, cause.text), cause)
    return list(found.values())


def _nearest_misses(failure: Failure, ordered: list[Asked]) -> list[Refusal]:
    """The stacks that meet as many of the leading asks as any does: what they lack is the reason worth telling."""
    known = [refusal for refusal in failure.refusals if refusal.stack.builds]
    admitted = [one for one in failure.refusals if not any(reason.kind == "asked" for reason in one.reasons)]
    left = known if any(refusal.stack.builds for refusal in admitted) else admitted
    for asked in ordered:
        meeting = [refusal for refusal in left if not any(r.asks == (asked,) for r in refusal.reasons)]
        left = meeting or left
    return left


def _groups(refusals: list[Refusal]) -> list[list[Refusal]]:
    """Refusals for the same reason together, newest torch first; at most MAX_GROUPS."""
    found: dict[tuple[str, ...], list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault(_shape(refusal), []).append(refusal)
    return list(found.values())[:MAX_GROUPS]


def _shape(refusal: Refusal) -> tuple[str, ...]:
    if refusal.clash is not None:
        return ("clash", refusal.clash.name)
    return ("reason", _main_reason(refusal))


def _main_reason(refusal: Refusal) -> str:
    told = [reason for reason in refusal.reasons if reason.kind != "asked"]
    return (told or list(refusal.reasons))[0].says


def _group_causes(refusals: list[Refusal]) -> Iterator[Cause]:
    first = refusals[0]
    if first.clash is not None:
        causes = list(clash_causes(first.clash))
        others = [refusal.stack.text for refusal in refusals[1:]]
        yield from _with_others(causes, others)
        return
    told = [reason for reason in first.reasons if reason.kind != "asked"]
    for reason in [other for other in told if other.asks == told[0].asks][:2]:
        rows = tuple(
            row for refusal in refusals for other in refusal.reasons if other.says == reason.says for row in other.rows
        )
        yield Cause(kind=reason.kind, text=_sentence(reason, refusals), source=reason.source, rows=rows)


def _sentence(reason: Reason, refusals: list[Refusal]) -> str:
    """The reason with its subject: "torch 2.3.0 and 2.3.1 are built for CUDA 12.1 on the default index"."""
    torch = f"torch {versions_text([refusal.stack.text for refusal in refusals])}"
    if "{torch}" in reason.says:
        return reason.says.replace("{torch}", torch)
    verb, space, rest = reason.says.partition(" ")
    plural = {"is": "are", "has": "have"} if len(refusals) > 1 else {}
    return f"{torch} {plural.get(verb, verb)}{space}{rest}"


def versions_text(versions: list[str]) -> str:
    """`2.3.0`, `2.3.0 and 2.3.1`, or `2.1.0 to 2.4.1` for versions newest first."""
    if len(versions) == 1:
        return versions[0]
    if len(versions) == 2:
        return f"{versions[1]} and {versions[0]}"
    return f"{versions[-1]} to {versions[0]}"


def _with_others(causes: list[Cause], versions: list[str]) -> Iterator[Cause]:
    """The causes, the first fact told to hold for other torch releases likewise."""
    for cause in causes:
        if versions and cause.kind != "asked":
            yield replace(cause, text=f"{cause.text} (torch {versions_text(versions)} likewise)")
            versions = []
        else:
            yield cause


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
        more = f" (and {others} other versions of {candidate.name} clash too)" if others else ""
        yield replace(causes[-1], text=f"{causes[-1].text}{more}")


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
    newest = f"; the newest there is {versions[0]}" if versions else ""
    text = f"no version of {clash.name} on the index is {clash.needs[0].specifier}{newest}"
    yield Cause(kind="index", text=text, source=f"index page of {clash.name}")


def _told(clash: Clash, found: Iterable[Exclusion], project: str) -> Iterator[Cause]:
    """One cause for each kind of exclusion, with the newest version as its example."""
    told: dict[tuple[str, str], list[Exclusion]] = {}
    for exclusion in found:
        told.setdefault((exclusion.kind, exclusion.source), []).append(exclusion)
    groups = sorted(told.values(), key=lambda same: not same[0].because)     # what drives all of them out goes first
    for same in groups[: 1 if groups and groups[0][0].because else 2]:
        first = same[0]
        more = f" (and {len(same) - 1} other versions likewise)" if len(same) > 1 else ""
        name = project.removeprefix("!").partition(" ")[0]
        for need in first.because:
            yield from _way(clash, need)
        yield Cause(
            kind=first.kind, text=f"{name} {first.version} {first.reason}{more}", source=first.source,
            rows=tuple(row for exclusion in same for row in exclusion.rows),
        )
