"""The chain of causes of a failure: what was asked, and the rows and files that tie the asks together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.quick import replace
from stackfix.resolve.against import Reason
from stackfix.resolve.clash import Clash
from stackfix.resolve.clash_links import asked_cause, clash_causes
from stackfix.resolve.needs import FromUser
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.records import Asked, Cause
from stackfix.resolve.solve import Failure, Refusal
from stackfix.resolve.spans import versions_text

ORDER = ("torch", "cuda", "python", "platform", "flash-attn", "driver", "no-driver",
         "gpu-arch", "layout", "channel", "requirement")
MAX_GROUPS = 3          # different reasons of different torch releases that are told


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


def causes_of(failure: Failure, asks: Iterable[Asked], own: Sequence[SpecifierSet] = ()) -> tuple[Cause, ...]:
    """The chain: the asks, each followed by what ties it to the next.

    `own` is what the whole request asks of torch: what stands in the way of such a torch is told first.
    """
    ordered = sorted(asks, key=lambda asked: ORDER.index(asked.kind) if asked.kind in ORDER else len(ORDER))
    head = [asked_cause(asked) for asked in ordered]
    chain: list[Cause] = []
    missed = _nearest_misses(failure, ordered)
    missed.sort(key=lambda refusal: not (own and all(admits(limit, refusal.stack.version) for limit in own)))
    known = sorted({refusal.stack.version: refusal.stack.text for refusal in failure.refusals}.items(), reverse=True)
    order = [text for _, text in known]
    for refusals in _groups(missed):
        chain.extend(_group_causes(refusals, order))
    links = list(_admits_nothing(failure, ordered)) or _distinct(cause for cause in chain if cause.kind != "asked")
    links = links or list(_no_such_torch(failure)) or list(_apart_from_torch(failure))
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
        text = f"the torch releases of the matrix for these platforms are {versions_text(versions, versions)}"
        yield Cause(kind="matrix", text=text, source="rows of torch in the matrix")


def _apart_from_torch(failure: Failure) -> Iterator[Cause]:
    """What stands in the way of the torch releases that are what was asked, where no other reason is to be told."""
    near = [one for one in failure.refusals if not any(reason.kind == "asked" for reason in one.reasons)]
    known = sorted({one.stack.version: one.stack.text for one in failure.refusals}.items(), reverse=True)
    order = [text for _, text in known]
    for refusals in _groups(near):
        yield from (cause for cause in _group_causes(refusals, order) if cause.kind != "asked")


def _distinct(causes: Iterable[Cause]) -> list[Cause]:
    found: dict[tuple[str, str], Cause] = {}
    for cause in causes:
        found.setdefault((cause.kind, cause.text), cause)
    return list(found.values())


def _nearest_misses(failure: Failure, ordered: list[Asked]) -> list[Refusal]:
    """The stacks that meet as many of the leading asks as any does: what they lack is the reason worth telling."""
    known = [refusal for refusal in failure.refusals if refusal.stack.builds]
    admitted = [one for one in failure.refusals if not any(reason.kind == "asked" for reason in one.reasons)]
    left = list(known if any(refusal.stack.builds for refusal in admitted) else admitted)
    for asked in ordered:
        if asked.kind in {"layout", "channel", "conda-line"}:
            continue                    # what the other side lacks is the reason, and no torch comes nearer to it
        meeting = [refusal for refusal in left if not any(_is_about(reason, asked) for reason in refusal.reasons)]
        left = meeting or left
    return left


def _is_about(reason: Reason, asked: Asked) -> bool:
    """Whether this one thing is what is not met, be it on some place alone."""
    return reason.asks == (asked,) or tuple(each for each in reason.asks if each.kind != "platform") == (asked,)


def _groups(refusals: list[Refusal]) -> list[list[Refusal]]:
    """Refusals for the same reason together, newest torch first; at most MAX_GROUPS."""
    found: dict[tuple[str, ...], list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault(_shape(refusal), []).append(refusal)
    return list(found.values())[:MAX_GROUPS]


def _shape(refusal: Refusal) -> tuple[str, ...]:
    return _clash_shape(refusal.clash) if refusal.clash is not None else ("reason", _main_reason(refusal))


def _clash_shape(clash: Clash) -> tuple[str, ...]:
    """The same for clashes that differ in the version of torch alone: told of one, they are true of the others."""
    torch = clash.problem.build.version
    why = clash.exclusions[0].reason.replace(torch, "{torch}") if clash.exclusions else ""
    parents = {need.parent.name if need.parent is not None else "" for need in clash.needs}
    return ("clash", clash.name, why, *sorted(parents))


def _main_reason(refusal: Refusal) -> str:
    told = [reason for reason in refusal.reasons if reason.kind != "asked"]
    return (told or list(refusal.reasons))[0].says


def _group_causes(refusals: list[Refusal], order: list[str]) -> Iterator[Cause]:
    first = refusals[0]
    if first.clash is not None:
        causes = list(clash_causes(first.clash))
        others = [refusal.stack.text for refusal in refusals[1:] if refusal.stack.text != first.stack.text]
        yield from _with_others(causes, versions_text(others, order))
        return
    told = [reason for reason in first.reasons if reason.kind != "asked"] or list(first.reasons)
    if told[0].chain:
        torch = f"torch {first.stack.text}"
        chain = [replace(cause, text=cause.text.replace("{torch}", torch)) for cause in told[0].chain]
        likewise = dict.fromkeys(one.stack.text for one in refusals[1:] if one.stack.text != first.stack.text)
        same = all(any(reason.chain == told[0].chain for reason in one.reasons) for one in refusals)
        if same and not any("{torch}" in cause.text for cause in told[0].chain):
            likewise = {}               # it has nothing to do with torch
        yield from _with_others(chain, versions_text(list(likewise), order))
        return
    for reason in [other for other in told if other.asks == told[0].asks][:2]:
        rows = tuple(
            row for refusal in refusals for other in refusal.reasons if other.says == reason.says for row in other.rows
        )
        yield Cause(kind=reason.kind, text=_sentence(reason, refusals, order), source=reason.source, rows=rows)


def _sentence(reason: Reason, refusals: list[Refusal], order: list[str]) -> str:
    """The reason with its subject: "torch 2.3.0 and 2.3.1 are built for CUDA 12.1 on the default index"."""
    torch = f"torch {versions_text([refusal.stack.text for refusal in refusals], order)}"
    if "{torch}" in reason.says:
        return reason.says.replace("{torch}", torch)
    verb, space, rest = reason.says.partition(" ")
    plural = {"is": "are", "has": "have"} if len({refusal.stack.text for refusal in refusals}) > 1 else {}
    return f"{torch} {plural.get(verb, verb)}{space}{rest}"


def _with_others(causes: list[Cause], versions: str) -> Iterator[Cause]:
    """The causes, the first fact told to hold for other torch releases likewise."""
    for cause in causes:
        if versions and cause.kind != "asked":
            yield replace(cause, text=f"{cause.text} (torch {versions} likewise)")
            versions = ""
        else:
            yield cause
